// SPDX-License-Identifier: Apache-2.0

// Package look decides when a read shows the end of a write, and when to read (docs/design/0054).
// It performs no I/O.
package look

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
)

// After has the delays of early reads. Azure's Retry-After is ten seconds, but a pool of addresses
// without machines takes one or two (51 of 51 recordings), a load balancer four.
var After = [...]time.Duration{2 * time.Second, 5 * time.Second}

// Tells reports whether the first poll shows how slow writes are: it followed the last early read,
// or found the end.
func Tells(over bool, after time.Duration) bool { return over || after >= After[len(After)-1] }

// PoolOver reports whether observed is the result of writing a pool; accepted is the etag of the
// acceptance.
func PoolOver(written lb.Pool, accepted string, observed lb.Pool) bool {
	return ended(observed.Provisioning, observed.Etag, accepted, written.Etag) && slices.Equal(members(written), members(observed))
}

// BalancerOver is PoolOver for a load balancer.
func BalancerOver(written lb.LoadBalancer, accepted string, observed lb.LoadBalancer) bool {
	return ended(observed.Provisioning, observed.Etag, accepted, written.Etag) && slices.Equal(parts(written), parts(observed))
}

// ended compares etags: a finished write changes the etag once more (recorded). Anything else is
// left to the poll: a read older than the write or its acceptance, or another client's write.
func ended(state lb.Provisioning, etag, accepted, before string) bool {
	return state == lb.Succeeded && etag != lb.NoEtag && etag != accepted && etag != before
}

func members(pool lb.Pool) []string {
	all := make([]string, len(pool.Addresses))
	for i, a := range pool.Addresses {
		all[i] = strings.ToLower(fmt.Sprint(a.IP, a.Interface, strings.EqualFold(a.AdminState, lb.Down)))
	}
	slices.Sort(all)
	return all
}

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

// mostSlow limits the remembered load balancers, because tenants choose their IDs.
const mostSlow = 1024

// Slow remembers load balancers for which an early read is wasted. The zero value is empty. It is
// safe for concurrent use.
type Slow struct {
	mu sync.Mutex
	of map[lb.LoadBalancerID]struct{}
}

// Is reports whether the last write of a load balancer was slow.
func (s *Slow) Is(id lb.LoadBalancerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, slow := s.of[id]
	return slow
}

// Learn records whether a write had finished at the first poll.
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
