// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
)

// store is a record that can fail writes.
type store struct {
	of     LeftPoolRecord
	broken bool
}

func (s *store) ReadPools(context.Context) (map[lb.PoolKey]string, error) {
	return maps.Clone(s.of), nil
}

func (s *store) KeepPools(_ context.Context, changed map[lb.PoolKey]string) error {
	if s.broken {
		return errors.New("the API server is away")
	}
	for key, service := range changed {
		if s.of[key] = service; service == "" {
			delete(s.of, key)
		}
	}
	return nil
}

func TestTheRecordOfALoadBalancer(t *testing.T) {
	on := lb.LoadBalancerID{SubscriptionID: "S", ResourceGroup: "rg", Name: "Kubernetes"}
	other := lb.LoadBalancerID{SubscriptionID: "S", ResourceGroup: "rg", Name: "kubernetes-internal"}
	key := func(id lb.LoadBalancerID, name string) lb.PoolKey {
		return lb.PoolID{LoadBalancer: id, Name: name}.Key()
	}
	s := &store{of: LeftPoolRecord{key(on, "Shop-B"): "shop/b", key(on, "shop-a"): "shop/a", key(other, "shop-c"): "shop/c"}}
	k := NewLeftPoolTracker(s)
	names := func() []string {
		r, err := k.LoadRecord(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r.NamesOn(on)
	}
	if got := names(); !slices.Equal(got, []string{"shop-a", "shop-b"}) {
		t.Errorf("%q", got)
	}
	s.broken = true
	if err := k.ForgetPools(t.Context(), []lb.PoolKey{key(on, "shop-b")}); err == nil || len(names()) != 2 {
		t.Errorf("%v, and on record are %q", err, names())
	}
	s.broken = false
	if err := k.ForgetPools(t.Context(), []lb.PoolKey{key(on, "shop-b")}); err != nil || !slices.Equal(names(), []string{"shop-a"}) || len(s.of) != 2 {
		t.Errorf("%v, and on record are %q", err, names())
	}
}
