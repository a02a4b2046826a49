// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/provision"
)

// Keys of the ConfigMap of a log.
const (
	// LogNumber is the number of the attempt.
	LogNumber = "attempt"
	// LogText is what it says.
	LogText = "log"
)

// LogName is the name of the ConfigMap that has the log of an attempt. The sixth takes the place of
// the first.
func LogName(p *v1alpha1.Provision, number int64) string {
	return fmt.Sprintf("weir-provision-%s-%d", p.UID, provision.SlotOf(number))
}

// keepLog writes what the attempt has said so far. That it cannot be written fails no attempt.
func (a *run) keepLog(ctx context.Context) { a.keep(ctx, a.log) }

func (a *run) keep(ctx context.Context, what *provision.Log) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	number := a.p.Status.AttemptNumber
	owner := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Provision", Name: a.p.Name, UID: a.p.UID}
	log := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.p.Namespace, Name: LogName(a.p, number), OwnerReferences: []metav1.OwnerReference{owner}},
		Data:       map[string]string{LogNumber: strconv.FormatInt(number, 10), LogText: what.Text()},
	}
	if err := a.room.write(ctx, log); err != nil {
		a.room.Log.Warn("the log of an attempt is not kept", "provision", a.p.Namespace+"/"+a.p.Name, "err", err)
	}
}

// write puts a log in the place of another, or makes the first one there.
func (r *Room) write(ctx context.Context, log *corev1.ConfigMap) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": log.OwnerReferences}, "data": log.Data})
	if err != nil {
		return err
	}
	is := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: log.Namespace, Name: log.Name}}
	err = r.Writer.Patch(ctx, is, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(apiserver.FieldOwner))
	if apierrors.IsNotFound(err) {
		return r.Writer.Create(ctx, log, client.FieldOwner(apiserver.FieldOwner))
	}
	return err
}

// kept is what is kept of the log of the attempt under way; empty where nothing is, or it cannot be read.
func (r *Room) kept(ctx context.Context, p *v1alpha1.Provision) string {
	var log corev1.ConfigMap
	key := types.NamespacedName{Namespace: p.Namespace, Name: LogName(p, p.Status.AttemptNumber)}
	if err := r.Live.Get(ctx, key, &log); err != nil || log.Data[LogNumber] != strconv.FormatInt(p.Status.AttemptNumber, 10) {
		return ""
	}
	return log.Data[LogText]
}
