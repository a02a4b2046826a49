// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"errors"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
)

// note persists the result of a request. The caller holds s.mu.
func (p *process) note(name string, r *record, cl *claim, res loadbalancer.Result) error {
	if res.CloseOnly {
		if cl.holds = &cl.closing; res.Err != nil {
			cl.holds, cl.closesAt = nil, time.Now().Add(5*time.Second)
			if f, ok := errors.AsType[*armerror.Fault](res.Err); ok && f.RetryAt.After(cl.closesAt) {
				cl.closesAt = f.RetryAt
			}
			if text := res.Err.Error(); text != cl.unclosed {
				p.stage.trace("%s: not closed: %s", name, text)
				cl.unclosed = text
			}
			p.later(name, cl, time.Until(cl.closesAt))
		}
		return nil
	}
	for _, id := range res.DeletedLoadBalancers {
		p.stage.trace("%s: nothing is left of %s", name, id.Name)
	}
	for _, k := range res.Retained {
		p.stage.trace("%s: %s", name, k)
	}
	for _, ip := range res.Unused {
		p.stage.trace("%s: %s", name, ip)
	}
	p.linked(name, r, cl, res)
	if res.Err != nil {
		return p.failed(name, cl, res.Err)
	}
	if cl.told = ""; res.Link.Err == nil {
		cl.fails = 0
	}
	if res.Message != "" {
		p.stage.trace("%s: note: %s", name, res.Message)
	}
	if len(res.FillingPools) > 0 {
		p.fillFirst(name, cl, res)
		return nil
	}
	p.keepPools(res)
	cl.empties = len(res.DrainingPools) > 0
	for _, e := range res.DrainingPools {
		if p.stage.trace("%s: %s", name, e); res.Desired != nil {
			defer func() { r.places = append(r.places, e.Pool.LoadBalancer.Name) }()
		}
	}
	if cl.empties {
		cl.waitsUntil = time.Now().Add(30 * time.Second)
		p.later(name, cl, 30*time.Second)
	}
	if (res.Desired == nil || res.NeedsDrain) && cl.empties {
		return nil
	}
	if res.Desired == nil {
		p.stage.release(name, cl)
		return nil
	}
	p.stage.contested(name, cl, res.Conflicts)
	r.places = []string{res.On.Name}
	if !slices.Equal(r.status, res.Addresses) {
		p.stage.trace("%s has %s on %s", name, spellAddresses(res.Addresses), res.On.Name)
	}
	r.status, cl.inSync, cl.labels = res.Addresses, res.Desired, cl.asked
	restriction := res.Desired.Restriction()
	cl.holds = &restriction
	r.groups, r.servedAt = groupsOf(res.Desired), time.Now()
	if r.links = p.stage.linkGroupsOf(res.Desired); res.Link.Err != nil || res.Link.IsIncomplete {
		r.links = res.LinkGroups
	}
	if res.Link.Err != nil {
		cl.inSync = nil
		return p.failed(name, cl, res.Link.Err)
	}
	p.stage.served(name)
	return nil
}

// contested traces conflicts once, and their end. The caller holds s.mu.
func (s *stage) contested(name string, cl *claim, contests []loadbalancer.Conflict) {
	for _, c := range contests {
		if !c.Until.IsZero() && !slices.ContainsFunc(cl.contests, func(o loadbalancer.Conflict) bool { return o.Resource == c.Resource && o.Until.Equal(c.Until) }) {
			s.trace("%s: contested in %s until %.0fs: %s", name, c.Resource, c.Until.Sub(s.start).Seconds(), strings.Join(c.Reverted, "; "))
		}
	}
	if len(cl.contests) > 0 && len(contests) == 0 {
		s.trace("%s: not contested any more", name)
	}
	cl.contests = contests
}

// failed traces an error and returns when to retry. The caller holds s.mu.
func (p *process) failed(name string, cl *claim, err error) error {
	text := err.Error()
	f, ok := errors.AsType[*armerror.Fault](err)
	if ok && f.IsDeferred() { // the reason is in the trace already
		return err
	}
	if ok && f.RetryAt.After(time.Now()) {
		cl.notBefore = f.RetryAt
		if cl.told != text {
			cl.told = text
			p.stage.trace("%s: %s; again at %.1fs", name, firstLine(text), f.RetryAt.Sub(p.stage.start).Seconds())
		}
		return nil
	}
	p.stage.tell(name, cl, text)
	return err
}

// tell traces a warning once. The caller holds s.mu.
func (s *stage) tell(name string, cl *claim, reason string) {
	if cl.told == reason {
		return
	}
	cl.told = reason
	s.trace("%s: %s", name, firstLine(reason))
}

// release removes a Service without parts. The caller holds s.mu.
func (s *stage) release(name string, cl *claim) {
	cl.inSync = nil
	s.trace("%s is gone", name)
	s.served(name)
	delete(s.services, name)
	delete(s.process.claims, name)
}

// served records when a Service was in sync. The caller holds s.mu.
func (s *stage) served(name string) {
	if s.took != nil {
		s.took[name] = time.Since(s.acted)
	}
}

// ensured receives the result of a request.
func (p *process) ensured(res loadbalancer.Result) {
	p.stage.mu.Lock()
	cl := p.claims[res.Service]
	if cl == nil || cl.owner != res.Owner {
		p.stage.mu.Unlock()
		return
	}
	cl.result, cl.running = &res, false
	p.stage.mu.Unlock()
	p.kick(res.Service)
}
