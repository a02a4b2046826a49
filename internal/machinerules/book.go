// SPDX-License-Identifier: Apache-2.0

// Package machinerules counts the rules that Azure counts per network interface: load balancing and inbound NAT
// rules of all its pools, on a public load balancer and its internal twin.
package machinerules

import (
	"strings"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
)

// Book holds the counts of a cluster's load balancers. The zero value is empty. Its methods are safe for
// concurrent use.
type Book struct {
	mu      sync.Mutex
	shown   map[string]plan.Counts // by lower-case load balancer name
	claimed map[string]plan.Counts
}

// twins returns the same key for a public load balancer and its internal twin.
func twins(name string) string { return strings.TrimSuffix(strings.ToLower(name), "-internal") }

// Saw records the observed load balancer, or drops it if it has no etag.
func (b *Book) Saw(balancer lb.LoadBalancer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown == nil {
		b.shown = map[string]plan.Counts{}
	}
	name := strings.ToLower(balancer.ID.Name)
	delete(b.claimed, name)
	if b.shown[name] = plan.CountRules(balancer); balancer.Etag == "" {
		delete(b.shown, name)
	}
}

// Beside returns the rules of the twin, writes in progress included.
func (b *Book) Beside(name string) plan.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.besideLocked(name)
}

func (b *Book) besideLocked(name string) plan.Counts {
	peer := plan.Counts{}
	for _, all := range []map[string]plan.Counts{b.shown, b.claimed} {
		for other, counts := range all {
			if other == strings.ToLower(name) || twins(other) != twins(name) {
				continue
			}
			for pool, n := range counts {
				peer[pool] = max(peer[pool], n)
			}
		}
	}
	return peer
}

// Claim records a write before it is sent. It returns false and records nothing if the twin has since gained
// rules and a machine would exceed the limit.
func (b *Book) Claim(was, next lb.LoadBalancer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	had, peer := plan.CountRules(was), b.besideLocked(next.ID.Name)
	for pool, n := range plan.CountRules(next) {
		if n > had[pool] && n+peer[pool] > lb.MaxMachineRules {
			return false
		}
	}
	if b.claimed == nil {
		b.claimed = map[string]plan.Counts{}
	}
	b.claimed[strings.ToLower(next.ID.Name)] = plan.CountRules(next)
	return true
}

// Used returns the highest rule count per machine, by public load balancer.
func (b *Book) Used() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := map[string]int{}
	for name, counts := range b.shown {
		peer := b.besideLocked(name)
		for pool, n := range counts {
			used[twins(name)] = max(used[twins(name)], n+peer[pool])
		}
	}
	return used
}
