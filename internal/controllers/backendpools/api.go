// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/schedule"
)

// API accesses BackendPools at the API server.
type API struct {
	Reader client.Reader // uncached
	Status client.SubResourceWriter
	Writer client.Writer
}

// Load implements backendpool.API.
func (a API) Load(ctx context.Context, ref schedule.Ref) (*v1alpha1.BackendPool, error) {
	p := &v1alpha1.BackendPool{}
	err := a.Reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, p)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(p.UID) != ref.UID:
		return nil, metadata.ErrDeleted
	case err != nil:
		return nil, err
	}
	return p, nil
}

type statusPatch struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        map[string]string           `json:"metadata"`
	Status          *v1alpha1.BackendPoolStatus `json:"status"`
}

// Apply implements backendpool.API by server-side apply. These are the most frequent requests, so
// only metadata is requested in return.
func (a API) Apply(ctx context.Context, ref schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	kind := metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BackendPool"}
	patch, err := json.Marshal(statusPatch{kind, map[string]string{"namespace": ref.Namespace, "name": ref.Name, "uid": ref.UID, "resourceVersion": version}, status})
	if err != nil {
		return "", fmt.Errorf("its fields: %w", err)
	}
	obj := &metav1.PartialObjectMetadata{TypeMeta: kind, ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	err = a.Status.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, patch), client.FieldOwner(k8s.FieldOwner), client.ForceOwnership)
	switch {
	case apierrors.IsNotFound(err):
		return "", metadata.ErrDeleted
	case apierrors.IsConflict(err):
		return "", metadata.ErrConflict
	case err != nil:
		return "", err
	}
	return obj.ResourceVersion, nil
}

const pageSize = 500

// All implements backendpool.API.
func (a API) All(ctx context.Context) ([]*v1alpha1.BackendPool, error) {
	var pools []*v1alpha1.BackendPool
	for next := ""; ; {
		var page v1alpha1.BackendPoolList
		if err := a.Reader.List(ctx, &page, client.Limit(pageSize), client.Continue(next)); err != nil {
			return nil, err
		}
		for _, p := range page.Items { // loop copy: an item must not keep its page alive
			p.ManagedFields, p.Annotations, p.Labels = nil, nil, nil // half of the size
			p.Status = cache.InternStatus(&p.Status)
			pools = append(pools, &p)
		}
		if next = page.Continue; next == "" {
			return pools, nil
		}
	}
}

const finalizerTimeout = 10 * time.Second

// SetFinalizer implements backendpool.API.
func (a API) SetFinalizer(ctx context.Context, p *v1alpha1.BackendPool, want bool) (*v1alpha1.BackendPool, error) {
	ref, tried := backendpool.RefOf(p), false
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, finalizerTimeout) // a slow request must not delay other pools
		defer cancel()
		if tried {
			if p, err = a.Load(ctx, ref); err != nil {
				return err
			}
		}
		tried = true
		p, err = a.setFinalizer(ctx, p, want)
		return err
	})
	switch {
	case apierrors.IsNotFound(err), errors.Is(err, metadata.ErrDeleted):
		return nil, metadata.ErrDeleted
	case err != nil:
		return nil, fmt.Errorf("finalizer of BackendPool %s: %w", metadata.Key(ref.Namespace, ref.Name), err)
	}
	return p, nil
}

func (a API) setFinalizer(ctx context.Context, p *v1alpha1.BackendPool, want bool) (*v1alpha1.BackendPool, error) {
	if slices.Contains(p.Finalizers, v1alpha1.Finalizer) == want {
		return p, nil
	}
	finalizers := slices.DeleteFunc(slices.Clone(p.Finalizers), func(f string) bool { return f == v1alpha1.Finalizer })
	if want {
		finalizers = append(finalizers, v1alpha1.Finalizer)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": p.ResourceVersion, "uid": p.UID, "finalizers": finalizers}})
	if err != nil {
		return nil, err
	}
	pool := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
	return pool, a.Writer.Patch(ctx, pool, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(k8s.FieldOwner))
}
