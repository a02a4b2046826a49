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
	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/pool/updater"
)

// The leader lease, as in weir-controller.
const (
	leaderFor     = 15 * time.Second
	renewDeadline = 10 * time.Second
	renewEvery    = 2 * time.Second
	// noticeDelay is how soon a resumed process notices that it lost leadership.
	noticeDelay = time.Second
)

type leaderLease struct {
	holder      *process
	transitions int
	renewedAt   time.Time
}

// electLeader makes a process the leader and renews its lease until it ends. With one replica there is no
// election.
func (s *Stage) electLeader(p *process) {
	if s.opts.Replicas < 2 {
		return
	}
	s.mu.Lock()
	now := time.Now()
	s.leaderLease = leaderLease{p, s.leaderLease.transitions + 1, now}
	p.epoch = leader.Epoch{Lease: "weir-system/weir", TransitionCount: s.leaderLease.transitions, AcquireTime: now.UnixMicro()}
	s.mu.Unlock()
	p.fence.RecordRenew(p.epoch, p.fence.ReadClock())
	s.runLater(func() {
		for waitFor(renewEvery, p.ctx.Done()) {
			p.waitAllRunning()
			requestedAt := p.fence.ReadClock()
			if waitLatency(p.ctx, requestLatency) != nil {
				return
			}
			if !p.renewLease(requestedAt) {
				p.stopLeading()
				return
			}
		}
	})
}

// renewLease renews the leader lease and reports whether the process still leads.
func (p *process) renewLease(requestedAt time.Duration) bool {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaderLease.holder != p {
		p.fence.EndTerm(fmt.Errorf("its lease is held by %q", s.leaderLease.holder.name))
		return false
	}
	if p.killed || p.isStopping || p.fence.EndReason() != nil {
		return false
	}
	s.leaderLease.renewedAt = time.Now()
	p.fence.RecordRenew(p.epoch, requestedAt)
	return true
}

// electStandby makes the second replica leader once the lease of a frozen leader expired. The caller
// holds s.mu.
func (s *Stage) electStandby(p *process) {
	if s.opts.Replicas < 2 || p.isOldLeader {
		return
	}
	s.runLater(func() {
		for {
			time.Sleep(renewEvery)
			s.mu.Lock()
			leads := s.process != p || p.resumeSignal == nil && p.fence.EndReason() == nil
			ranOut := !leads && time.Since(s.leaderLease.renewedAt) >= leaderFor
			if ranOut {
				s.addLine("weir", "another leads: the lease of %s has run out", p.name)
				p.isOldLeader, p.killAt, p.watchDelays, s.process = true, nil, map[object]*watchDelay{}, nil
				s.oldLeaderNames = append(s.oldLeaderNames, p.name)
				s.resetProcessState()
				maps.DeleteFunc(s.lockedBy, func(_ lb.LoadBalancerKey, by *process) bool { return by == p })
			}
			s.mu.Unlock()
			if ranOut {
				if err := s.startFirst(); err != nil {
					panic(err) // the first one started
				}
			}
			if leads || ranOut {
				return
			}
		}
	})
}

// checkLeadership stops a resumed process that lost leadership.
func (p *process) checkLeadership() {
	if p.fence == nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, noticeDelay)
	defer cancel()
	p.fence.Watch(ctx, func(error) { p.stopLeading() })
}

// stopLeading stops a process that noticed its loss of leadership.
func (p *process) stopLeading() {
	s := p.stage
	p.waitAllRunning()
	s.mu.Lock()
	if p.killed || p.isStopping {
		s.mu.Unlock()
		return
	}
	p.startShutdown("")
	s.mu.Unlock()
	<-p.stopDone
	s.mu.Lock()
	p.killNow("")
	s.mu.Unlock()
}

// hasSuccessor reports whether another process became leader. The caller does not hold s.mu.
func (p *process) hasSuccessor() bool {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	return p.isOldLeader
}

// recordOldLeaderWrite records a write of a former leader. A stopping process sends nothing. The caller holds
// s.mu.
func (p *process) recordOldLeaderWrite(request, where string) {
	if p.isOldLeader && p.ctx.Err() == nil {
		s := p.stage
		s.history.oldLeaderWrites = append(s.history.oldLeaderWrites, fmt.Sprintf("%s writes %s of %s at %s, and %s leads", p.name, request, where, s.formatTime(time.Now()), s.leaderName()))
	}
}

func (s *Stage) leaderName() string {
	if s.process == nil {
		return "another"
	}
	return s.process.name
}

// checkFence rejects a write after the lease expired, as the real connections do for every byte
// (internal/azure.go).
func (p *process) checkFence(req *http.Request) error {
	if p.fence == nil || req.Method == http.MethodGet {
		return nil
	}
	return p.fence.CheckWrite()
}

// oldLeaderCall classifies a request of a former leader; its attempts are not tracked. The caller
// holds s.mu.
func (p *process) oldLeaderCall(req *http.Request) call {
	s := p.stage
	s.history.sent++
	c := call{id: strconv.Itoa(s.history.sent), at: time.Now(), kind: req.Method, pool: s.requestPool(req).id}
	req.Header.Set("X-Ms-Client-Request-Id", c.id)
	if _, ok := operationID(req.URL.Path); ok {
		c.kind = "poll"
	} else if c.kind == http.MethodPut {
		p.recordOldLeaderWrite("a pool", c.pool.Name)
	}
	return c
}

// reportOldLeader records a ledger write of a former leader as a violation. The caller holds s.mu.
func (p *process) reportOldLeader(r updater.Report) {
	if r.InSync && !p.killed && p.fence.CheckWrite() == nil {
		p.recordOldLeaderWrite("the ledger", r.Pool.Name)
	}
}

func checkLeader(s *Stage) []string { return s.history.oldLeaderWrites }
