// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/loadbalancer/dryrun"
)

// poolMoves are the existing rules of a plan that change their backend pool.
type poolMoves struct{ rules, balancers, newPools int }

func countPoolMoves(d dryrun.Changes) poolMoves {
	var n poolMoves
	for _, c := range d.LoadBalancers {
		old, pools := map[string]string{}, map[string]bool{}
		for _, r := range c.Before.Rules {
			old[strings.ToLower(r.Name)] = strings.ToLower(r.Pool)
		}
		for _, r := range c.After.Rules {
			to := strings.ToLower(r.Pool)
			if from, exists := old[strings.ToLower(r.Name)]; exists && from != to {
				n.rules++
				pools[to] = true
			}
		}
		if len(pools) == 0 {
			continue
		}
		n.balancers++
		for _, p := range c.Before.Pools {
			delete(pools, strings.ToLower(p.ID.Name))
		}
		n.newPools += len(pools)
	}
	return n
}

// costText describes the cost of the moves; "" if there are none.
func (p poolMoves) costText() string {
	if p.rules == 0 {
		return ""
	}
	text := fmt.Sprintf("%s change their backend pool, each after its new pool is filled: ", formatCount(p.rules, "rule"))
	if p.newPools > 0 {
		text += fmt.Sprintf("a write of each of %s creates %s, a write of each pool fills it, and another ", formatCount(p.balancers, "load balancer"), formatCount(p.newPools, "pool"))
	} else {
		text += "one "
	}
	return text + "write of each load balancer moves the rules. New connections always find members; open ones of these rules may end"
}
