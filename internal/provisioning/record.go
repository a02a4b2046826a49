// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
)

// errDeleted means deleted, or recreated with another UID.
var errDeleted = errors.New("the Provision was deleted")

const recordTimeout = 10 * time.Second

// applyStatus writes p's status. A newer resourceVersion is a conflict, because the decision was made
// from the old one.
func (r *Reconciler) applyStatus(ctx context.Context, p *v1alpha1.Provision) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&p.Status)
	if err != nil {
		return fmt.Errorf("fields of a status: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Provision",
		"metadata": map[string]any{"namespace": p.Namespace, "name": p.Name, "uid": string(p.UID), "resourceVersion": p.ResourceVersion},
		"status":   fields,
	}}
	if err := r.writes.Wait(ctx, p.Namespace); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	err = r.Writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(k8s.FieldOwner), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("status of Provision %s/%s: %w", p.Namespace, p.Name, err)
	}
	p.ResourceVersion = u.GetResourceVersion()
	return nil
}

func (r *Reconciler) updateStatus(ctx context.Context, p *v1alpha1.Provision, change func(*v1alpha1.ProvisionStatus)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		var current v1alpha1.Provision
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(p), &current)
		switch {
		case apierrors.IsNotFound(err), err == nil && current.UID != p.UID:
			return errDeleted
		case err != nil:
			return err
		}
		change(&current.Status)
		if err := r.applyStatus(ctx, &current); err != nil {
			return err
		}
		p.Status = current.Status
		return nil
	})
}
