// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net/netip"
	"testing"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
)

// What others have put into a pool is known by the record of its BackendPool, and where there
// is none by the nodes.
func TestWhatOthersHavePutIntoAPool(t *testing.T) {
	at := lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: "lb"}
	made := func(p *v1alpha1.BackendPool) { p.Status.MadeFor = v1alpha1.MadeForNodes }
	wrote := func(p *v1alpha1.BackendPool) { p.Status.WrittenAddresses = []string{"10.0.0.1", "10.0.0.8"} } // 8 is of a node that has gone
	for _, tt := range []struct {
		about string
		pool  string
		edits []func(*v1alpha1.BackendPool)
		want  string
	}{
		{"on record", "web", []func(*v1alpha1.BackendPool){made, took, wrote}, "[10.0.0.2 10.0.7.7]"},
		{"taken, and nothing on record", "web", []func(*v1alpha1.BackendPool){made, took}, "[10.0.0.1 10.0.0.2 10.0.0.8 10.0.7.7]"},
		{"made by Weir, and not taken yet", "web", []func(*v1alpha1.BackendPool){made}, "[]"},
		{"made by somebody, and not taken yet", "web", nil, "[10.0.0.8 10.0.7.7]"},
		{"without a BackendPool", "other", nil, "[10.0.0.8 10.0.7.7]"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			c := loaded(t, bp("a", 0, tt.edits...), nodeAt("n1"), nodeAt("n2"))
			pool := lb.Pool{ID: lb.PoolID{LoadBalancer: at, Name: tt.pool}}
			for _, ip := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.8", "10.0.7.7"} {
				pool.Addresses = append(pool.Addresses, lb.Address{Name: ip, IP: netip.MustParseAddr(ip)})
			}
			pool.Addresses = append(pool.Addresses, lb.Address{Name: "an interface"})
			got, err := c.services.Foreign(t.Context(), pool)
			if fmt.Sprint(got) != tt.want || err != nil {
				t.Errorf("%v (%v), want %s", got, err, tt.want)
			}
		})
	}
}
