// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// joint is an attempt of several pools with one load balancer write. The pools are those whose
// operations the process queried.
type joint struct {
	asked []*pool
	pools []*pool
	phase string
	sent  int
	// answered: the process has the last response and is resolving the pools or recording its next
	// write.
	answered bool
}

// jointOf returns the joint attempt on a load balancer. The caller holds s.mu.
func (s *Stage) jointOf(id lb.LoadBalancerID) *joint {
	j := s.joints[id.Key()]
	if j == nil {
		j = &joint{}
		s.joints[id.Key()] = j
	}
	return j
}

func (p *process) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	s := p.stage
	if p.isFormer() {
		return p.client.GetLoadBalancer(ctx, id)
	}
	s.mu.Lock()
	j, mending := s.jointOf(id), s.mends(id)
	switch {
	case p.follows(id, j):
	case len(j.asked) > 0 && !p.dead:
		s.beginTogether(j)
	case mending != nil:
		j.pools, j.phase, j.sent = nil, "check", 0
	default:
		j.phase, j.sent = "check", 0
	}
	j.answered = false
	s.mu.Unlock()
	read, err := p.client.GetLoadBalancer(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	j.answered = err == nil
	for _, k := range s.about(call{joint: j}) {
		k.attempt.read = k.attempt.together && k.attempt.phase == "get"
	}
	if mending != nil {
		mending.mends = err == nil && read.Provisioning == lb.Failed
	}
	return read, err
}

// answeredTogether returns the pools of batched updates whose process has the last response. The
// caller holds s.mu.
func (s *Stage) answeredTogether() map[lb.PoolKey]bool {
	known := map[lb.PoolKey]bool{}
	for key, k := range s.pools {
		if k.underWay() && k.attempt.known {
			known[key] = true
		}
	}
	for _, j := range s.joints {
		if !j.answered {
			continue
		}
		for _, k := range s.about(call{joint: j}) {
			if k.attempt.together {
				known[k.id.Key()] = true
			}
		}
	}
	return known
}

// mends returns the single-pool attempt that repairs its Failed load balancer, or nil. Responses it
// gets are not about a pool. The caller holds s.mu.
func (s *Stage) mends(id lb.LoadBalancerID) *attempt {
	for _, k := range s.lane(id) {
		if k.underWay() && k.attempt.phase == "put" && k.last.parent {
			return k.attempt
		}
	}
	return nil
}

// beginTogether begins an attempt for all queried pools. The caller holds s.mu.
func (s *Stage) beginTogether(j *joint) {
	j.pools, j.asked, j.phase, j.sent = j.asked, nil, "get", 0
	now := time.Now()
	s.journal.hasty = append(s.journal.hasty, s.passes(j.pools[0], now)...)
	for _, k := range j.pools {
		k.comesBack()
	}
	s.passedBy(j.pools...)
	for _, k := range j.pools {
		if k.again.After(now) && !k.admin {
			s.journal.hasty = append(s.journal.hasty, fmt.Sprintf("%s is tried again at %s, and not at %s", k.id.Name, s.clock(now), s.clock(k.again)))
		}
		first := k.first
		if a := k.attempt; first.IsZero() && a != nil && a.together { // read once more
			first = a.first
		}
		k.attempt, k.last = &attempt{added: k.added, admin: k.admin, phase: "get", first: first, together: true}, answer{}
		k.begun, k.waits, k.first, k.putOff, k.admin = now, time.Time{}, time.Time{}, time.Time{}, false
	}
}

func (p *process) PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	s := p.stage
	if p.isFormer() {
		return p.client.PutLoadBalancer(ctx, b)
	}
	s.mu.Lock()
	j := s.jointOf(b.ID)
	j.asked, j.phase, j.sent, j.answered = nil, "put", 0, false
	mending := s.mends(b.ID)
	if mending != nil {
		mending.mends = false
	}
	j.pools = slices.DeleteFunc(j.pools, func(k *pool) bool { // a missing pool is attempted separately
		return !slices.ContainsFunc(b.Pools, func(held lb.Pool) bool { return held.ID.Key() == k.id.Key() })
	})
	for _, k := range s.about(call{joint: j}) {
		k.attempt.phase, k.attempt.read = "put", false
	}
	p.starts(b.ID, "whole", false)
	s.mu.Unlock()
	shown, err := p.client.PutLoadBalancer(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.writing[b.ID.Key()]--
	j.answered = err == nil
	if err != nil && mending != nil { // no pool's attempt, but it may have failed for all of them
		for _, k := range s.lane(b.ID) {
			k.drifts()
		}
	}
	return shown, err
}

// wholeCall classifies a load balancer request; ok is false for other requests. The caller holds
// s.mu.
func (s *Stage) wholeCall(req *http.Request, c call) (_ call, ok bool) {
	id, polls := lb.LoadBalancerID{}, false
	if operation, is := operationIn(req.URL.Path); is {
		if id, polls = s.journal.wholes[operation]; !polls {
			return c, false
		}
	}
	for _, b := range s.balances {
		if !polls && strings.EqualFold(req.URL.Path, b.String()) {
			id = b
		}
	}
	if id.Name == "" {
		return c, false
	}
	j := s.jointOf(id)
	c.pool, c.joint = lb.PoolID{LoadBalancer: id}, j
	if polls {
		c.kind = "poll"
		return c, true
	}
	switch j.sent++; {
	case j.phase == "put" && c.kind == http.MethodGet:
		c.kind = "result"
	case j.sent > 1:
		c.again = true
	}
	for _, k := range j.pools {
		if how := s.closedFor(k, c); how != "" && k.underWay() && j.phase != "check" {
			c.closed = how
		}
	}
	return c, true
}

// who names the target of a call.
func (c call) who() string {
	if c.joint != nil {
		return c.pool.LoadBalancer.Name
	}
	return c.pool.Name
}

// about returns the pools of a call; for a joint attempt, the unresolved ones. The caller holds
// s.mu.
func (s *Stage) about(c call) []*pool {
	if c.joint != nil {
		return slices.DeleteFunc(slices.Clone(c.joint.pools), func(k *pool) bool { return k.attempt == nil })
	}
	if k := s.pools[c.pool.Key()]; k != nil {
		return []*pool{k}
	}
	return nil
}

// turn delays the record of a BackendPool so that records of the same instant are ordered.
func (s *Stage) turn(ref poolschedule.Ref) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sorted(), func(k *pool) bool { return k.id.Name == ref.Name })
	return time.Duration(i+1) * time.Microsecond
}

// looked reports whether a pool was read in a batch. If that read is insufficient, it ends without
// a report and an attempt follows. The caller holds the stage's mu.
func (k *pool) looked() bool { return k.attempt != nil && k.attempt.read }

// endLook ends the batch reads of a worker's pools when one of them begins an attempt. The caller
// holds s.mu.
func (s *Stage) endLook(id lb.LoadBalancerID, but *pool) {
	for _, k := range s.lane(id) {
		if k != but && k.looked() {
			s.putBack(k)
		}
	}
}

// putBack voids an attempt and requeues its work, except drift reads. The caller holds s.mu.
func (s *Stage) putBack(k *pool) {
	k.comesBack()
	if first := k.attempt.first; !first.IsZero() {
		if k.first = first; !k.attempt.orphan && s.kept(k) {
			k.waits = time.Now()
		}
	}
	k.attempt, k.ended = nil, time.Now()
}

// asks records that an operation is about to be attempted. The caller holds s.mu.
func (s *Stage) asks(op poolschedule.Operation, k *pool) {
	j := s.jointOf(op.Pool.LoadBalancer)
	for _, other := range j.asked {
		if other == k {
			return
		}
	}
	j.asked = append(j.asked, k)
}

// answers records that the query was made at the end of an attempt. The caller holds s.mu.
func (s *Stage) answers(k *pool) {
	j := s.jointOf(k.id.LoadBalancer)
	j.asked = slices.DeleteFunc(j.asked, func(other *pool) bool { return other == k })
}
