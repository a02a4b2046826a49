// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/dryrun"
)

// Only existing rules with another pool count, and only pools that do not exist yet are new.
func TestRulesThatChangeTheirPool(t *testing.T) {
	state := func(pools []string, rules ...lb.Rule) lb.LoadBalancer {
		b := lb.LoadBalancer{Etag: "1", Rules: rules}
		for _, name := range pools {
			b.Pools = append(b.Pools, lb.Pool{ID: lb.PoolID{Name: name}})
		}
		return b
	}
	rule := func(name, pool string) lb.Rule { return lb.Rule{Name: name, Pool: pool} }
	var d dryrun.Changes
	d.LoadBalancers = append(d.LoadBalancers, dryrun.ResourceChange[lb.LoadBalancer]{
		Before: state([]string{"k", "shop-db"}, rule("a", "k"), rule("b", "k"), rule("c", "K"), rule("d", "k")),
		After:  state(nil, rule("A", "shop-web"), rule("b", "shop-web"), rule("c", "k"), rule("d", "Shop-DB"), rule("new", "shop-new")),
	}, dryrun.ResourceChange[lb.LoadBalancer]{Before: state([]string{"k"}, rule("e", "k")), After: state(nil, rule("e", "k"))})
	if got, want := countPoolMoves(d), (poolMoves{rules: 3, balancers: 1, newPools: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if text := countPoolMoves(dryrun.Changes{}).costText(); text != "" {
		t.Errorf("of nothing: %q", text)
	}
}
