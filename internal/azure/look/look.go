// SPDX-License-Identifier: Apache-2.0

// Package look knows when what Azure shows of a load balancer or a pool is the end of a write of it, and when
// it is worth looking (docs/design/0054). It sends nothing.
package look

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
)

// After is how long after its acceptance what was written is read, to see whether Azure is done.
// Azure wants to be asked for the operation after ten seconds. Where no machine is behind the addresses
// it is done with a pool after one or two (recorded 51 times of 51), and with a load balancer after four.
var After = [...]time.Duration{2 * time.Second, 5 * time.Second}

// Tells reports whether the first poll, so long after the acceptance, says how slow writes are: one that came before
// the last look would have says nothing, unless the write was over.
func Tells(over bool, after time.Duration) bool { return over || after >= After[len(After)-1] }

// PoolOver reports whether a pool shows that Azure is done with a write of it, of whose acceptance it knows the etag.
func PoolOver(written lb.Pool, accepted string, shown lb.Pool) bool {
	return ended(shown.Provisioning, shown.Etag, accepted, written.Etag) && slices.Equal(members(written), members(shown))
}

// BalancerOver is PoolOver of a load balancer.
func BalancerOver(written lb.LoadBalancer, accepted string, shown lb.LoadBalancer) bool {
	return ended(shown.Provisioning, shown.Etag, accepted, written.Etag) && slices.Equal(parts(written), parts(shown))
}

// ended reports whether what is shown is Azure's end of a write, which changes the etag once more
// (recorded of each write that answers Updating). What only looks like it is left to the poll: a read
// that is older than the write, one of its acceptance, and with other content somebody else's write.
func ended(state lb.Provisioning, etag, accepted, before string) bool {
	return state == lb.Succeeded && etag != lb.NoEtag && etag != accepted && etag != before
}

// members are what a write decides of a pool.
func members(pool lb.Pool) []string {
	all := make([]string, len(pool.Addresses))
	for i, a := range pool.Addresses {
		all[i] = strings.ToLower(fmt.Sprint(a.IP, a.Interface, strings.EqualFold(a.AdminState, lb.Down)))
	}
	slices.Sort(all)
	return all
}

// parts are the names of what a write puts into a load balancer, and the members of its pools.
func parts(b lb.LoadBalancer) []string {
	var all []string
	part := func(kind, name string) { all = append(all, kind+strings.ToLower(name)) }
	for _, f := range b.Frontends {
		part("frontend ", f.Name)
	}
	for _, p := range b.Pools {
		part("pool ", p.ID.Name+strings.Join(members(p), " "))
	}
	for _, p := range b.Probes {
		part("probe ", p.Name)
	}
	for _, r := range b.Rules {
		part("rule ", r.Name)
	}
	slices.Sort(all)
	return all
}

// mostSlow bounds what is remembered: the ids are of objects that tenants write.
const mostSlow = 1024

// Slow remembers load balancers a write of which still ran when its operation was first polled: a
// look before that costs a read and finds nothing.
// It is safe for concurrent use; its zero value remembers none.
type Slow struct {
	mu sync.Mutex
	of map[lb.LoadBalancerID]struct{}
}

// Is reports whether the last write of a load balancer took that long.
func (s *Slow) Is(id lb.LoadBalancerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, slow := s.of[id]
	return slow
}

// Learn takes in whether a write was over when its operation was first polled.
func (s *Slow) Learn(id lb.LoadBalancerID, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over {
		delete(s.of, id)
		return
	}
	if s.of == nil || len(s.of) >= mostSlow {
		s.of = map[lb.LoadBalancerID]struct{}{}
	}
	s.of[id] = struct{}{}
}
