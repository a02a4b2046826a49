// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
)

// Left pools survive a round trip with other keys. An unreadable line is logged, and its pool
// counts as foreign.
func TestPoolsLeftToOthersAreOnRecord(t *testing.T) {
	pool := func(name string) lb.PoolKey {
		return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "Kubernetes"}, Name: name}.Key()
	}
	var output bytes.Buffer
	ctx, m := t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: Name}, Data: map[string]string{keyCluster: "k"}}
	api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(m).Build()
	p := ReleasedPools{Reader: api, Writer: api, Namespace: "weir-system", Log: slog.New(slog.NewTextHandler(&output, nil))}
	if got, err := p.ReadPools(ctx); err != nil || len(got) > 0 {
		t.Fatalf("nothing there: %v, %v", got, err)
	}
	for _, step := range []struct{ changed, want map[lb.PoolKey]string }{
		{map[lb.PoolKey]string{pool("shop-a"): "shop/a", pool("shop-b"): "shop/b"}, map[lb.PoolKey]string{pool("shop-a"): "shop/a", pool("shop-b"): "shop/b"}},
		{map[lb.PoolKey]string{pool("shop-a"): ""}, map[lb.PoolKey]string{pool("shop-b"): "shop/b"}},
	} {
		if err := p.KeepPools(ctx, step.changed); err != nil {
			t.Fatal(err)
		}
		if got, err := p.ReadPools(ctx); err != nil || !maps.Equal(got, step.want) {
			t.Errorf("%v, %v, want %v", got, err, step.want)
		}
	}
	if err := api.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil || m.Data[keyCluster] != "k" {
		t.Errorf("%v, %v", m.Data, err)
	}
	m.Data[keyReleasedPools] += "what is this\n/x shop/c\n"
	if err := api.Update(ctx, m); err != nil {
		t.Fatal(err)
	}
	if got, err := p.ReadPools(ctx); err != nil || len(got) != 1 || strings.Count(output.String(), "delete the line") != 2 {
		t.Errorf("%v, %v, %s", got, err, output.String())
	}
}
