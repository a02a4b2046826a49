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

// joint is an attempt of several pools by one write of their load balancer. Which they are
// the process says by asking whether their operations are relevant.
type joint struct {
	asked []*pool
	pools []*pool
	phase string
	sent  int
	// answered is true while the process has the answer to the last that it asked for, and
	// settles the pools, or records what it is about to write.
	answered bool
}

// jointOf returns what is known of such attempts on a load balancer. The caller holds s.mu.
func (s *Stage) jointOf(id lb.LoadBalancerID) *joint {
	j := s.joints[id.Key()]
	if j == nil {
		j = &joint{}
		s.joints[id.Key()] = j
	}
	return j
}

// GetLoadBalancer implements poolattempt.Balancers.
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

// answeredTogether returns the pools of writes of several whose process has the last answer. The
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

// mends returns the attempt of one pool that reads its load balancer because that is Failed: what
// it meets there is no answer to any pool. Nil if there is none. The caller holds s.mu.
func (s *Stage) mends(id lb.LoadBalancerID) *attempt {
	for _, k := range s.lane(id) {
		if k.underWay() && k.attempt.phase == "put" && k.last.parent {
			return k.attempt
		}
	}
	return nil
}

// beginTogether begins an attempt of all pools that were asked for. The caller holds s.mu.
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
		if a := k.attempt; first.IsZero() && a != nil && a.together { // it is read once more
			first = a.first
		}
		k.attempt, k.last = &attempt{added: k.added, admin: k.admin, phase: "get", first: first, together: true}, answer{}
		k.begun, k.waits, k.first, k.putOff, k.admin = now, time.Time{}, time.Time{}, time.Time{}, false
	}
}

// PutLoadBalancer implements poolattempt.Balancers.
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
	j.pools = slices.DeleteFunc(j.pools, func(k *pool) bool { // one that was not found goes by itself
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
	if err != nil && mending != nil { // it is nobody's attempt, and may have failed for all pools
		for _, k := range s.lane(b.ID) {
			k.drifts()
		}
	}
	return shown, err
}

// wholeCall says what a request about a load balancer is for; ok is false for any other. The
// caller holds s.mu.
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

// who names what a call is about.
func (c call) who() string {
	if c.joint != nil {
		return c.pool.LoadBalancer.Name
	}
	return c.pool.Name
}

// about returns the pools that a call is about: of a joint attempt those that are not
// settled. The caller holds s.mu.
func (s *Stage) about(c call) []*pool {
	if c.joint != nil {
		return slices.DeleteFunc(slices.Clone(c.joint.pools), func(k *pool) bool { return k.attempt == nil })
	}
	if k := s.pools[c.pool.Key()]; k != nil {
		return []*pool{k}
	}
	return nil
}

// turn is how much later the record of a BackendPool comes than those of the same instant,
// so that they come in their order.
func (s *Stage) turn(ref poolschedule.Ref) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.sorted(), func(k *pool) bool { return k.id.Name == ref.Name })
	return time.Duration(i+1) * time.Microsecond
}

// looked reports whether a pool was read with others. A look that did not tell enough of it ends
// without a word, and an attempt follows. The caller holds the stage's mu.
func (k *pool) looked() bool { return k.attempt != nil && k.attempt.read }

// endLook ends the attempts of pools that were read with others, when one of the lane begins: the look
// did not tell enough of them. The caller holds s.mu.
func (s *Stage) endLook(id lb.LoadBalancerID, but *pool) {
	for _, k := range s.lane(id) {
		if k != but && k.looked() {
			s.putBack(k)
		}
	}
}

// putBack ends an attempt that was none: what it took waits again, but for a look for drift. The caller holds s.mu.
func (s *Stage) putBack(k *pool) {
	k.comesBack()
	if first := k.attempt.first; !first.IsZero() {
		if k.first = first; !k.attempt.orphan && s.kept(k) {
			k.waits = time.Now()
		}
	}
	k.attempt, k.ended = nil, time.Now()
}

// asks notes that an operation is about to be attempted. The caller holds s.mu.
func (s *Stage) asks(op poolschedule.Operation, k *pool) {
	j := s.jointOf(op.Pool.LoadBalancer)
	for _, other := range j.asked {
		if other == k {
			return
		}
	}
	j.asked = append(j.asked, k)
}

// answers notes that what was asked for was the end of an attempt. The caller holds s.mu.
func (s *Stage) answers(k *pool) {
	j := s.jointOf(k.id.LoadBalancer)
	j.asked = slices.DeleteFunc(j.asked, func(other *pool) bool { return other == k })
}
