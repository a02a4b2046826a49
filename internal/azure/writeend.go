// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
)

// readDelays has the delays of early reads. Azure's Retry-After is ten seconds, but a pool of addresses
// without machines takes one or two (51 of 51 recordings), a load balancer four.
var readDelays = [...]time.Duration{2 * time.Second, 5 * time.Second}

// isReadConclusive reports whether the first poll shows how slow writes are: it followed the last early read,
// or found the end.
func isReadConclusive(over bool, after time.Duration) bool {
	return over || after >= readDelays[len(readDelays)-1]
}

// isPoolFinished reports whether observed is the result of writing a pool; accepted is the etag of the
// acceptance.
func isPoolFinished(written lb.Pool, accepted string, observed lb.Pool) bool {
	return isWriteFinished(observed.Provisioning, observed.Etag, accepted, written.Etag) && slices.Equal(memberKeys(written), memberKeys(observed))
}

// isLoadBalancerFinished is isPoolFinished for a load balancer.
func isLoadBalancerFinished(written lb.LoadBalancer, accepted string, observed lb.LoadBalancer) bool {
	return isWriteFinished(observed.Provisioning, observed.Etag, accepted, written.Etag) && slices.Equal(itemNames(written), itemNames(observed))
}

// isWriteFinished compares etags: a finished write changes the etag once more (recorded). Anything else is
// left to the poll: a read older than the write or its acceptance, or another client's write.
func isWriteFinished(state lb.Provisioning, etag, accepted, before string) bool {
	return state == lb.Succeeded && etag != lb.NoEtag && etag != accepted && etag != before
}

func memberKeys(pool lb.Pool) []string {
	keys := make([]string, len(pool.Addresses))
	for i, a := range pool.Addresses {
		keys[i] = strings.ToLower(fmt.Sprint(a.IP, a.Interface, strings.EqualFold(a.AdminState, lb.Down)))
	}
	slices.Sort(keys)
	return keys
}

func itemNames(b lb.LoadBalancer) []string {
	var names []string
	part := func(kind, name string) { names = append(names, kind+strings.ToLower(name)) }
	for _, f := range b.Frontends {
		part("frontend ", f.Name)
	}
	for _, p := range b.Pools {
		part("pool ", p.ID.Name+strings.Join(memberKeys(p), " "))
	}
	for _, p := range b.Probes {
		part("probe ", p.Name)
	}
	for _, r := range b.Rules {
		part("rule ", r.Name)
	}
	slices.Sort(names)
	return names
}

// maxSlow limits the remembered load balancers, because tenants choose their IDs.
const maxSlow = 1024

// slowWrites remembers load balancers for which an early read is wasted. The zero value is empty. It is
// safe for concurrent use.
type slowWrites struct {
	mu  sync.Mutex
	ids map[lb.LoadBalancerID]struct{}
}

// IsSlow reports whether the last write of a load balancer was slow.
func (s *slowWrites) IsSlow(id lb.LoadBalancerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, slow := s.ids[id]
	return slow
}

// RecordPoll records whether a write had finished at the first poll.
func (s *slowWrites) RecordPoll(id lb.LoadBalancerID, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over {
		delete(s.ids, id)
		return
	}
	if s.ids == nil || len(s.ids) >= maxSlow {
		s.ids = map[lb.LoadBalancerID]struct{}{}
	}
	s.ids[id] = struct{}{}
}
