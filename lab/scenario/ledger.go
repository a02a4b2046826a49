// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

var (
	errDead   = errors.New("the process is dead")
	errLedger = errors.New("the ledger cannot be written")
	errHeld   = errors.New("the BackendPool is paused")
)

// recorded returns the process's copy of a ledger entry. The caller holds s.mu.
func (p *process) recorded(ref poolschedule.Ref) poolwrite.Record {
	delete(p.learnt, ref) // now included
	known := p.ledger[ref]
	return poolwrite.Record{Written: slices.Clone(known.written), Down: slices.Clone(known.down), Managed: known.taken}
}

func (p *process) Record(_ context.Context, ref poolschedule.Ref, in poolwrite.Intent) error {
	s := p.stage
	p.awakeLast()
	if err := p.fence.CheckWrite(); err != nil {
		return err
	}
	if s.opts.together() { // several are written concurrently
		time.Sleep(s.turn(ref))
	}
	s.mu.Lock()
	b := s.cluster.byRef(ref)
	if p.dead || b == nil {
		s.mu.Unlock()
		return errDead
	}
	next := entry{slices.Clone(in.Written), slices.Clone(in.Down), !in.OnlyStates || p.ledger[ref].taken}
	if by := s.ledger.lag(); by > 0 {
		s.mu.Unlock()
		return p.saveLate(b, next, by)
	}
	defer s.mu.Unlock()
	next, err := p.save(b, next, "record")
	if err == nil {
		p.owns(b, next)
	}
	return err
}

// owns updates the process's copy of an entry. The caller holds s.mu.
func (p *process) owns(b *binding, next entry) {
	if !p.ledger[b.ref].taken {
		p.leaveToOthers(b)
	}
	p.ledger[b.ref] = next
	p.stage.reclaim(b, next)
}

// reclaim removes from the foreign addresses the nodes that returned to a pool, or that a previous
// BackendPool left in it. The caller holds s.mu.
func (s *Stage) reclaim(b *binding, next entry) {
	k := s.pools[b.pool.Key()]
	k.foreign = slices.DeleteFunc(k.foreign, func(f lb.Address) bool {
		return slices.Contains(next.written, f.IP) && s.cluster.has(f.IP)
	})
}

// save writes a ledger entry; a process can die here and the write can fail. It merges concurrent
// changes of another process and returns the result. The caller holds s.mu.
func (p *process) save(b *binding, next entry, kind string) (entry, error) {
	s := p.stage
	dies := p.kill.hit(call{kind: kind, pool: b.pool})
	if dies && !p.kill.after {
		p.strike(fmt.Sprintf("before the %s of %s", kind, b.pool.Name))
		return next, errDead
	}
	p.deposed("the ledger", b.pool.Name)
	s.journal.counts[kind]++
	next, err := p.united(b, next, kind)
	fails, applied := s.ledger.fails()
	if !fails || applied {
		p.stands(b, next)
	}
	if dies {
		p.strike(fmt.Sprintf("after the %s of %s", kind, b.pool.Name))
		return next, errDead
	}
	if !fails {
		return next, err
	}
	return next, p.notSaved(b, kind+" fails")
}

// stands stores an entry in the ledger and in the process. The caller holds s.mu.
func (p *process) stands(b *binding, next entry) {
	if !p.ledger[b.ref].taken {
		p.leaveToOthers(b)
	}
	if !slices.Equal(b.entry.written, next.written) || !slices.Equal(b.entry.down, next.down) || b.entry.taken != next.taken {
		b.version++ // no change, no request
	}
	b.entry = next
	p.versions[b.ref] = b.version
}

// notSaved records a failed ledger write. The caller holds s.mu.
func (p *process) notSaved(b *binding, how string) error {
	s, k := p.stage, p.stage.pools[b.pool.Key()]
	s.trace(b.pool.Name, "%s", how)
	k.trouble = later(k.trouble, time.Now().Add(s.opts.Interval)) // the next try comes then
	return errLedger
}

// leaveToOthers marks the members of a newly adopted pool as foreign, except nodes of an existing
// Service, since either may be deleted first. The caller holds s.mu.
func (p *process) leaveToOthers(b *binding) {
	k := p.stage.pools[b.pool.Key()]
	held, _ := p.stage.holds(k)
	for _, a := range held {
		if !foreignTo(k, a.IP) && (p.seen.gone(b) || !p.seen.has(a.IP)) {
			k.foreign = append(k.foreign, a)
		}
	}
}

func (p *process) ReportWait(w poolupdate.Waiting) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.former {
		return
	}
	k := s.pools[w.Pool.Key()]
	if w.Cause == poolupdate.CauseGate {
		k.trouble = later(k.trouble, w.Until)
	}
	switch { // a pool that waits is not attempted
	case k.looked():
		s.endLook(w.Pool.LoadBalancer, nil)
	case k.underWay() && k.attempt.together:
		s.putBack(k)
	}
	s.journal.texts = append(s.journal.texts, w.Message)
	until := ""
	if !w.Until.IsZero() {
		until = " until " + s.clock(w.Until)
	}
	s.trace(w.Pool.Name, "waits: %s%s", w.Cause, until)
}

// Report implements poolupdate.Reporter. A report of a dead process is dropped and recorded as a
// violation.
func (p *process) Report(_ context.Context, r poolupdate.Report) {
	s := p.stage
	goneBefore := p.without(r.Ref)
	slept := p.awake(r.Pool)
	s.mu.Lock()
	defer s.mu.Unlock()
	if slept && p.ctx.Err() != nil {
		return // it died before reporting
	}
	if p.former {
		p.reportsAsFormer(r)
		return
	}
	if !p.dead && p.fence.CheckWrite() != nil {
		return // neither event nor status is sent
	}
	if p.dead && r.InSync && p.knew[r.Pool.Key()] {
		return // it died writing the entry or report of another pool in the same batch
	}
	if p.dead {
		s.journal.posthumous = append(s.journal.posthumous, fmt.Sprintf("%s: %s", r.Pool.Name, r.Outcome))
		return
	}
	if p.stopping && !r.InSync && len(r.Retrying)+len(r.Failed) > 0 {
		s.journal.posthumous = append(s.journal.posthumous, fmt.Sprintf("%s: %s", r.Pool.Name, r.Outcome))
	}
	p.note(r, slept && !goneBefore)
	b := s.cluster.byRef(r.Ref)
	if b == nil {
		return
	}
	if s.ledger.slow > 0 || !s.ledger.acts() {
		b.notBefore, b.told = r.NextEligibleAt, b.told.after(r)
	}
	if r.InSync {
		next := entry{slices.Clone(r.Written), slices.Clone(r.Down), true}
		next, _ = p.save(b, next, "report") // a failure is written with the next entry
		p.owns(b, next)
	}
	if b.deleting && !p.dead {
		p.removed(b, r)
	}
}

// without reports whether the Service of a BackendPool is deleted or being deleted.
func (p *process) without(ref poolschedule.Ref) bool {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	b := p.stage.cluster.byRef(ref)
	return b == nil || p.seen.gone(b) || b.deleting
}

// tell stores the events and writes the trace line.
func (s *Stage) tell(k *pool, r poolupdate.Report) {
	text := string(r.Outcome)
	if r.Resync {
		text = "looked for drift: " + text
	}
	if r.Fault != nil {
		text += " " + r.Fault.Code
		for err := error(r.Fault); err != nil; err = errors.Unwrap(err) { // the SDK's error contains the request
			s.journal.texts = append(s.journal.texts, fmt.Sprintf("%+v", err))
		}
	}
	if k.words == nil {
		k.words = map[string]string{}
	}
	for _, said := range saidOf(r) {
		for _, name := range said.to {
			k.words[name.Name] = said.word
			s.journal.events = append(s.journal.events, event{name.Name, said.word})
			text += "; told " + name.Name + " " + said.word
		}
	}
	text += spellAdmin(s, r)
	if len(r.Conflicting) > 0 {
		text += fmt.Sprintf("; contested %v", r.Conflicting)
	}
	if len(r.Updated) > 0 {
		s.journal.success++
	}
	if len(r.Failed) > 0 {
		s.journal.failure++
	}
	if r.WillRetry {
		text += fmt.Sprintf("; retry %d of %d", r.RetriesUsed, r.Budget)
		if !r.RetryAt.IsZero() {
			text += " at " + s.clock(r.RetryAt)
		}
		if !r.NextEligibleAt.IsZero() {
			text += ", parked until " + s.clock(r.NextEligibleAt)
		}
	}
	s.trace(r.Pool.Name, "%s", text)
}

// spellAdmin formats the admin states of a report.
func spellAdmin(s *Stage, r poolupdate.Report) string {
	text := ""
	for _, change := range []struct {
		how string
		ips []netip.Addr
	}{{"Down", r.MarkedDown}, {"back", r.MarkedUp}} {
		if len(change.ips) > 0 {
			text += fmt.Sprintf("; %s %v", change.how, change.ips)
		}
	}
	switch {
	case r.AdminFailed:
		text += "; admin states: failed"
	case r.AdminDone:
		text += "; admin states: done"
	}
	if !r.AdminRetryAt.IsZero() {
		text += "; admin states again at " + s.clock(r.AdminRetryAt)
	}
	return text
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
