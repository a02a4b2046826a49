// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/poolschedule"
)

// API is the API server as far as BackendPools are concerned.
type API struct {
	Reader client.Reader            // the API server, never the cache
	Status client.SubResourceWriter // of the status
	Writer client.Writer
}

// Load implements backendpool.API.
func (a API) Load(ctx context.Context, ref poolschedule.Ref) (*v1alpha1.BackendPool, error) {
	p := &v1alpha1.BackendPool{}
	err := a.Reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, p)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(p.UID) != ref.UID:
		return nil, backendpool.ErrGone
	case err != nil:
		return nil, err
	}
	return p, nil
}

// Apply implements backendpool.API by server-side apply.
func (a API) Apply(ctx context.Context, ref poolschedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return "", fmt.Errorf("its fields: %w", err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "BackendPool",
		"metadata": map[string]any{"namespace": ref.Namespace, "name": ref.Name, "uid": ref.UID, "resourceVersion": version},
		"status":   fields,
	}}
	err = a.Status.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(apiserver.FieldOwner), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err):
		return "", backendpool.ErrGone
	case apierrors.IsConflict(err):
		return "", backendpool.ErrConflict
	case err != nil:
		return "", err
	}
	return u.GetResourceVersion(), nil
}

// finalizerDeadline bounds one try to set a finalizer.
const finalizerDeadline = 10 * time.Second

// SetFinalizer implements backendpool.API. It works on a fresh copy: the cache is
// stripped, and our own status writes make it old.
func (a API) SetFinalizer(ctx context.Context, ref poolschedule.Ref, want bool) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		ctx, cancel := context.WithTimeout(ctx, finalizerDeadline) // one that cannot be reached holds up no other pool
		defer cancel()
		fresh, err := a.Load(ctx, ref)
		if err != nil {
			return err
		}
		before := fresh.DeepCopy()
		changed := false
		if want {
			changed = controllerutil.AddFinalizer(fresh, v1alpha1.Finalizer)
		} else {
			changed = controllerutil.RemoveFinalizer(fresh, v1alpha1.Finalizer)
		}
		if !changed {
			return nil
		}
		return a.Writer.Patch(ctx, fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apiserver.FieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return backendpool.ErrGone
	}
	if err != nil {
		return fmt.Errorf("finalizer of BackendPool %s: %w", view.Key(ref.Namespace, ref.Name), err)
	}
	return nil
}
