// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/pool/schedule"
)

type writer struct {
	client.SubResourceWriter
	asked client.Object
	kind  types.PatchType
	sent  string
}

func (w *writer) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := patch.Data(obj)
	w.asked, w.kind, w.sent = obj, patch.Type(), string(data)
	obj.SetResourceVersion("8")
	return err
}

// A status write requests only the metadata in return.
func TestOfAWrittenStatusTheAPIServerAnswersTheMetadata(t *testing.T) {
	w := &writer{}
	version, err := API{Status: w}.Apply(t.Context(), schedule.Ref{Namespace: "shop", Name: "web", UID: "u"}, "7", &v1alpha1.BackendPoolStatus{PoolID: "/x"})
	if err != nil || version != "8" {
		t.Fatalf("%q, %v", version, err)
	}
	if _, ok := w.asked.(*metav1.PartialObjectMetadata); !ok || w.asked.GetNamespace() != "shop" || w.asked.GetName() != "web" {
		t.Errorf("asked for %T %s", w.asked, client.ObjectKeyFromObject(w.asked))
	}
	want := `{"kind":"BackendPool","apiVersion":"weir.dev/v1alpha1","metadata":{"name":"web","namespace":"shop","resourceVersion":"7","uid":"u"},"status":{"poolID":"/x"}}`
	if w.kind != types.ApplyPatchType || w.sent != want {
		t.Errorf("%s: %s", w.kind, w.sent)
	}
}

type lister struct{ client.Reader }

func (lister) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := &client.ListOptions{}
	o.ApplyOptions(opts)
	of := map[string]string{"": "a", "next": "b"}[o.Continue]
	into, _ := list.(*v1alpha1.BackendPoolList)
	into.Items = []v1alpha1.BackendPool{{
		ObjectMeta: metav1.ObjectMeta{Name: of, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "theirs"}}, Labels: map[string]string{"a": "b"}},
		Status:     v1alpha1.BackendPoolStatus{WrittenAddresses: append(make([]string, 0, 16), "10.0.0.1")},
	}}
	if into.Continue = ""; o.Continue == "" {
		into.Continue = "next"
	}
	return nil
}

// All drops fields that are not needed.
func TestAllAreReadWithoutBookkeeping(t *testing.T) {
	pools, err := API{Reader: lister{}}.All(t.Context())
	if err != nil || len(pools) != 2 || pools[0].Name != "a" || pools[1].Name != "b" {
		t.Fatalf("%v, %v", pools, err)
	}
	for _, p := range pools {
		if p.ManagedFields != nil || p.Labels != nil || cap(p.Status.WrittenAddresses) != 1 || p.Status.WrittenAddresses[0] != "10.0.0.1" {
			t.Errorf("%+v", p)
		}
	}
}
