// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/k8s/metadata"
)

func TestConflictingRecords(t *testing.T) {
	const here, there = "/subscriptions/s/resourceGroups/rg", "/subscriptions/s/resourceGroups/other"
	for _, tt := range []struct {
		about          string
		record         Record
		cluster, place string
		wantText       string // "" means no contradiction
	}{
		{"nothing on record", Record{}, "prod", here, ""},
		{"the same", Record{ClusterName: "prod", Place: here}, "prod", strings.ToUpper(here), ""},
		{"the place is not on record", Record{ClusterName: "prod"}, "prod", here, ""},
		{"another name", Record{Namespace: "weir-system", ClusterName: "prod", Place: here}, "prdo", here,
			`--cluster-name "prdo": this cluster's load balancers and public IPs are recorded under the name "prod" (ConfigMap weir-system/weir-controller)`},
		{"capitals, which names in Azure do not tell apart, but people do", Record{ClusterName: "prod", Place: here}, "Prod", here, `Set --cluster-name "prod"; to give up`},
		{"another resource group", Record{ClusterName: "prod", Place: here}, "prod", there, "azure.json has load balancers in " + there + ": this cluster's are recorded in " + here},
	} {
		err := tt.record.CheckConflict(tt.cluster, tt.place)
		if (err == nil) != (tt.wantText == "") || err != nil && !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%s: %v, want %q", tt.about, err, tt.wantText)
		}
	}
}

func recordOf(t *testing.T, api client.Reader) map[string]string {
	t.Helper()
	m := &corev1.ConfigMap{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "weir-system", Name: Name}, m); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return m.Data
}

func recordHolding(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: Name}, Data: data}
}

// Keep preserves other keys; Check writes nothing.
func TestKeepingTheRecord(t *testing.T) {
	const rg = "/subscriptions/s/resourceGroups/rg"
	held := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", Finalizers: []string{metadata.ServiceFinalizer}}}
	for _, tt := range []struct {
		about  string
		stands []client.Object
		becomes,
		checked map[string]string // after Keep and after Check
		refused bool
	}{
		{"nothing is there", nil, map[string]string{"cluster-name": "prod", "load-balancers": rg}, nil, false},
		{"somebody keeps something there", []client.Object{recordHolding(map[string]string{"else": "x"})},
			map[string]string{"cluster-name": "prod", "load-balancers": rg, "else": "x"}, map[string]string{"else": "x"}, false},
		{"another name, and no Service bound", []client.Object{recordHolding(map[string]string{"cluster-name": "old", "load-balancers": rg, "else": "x"})},
			map[string]string{"cluster-name": "prod", "load-balancers": rg, "else": "x"}, map[string]string{"cluster-name": "old", "load-balancers": rg, "else": "x"}, false},
		{"another name, and a Service bound", []client.Object{recordHolding(map[string]string{"cluster-name": "old", "load-balancers": rg}), held},
			map[string]string{"cluster-name": "old", "load-balancers": rg}, map[string]string{"cluster-name": "old", "load-balancers": rg}, true},
	} {
		api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(tt.stands...).Build()
		for _, do := range []struct {
			name string
			run  func() error
			want map[string]string
		}{
			{"checked", func() error { return Check(t.Context(), api, "weir-system", "prod", rg) }, tt.checked},
			{"kept", func() error { return CheckAndStore(t.Context(), api, api, "weir-system", "prod", rg) }, tt.becomes},
		} {
			_, refused := errors.AsType[*ConflictError](do.run())
			if got := recordOf(t, api); refused != tt.refused || !maps.Equal(got, do.want) {
				t.Errorf("%s, %s: refused %t, and it holds %v", tt.about, do.name, refused, got)
			}
		}
	}
}

// A concurrent write of another key is retried; one of another cluster name is an error, even if no
// Service is bound.
func TestKeepingARecordThatChangesMeanwhile(t *testing.T) {
	const rg = "/subscriptions/s/resourceGroups/rg"
	for meanwhile, want := range map[string]string{"else": "", "cluster-name": `under the name "x"`} {
		moved := false
		api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(recordHolding(nil)).Build(), interceptor.Funcs{
			Update: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
				if !moved {
					moved = true
					m := obj.DeepCopyObject().(*corev1.ConfigMap)
					m.Data = map[string]string{meanwhile: "x"}
					if err := api.Update(ctx, m); err != nil {
						return err
					}
				}
				return api.Update(ctx, obj, opts...)
			},
		})
		err := CheckAndStore(t.Context(), api, api, "weir-system", "prod", rg)
		got := recordOf(t, api)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || got[meanwhile] != "x" {
			t.Errorf("%s: %v, and it holds %v", meanwhile, err, got)
		}
		if err == nil && got["cluster-name"] != "prod" {
			t.Errorf("%s: it holds %v", meanwhile, got)
		}
	}
}
