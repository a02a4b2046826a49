// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"strings"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
)

// usageCounter holds the counts of a cluster's load balancers. The zero value is empty. Its methods are safe for
// concurrent use.
type usageCounter struct {
	mu            sync.Mutex
	observed      map[string]plan.Counts // by lower-case load balancer name
	pendingWrites map[string]plan.Counts
	// balancers are without members; members has their usages.
	balancers map[string]lb.LoadBalancer
	members   map[string][]plan.LimitUsage
}

// peerKey returns the same key for a public load balancer and its internal twin.
func peerKey(name string) string { return strings.TrimSuffix(strings.ToLower(name), "-internal") }

// RecordState records the observed load balancer, or drops it if it has no etag.
func (c *usageCounter) RecordState(balancer lb.LoadBalancer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.observed == nil {
		c.observed, c.balancers, c.members = map[string]plan.Counts{}, map[string]lb.LoadBalancer{}, map[string][]plan.LimitUsage{}
	}
	name := strings.ToLower(balancer.ID.Name)
	delete(c.pendingWrites, name)
	if c.observed[name] = plan.CountRules(balancer); balancer.Etag == "" {
		delete(c.observed, name)
		delete(c.balancers, name)
		delete(c.members, name)
		return
	}
	c.members[name] = plan.ListMemberUsages(balancer)
	balancer.Origin, balancer.Pools, balancer.Probes = nil, nil, nil
	c.balancers[name] = balancer
}

// PeerCounts returns the rules of the twin, writes in progress included.
func (c *usageCounter) PeerCounts(name string) plan.Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peerCountsLocked(name)
}

func (c *usageCounter) peerCountsLocked(name string) plan.Counts {
	peer := plan.Counts{}
	for _, peers := range []map[string]plan.Counts{c.observed, c.pendingWrites} {
		for other, counts := range peers {
			if other == strings.ToLower(name) || peerKey(other) != peerKey(name) {
				continue
			}
			for pool, n := range counts {
				peer[pool] = max(peer[pool], n)
			}
		}
	}
	return peer
}

// ClaimRules records a write before it is sent. It returns false and records nothing if the twin has since gained
// rules and a machine would exceed the limit.
func (c *usageCounter) ClaimRules(observed, next lb.LoadBalancer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	rules, peer := plan.CountRules(observed), c.peerCountsLocked(next.ID.Name)
	for pool, n := range plan.CountRules(next) {
		if n > rules[pool] && n+peer[pool] > lb.MaxMachineRules {
			return false
		}
	}
	if c.pendingWrites == nil {
		c.pendingWrites = map[string]plan.Counts{}
	}
	c.pendingWrites[strings.ToLower(next.ID.Name)] = plan.CountRules(next)
	return true
}
