// SPDX-License-Identifier: Apache-2.0

// Package machinerules remembers the rules that Azure counts for a network interface: the load balancing and
// inbound NAT rules of all pools that it is in, on a public load balancer and on its internal twin.
package machinerules

import (
	"strings"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
)

// Book has the counts of a cluster's load balancers. The zero value has none. Its methods may be called from any
// goroutine.
type Book struct {
	mu    sync.Mutex
	shown map[string]plan.Counts // by the load balancer's name in lower case
	// claimed are those of writes whose end is not known yet.
	claimed map[string]plan.Counts
}

// twins is the same for a public load balancer and its internal twin.
func twins(name string) string { return strings.TrimSuffix(strings.ToLower(name), "-internal") }

// Saw notes what Azure shows of a load balancer; nothing of one without an etag.
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

// Beside returns the rules of the twin of a load balancer, those that are just being written included.
func (b *Book) Beside(name string) plan.Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.besideLocked(name)
}

func (b *Book) besideLocked(name string) plan.Counts {
	beside := plan.Counts{}
	for _, all := range []map[string]plan.Counts{b.shown, b.claimed} {
		for other, counts := range all {
			if other == strings.ToLower(name) || twins(other) != twins(name) {
				continue
			}
			for pool, n := range counts {
				beside[pool] = max(beside[pool], n)
			}
		}
	}
	return beside
}

// Claim notes what is about to be written. It returns false, and notes nothing, if the twin has got rules since this
// was planned, and machines would have too many.
func (b *Book) Claim(was, next lb.LoadBalancer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	had, beside := plan.CountRules(was), b.besideLocked(next.ID.Name)
	for pool, n := range plan.CountRules(next) {
		if n > had[pool] && n+beside[pool] > lb.MaxMachineRules {
			return false
		}
	}
	if b.claimed == nil {
		b.claimed = map[string]plan.Counts{}
	}
	b.claimed[strings.ToLower(next.ID.Name)] = plan.CountRules(next)
	return true
}

// Used returns the highest number of rules that machines have, by the name of their public load balancer.
func (b *Book) Used() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := map[string]int{}
	for name, counts := range b.shown {
		beside := b.besideLocked(name)
		for pool, n := range counts {
			used[twins(name)] = max(used[twins(name)], n+beside[pool])
		}
	}
	return used
}
