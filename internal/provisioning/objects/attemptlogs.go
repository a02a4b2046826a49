// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/provisioning/policy"
)

// Keys of the ConfigMap of a log.
const (
	numberKey = "attempt"
	textKey   = "log"
)

// name is that of the ConfigMap that has the log of an attempt. The sixth takes the place of the first.
func name(p *v1alpha1.Provision, number int64) string {
	return fmt.Sprintf("weir-provision-%s-%d", p.UID, policy.LogSlot(number))
}

// KeepLog puts the log of the attempt under way in the place of another, or makes the first one there.
func KeepLog(ctx context.Context, api client.Client, p *v1alpha1.Provision, text string) error {
	number := p.Status.AttemptNumber
	log := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: name(p, number), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Provision", Name: p.Name, UID: p.UID},
		}},
		Data: map[string]string{numberKey: strconv.FormatInt(number, 10), textKey: text},
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": log.OwnerReferences}, "data": log.Data})
	if err != nil {
		return err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: log.Namespace, Name: log.Name}}
	err = api.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(k8s.FieldOwner))
	if apierrors.IsNotFound(err) {
		return api.Create(ctx, log, client.FieldOwner(k8s.FieldOwner))
	}
	return err
}

// ReadLog returns the log of an attempt; found is false if it has none. Any user that may write ConfigMaps of the namespace
// can change it.
func ReadLog(ctx context.Context, api client.Reader, p *v1alpha1.Provision, number int64) (text string, found bool, err error) {
	var log corev1.ConfigMap
	err = api.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: name(p, number)}, &log)
	if err != nil || log.Data[numberKey] != strconv.FormatInt(number, 10) {
		return "", false, client.IgnoreNotFound(err)
	}
	return log.Data[textKey], true, nil
}
