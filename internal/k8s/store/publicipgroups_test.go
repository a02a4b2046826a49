// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/internal/k8s/metadata"
)

// Resource groups survive a round trip with other keys, each once. Their number is bounded.
func TestResourceGroupsOfPublicIPs(t *testing.T) {
	ctx, m := t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: Name}, Data: map[string]string{keyCluster: "k"}}
	api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(m).Build()
	p := PublicIPGroups{Reader: api, Writer: api, Namespace: "weir-system"}
	if got, err := p.ReadGroups(ctx); err != nil || len(got) > 0 {
		t.Fatalf("nothing there: %v, %v", got, err)
	}
	for _, step := range []struct{ add, remove, want []string }{
		{[]string{"net", "edge(prod)_1.x"}, nil, []string{"edge(prod)_1.x", "net"}},
		{[]string{"net", "other"}, []string{"edge(prod)_1.x"}, []string{"net", "other"}},
		{nil, []string{"net", "other"}, nil},
	} {
		if err := p.ChangeGroups(ctx, step.add, step.remove); err != nil {
			t.Fatal(err)
		}
		if got, err := p.ReadGroups(ctx); err != nil || !slices.Equal(got, step.want) {
			t.Errorf("%v, %v, want %v", got, err, step.want)
		}
	}
	var many []string
	for i := range maxPublicIPGroups + 1 {
		many = append(many, fmt.Sprintf("rg-%04d", i))
	}
	if err := p.ChangeGroups(ctx, many, nil); err == nil || !strings.Contains(err.Error(), "may have 1000") {
		t.Errorf("%d groups: %v", len(many), err)
	}
	if err := api.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil || m.Data[keyCluster] != "k" {
		t.Errorf("%v, %v", m.Data, err)
	}
}
