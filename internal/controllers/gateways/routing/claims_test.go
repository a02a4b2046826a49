// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The oldest Gateway that claims a node port holds it, and exactly those with a change are returned.
func TestTheOldestGatewayHoldsANodePort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var claims Claims
		wanted := map[types.NamespacedName][]NodePort{}
		gateways := map[types.NamespacedName]*gatewayv1.Gateway{}
		for i := range 5 { // two of them have the same age
			gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("g%d", i), CreationTimestamp: metav1.NewTime(time.Unix(int64(i/2), 0))}}
			gateways[client.ObjectKeyFromObject(gw)] = gw
		}
		holder := func(p NodePort) (oldest types.NamespacedName) {
			for name, ports := range wanted {
				if slices.Contains(ports, p) && (oldest.Name == "" || ComparePrecedence(gateways[name], gateways[oldest]) < 0) {
					oldest = name
				}
			}
			return oldest
		}
		items := []NodePort{{"TCP", 1, false}, {"TCP", 1, true}, {"UDP", 1, false}, {"TCP", 2, false}}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			name := types.NamespacedName{Namespace: "shop", Name: rapid.SampledFrom([]string{"g0", "g1", "g2", "g3", "g4"}).Draw(t, "gateway")}
			ports := rapid.SliceOfNDistinct(rapid.SampledFrom(items), 0, len(items), rapid.ID).Draw(t, "ports")
			var want []types.NamespacedName
			before := map[NodePort]types.NamespacedName{}
			for _, p := range items {
				before[p] = holder(p)
			}
			wanted[name] = ports
			for _, p := range items {
				for _, other := range []types.NamespacedName{before[p], holder(p)} {
					if before[p] != holder(p) && other != name && other.Name != "" && !slices.Contains(want, other) {
						want = append(want, other)
					}
				}
			}
			var changed []types.NamespacedName
			if len(ports) == 0 {
				changed = claims.Remove(name)
			} else {
				changed = claims.Set(gateways[name].DeepCopy(), ports) // the cache replaces objects
			}
			compare := func(a, b types.NamespacedName) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) }
			slices.SortFunc(want, compare)
			slices.SortFunc(changed, compare)
			if !slices.Equal(changed, want) {
				t.Fatalf("%s claims %v: changed %v, want %v", name, ports, changed, want)
			}
			for _, p := range items {
				if got, _ := claims.Holder(p); got != holder(p) {
					t.Fatalf("%+v is held by %v, want %v", p, got, holder(p))
				}
			}
		}
	})
}
