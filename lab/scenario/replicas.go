// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lead"
	"weir.dev/weir/internal/poolupdate"
)

// The leader lease, as in weir-controller.
const (
	leaderFor     = 15 * time.Second
	renewDeadline = 10 * time.Second
	renewEvery    = 2 * time.Second
	// noticedWithin is how soon a resumed process notices that it lost leadership.
	noticedWithin = time.Second
)

// leadersLease is the leader lease in the API.
type leadersLease struct {
	holder      *process
	transitions int
	renewed     time.Time
}

// elect makes a process the leader and renews its lease until it ends. With one replica there is no
// election.
func (s *Stage) elect(p *process) {
	if s.opts.Replicas < 2 {
		return
	}
	s.mu.Lock()
	now := time.Now()
	s.leader = leadersLease{p, s.leader.transitions + 1, now}
	p.epoch = lead.Epoch{Lease: "weir-system/weir", TransitionCount: s.leader.transitions, AcquireTime: now.UnixMicro()}
	s.mu.Unlock()
	p.fence.RecordRenew(p.epoch, p.fence.ReadClock())
	s.later(func() {
		for waited(renewEvery, p.ctx.Done()) {
			p.awakeLast()
			asked := p.fence.ReadClock()
			if travel(p.ctx, requestTakes) != nil {
				return
			}
			if !p.renews(asked) {
				p.endsLead()
				return
			}
		}
	})
}

// renews renews the leader lease and reports whether the process still leads.
func (p *process) renews(asked time.Duration) bool {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader.holder != p {
		p.fence.EndTerm(fmt.Errorf("its lease is held by %q", s.leader.holder.name))
		return false
	}
	if p.dead || p.stopping || p.fence.EndReason() != nil {
		return false
	}
	s.leader.renewed = time.Now()
	p.fence.RecordRenew(p.epoch, asked)
	return true
}

// standBy makes the second replica leader once the lease of a frozen leader expired. The caller
// holds s.mu.
func (s *Stage) standBy(p *process) {
	if s.opts.Replicas < 2 || p.former {
		return
	}
	s.later(func() {
		for {
			time.Sleep(renewEvery)
			s.mu.Lock()
			leads := s.process != p || p.asleep == nil && p.fence.EndReason() == nil
			ranOut := !leads && time.Since(s.leader.renewed) >= leaderFor
			if ranOut {
				s.trace("weir", "another leads: the lease of %s has run out", p.name)
				p.former, p.kill, p.lags, s.process = true, nil, map[object]*lag{}, nil
				s.former = append(s.former, p.name)
				s.forgetAll()
				maps.DeleteFunc(s.locked, func(_ lb.LoadBalancerKey, by *process) bool { return by == p })
			}
			s.mu.Unlock()
			if ranOut {
				if err := s.begin(); err != nil {
					panic(err) // the first one started
				}
			}
			if leads || ranOut {
				return
			}
		}
	})
}

// notice stops a resumed process that lost leadership.
func (p *process) notice() {
	if p.fence == nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, noticedWithin)
	defer cancel()
	p.fence.Watch(ctx, func(error) { p.endsLead() })
}

// endsLead stops a process that noticed its loss of leadership.
func (p *process) endsLead() {
	s := p.stage
	p.awakeLast()
	s.mu.Lock()
	if p.dead || p.stopping {
		s.mu.Unlock()
		return
	}
	p.resign("")
	s.mu.Unlock()
	<-p.ended
	s.mu.Lock()
	p.die("")
	s.mu.Unlock()
}

// isFormer reports whether another process became leader. The caller does not hold s.mu.
func (p *process) isFormer() bool {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	return p.former
}

// deposed records a write of a former leader. A stopping process sends nothing. The caller holds
// s.mu.
func (p *process) deposed(what, where string) {
	if p.former && p.ctx.Err() == nil {
		s := p.stage
		s.journal.deposed = append(s.journal.deposed, fmt.Sprintf("%s writes %s of %s at %s, and %s leads", p.name, what, where, s.clock(time.Now()), s.leaderName()))
	}
}

func (s *Stage) leaderName() string {
	if s.process == nil {
		return "another"
	}
	return s.process.name
}

// mayLeave rejects a write after the lease expired, as the real connections do for every byte
// (internal/azure/fencedtransport.go).
func (p *process) mayLeave(req *http.Request) error {
	if p.fence == nil || req.Method == http.MethodGet {
		return nil
	}
	return p.fence.CheckWrite()
}

// callOfFormer classifies a request of a former leader, whose attempts are not tracked. The caller
// holds s.mu.
func (p *process) callOfFormer(req *http.Request) call {
	s := p.stage
	s.journal.sent++
	c := call{id: strconv.Itoa(s.journal.sent), at: time.Now(), kind: req.Method, pool: s.poolOf(req).id}
	req.Header.Set("X-Ms-Client-Request-Id", c.id)
	if _, ok := operationIn(req.URL.Path); ok {
		c.kind = "poll"
	} else if c.kind == http.MethodPut {
		p.deposed("a pool", c.pool.Name)
	}
	return c
}

// reportsAsFormer records a ledger write of a former leader as a violation. The caller holds s.mu.
func (p *process) reportsAsFormer(r poolupdate.Report) {
	if r.InSync && !p.dead && p.fence.CheckWrite() == nil {
		p.deposed("the ledger", r.Pool.Name)
	}
}

func oneLeads(s *Stage) []string { return s.journal.deposed }
