// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
)

// fakeAPI returns an API server with these objects and their Namespaces, and Namespace shop.
func fakeAPI(t *testing.T, of interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	namespaces := map[string]client.Object{}
	for _, obj := range append(slices.Clone(objects), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}) {
		if name := obj.GetNamespace(); name != "" {
			namespaces[name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
	}
	for _, obj := range objects {
		if ns, current := obj.(*corev1.Namespace); current {
			delete(namespaces, ns.Name)
		}
	}
	objects = slices.AppendSeq(slices.Clone(objects), maps.Values(namespaces))
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Provision{}).Build(), of)
}

// A cluster without the provisioning CRDs is distinguished from an unreachable API server.
func TestProvisioningInstalled(t *testing.T) {
	if err := CheckInstalled(t.Context(), fakeAPI(t, interceptor.Funcs{})); err != nil {
		t.Errorf("it is: %v", err)
	}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"no role":       {apierrors.NewForbidden(schema.GroupResource{Resource: "partners"}, "", nil), true},
		"no definition": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Partner"}}, true},
		"no group":      {apierrors.NewNotFound(schema.GroupResource{Resource: "partners"}, ""), true},
		"away":          {apierrors.NewServiceUnavailable("away"), false},
	} {
		api := fakeAPI(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*v1alpha1.PartnerList); ok {
				return tt.err
			}
			return c.List(ctx, list, opts...)
		}})
		if err := CheckInstalled(t.Context(), api); !errors.Is(err, tt.err) || errors.Is(err, ErrNotInstalled) != tt.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Metrics do not wait for cache sync.
func TestMetricsWaitForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		api := fakeAPI(t, interceptor.Funcs{List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return errors.New("not filled")
		}})
		if states, _ := (&Reconciler{Config: Config{Cached: api}}).StateCounts(began); len(states) != 0 || time.Since(began) > 0 {
			t.Errorf("%v after %s", states, time.Since(began))
		}
	})
}
