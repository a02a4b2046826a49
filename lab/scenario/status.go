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
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

var (
	errProcessKilled = errors.New("the process is dead")
	errStatusWrite   = errors.New("the ledger cannot be written")
	errLeaseHeld     = errors.New("the BackendPool is paused")
)

// recordedEntry returns the process's copy of a ledger entry. The caller holds s.mu.
func (p *process) recordedEntry(ref schedule.Ref) diff.Record {
	delete(p.externalChanges, ref) // now included
	known := p.statusEntries[ref]
	return diff.Record{Written: slices.Clone(known.written), Down: slices.Clone(known.down), Adopted: known.taken}
}

func (p *process) Record(_ context.Context, ref schedule.Ref, in diff.Intent) error {
	s := p.stage
	p.waitAllRunning()
	if err := p.fence.CheckWrite(); err != nil {
		return err
	}
	s.mu.Lock()
	b := s.cluster.byRef(ref)
	if p.killed || b == nil {
		s.mu.Unlock()
		return errProcessKilled
	}
	next := statusEntry{slices.Clone(in.Written), slices.Clone(in.Down), !in.OnlyStates || p.statusEntries[ref].taken}
	if by := s.statusErrors.nextDelay(); by > 0 {
		s.mu.Unlock()
		return p.writeEntryAfter(b, next, by)
	}
	defer s.mu.Unlock()
	next, err := p.writeEntry(b, next, "record")
	if err == nil {
		p.setEntry(b, next)
	}
	return err
}

// setEntry updates the process's copy of an entry. The caller holds s.mu.
func (p *process) setEntry(b *backendPool, next statusEntry) {
	if !p.statusEntries[b.ref].taken {
		p.markForeign(b)
	}
	p.statusEntries[b.ref] = next
	p.stage.reclaimForeign(b, next)
}

// reclaimForeign removes from the foreign addresses the nodes that returned to a pool, or that a previous
// BackendPool left in it. The caller holds s.mu.
func (s *Stage) reclaimForeign(b *backendPool, next statusEntry) {
	k := s.pools[b.pool.Key()]
	k.foreign = slices.DeleteFunc(k.foreign, func(f lb.Address) bool {
		return slices.Contains(next.written, f.IP) && s.cluster.hasAddress(f.IP)
	})
}

// writeEntry writes a ledger entry; a process can die here and the write can fail. It merges concurrent
// changes of another process and returns the result. The caller holds s.mu.
func (p *process) writeEntry(b *backendPool, next statusEntry, kind string) (statusEntry, error) {
	s := p.stage
	dies := p.killAt.countHit(call{kind: kind, pool: b.pool})
	if dies && !p.killAt.after {
		p.killAtPoint(fmt.Sprintf("before the %s of %s", kind, b.pool.Name))
		return next, errProcessKilled
	}
	p.recordOldLeaderWrite("the ledger", b.pool.Name)
	s.history.counts[kind]++
	next, err := p.mergeConcurrent(b, next, kind)
	fails, applied := s.statusErrors.nextFailure()
	if !fails || applied {
		p.storeEntry(b, next)
	}
	if dies {
		p.killAtPoint(fmt.Sprintf("after the %s of %s", kind, b.pool.Name))
		return next, errProcessKilled
	}
	if !fails {
		return next, err
	}
	return next, p.recordWriteFailure(b, kind+" fails")
}

// storeEntry stores an entry in the ledger and in the process. The caller holds s.mu.
func (p *process) storeEntry(b *backendPool, next statusEntry) {
	if !p.statusEntries[b.ref].taken {
		p.markForeign(b)
	}
	if !slices.Equal(b.entry.written, next.written) || !slices.Equal(b.entry.down, next.down) || b.entry.taken != next.taken {
		b.version++ // no change, no request
	}
	b.entry = next
	p.versions[b.ref] = b.version
}

// recordWriteFailure records a failed ledger write. The caller holds s.mu.
func (p *process) recordWriteFailure(b *backendPool, how string) error {
	s, k := p.stage, p.stage.pools[b.pool.Key()]
	s.addLine(b.pool.Name, "%s", how)
	k.faultEnd = latest(k.faultEnd, time.Now().Add(s.opts.Interval)) // the next try comes then
	return errStatusWrite
}

// markForeign marks the members of a newly adopted pool as foreign, except node addresses of an
// existing Service: its BackendPool or its node may be deleted first. The caller holds s.mu.
func (p *process) markForeign(b *backendPool) {
	k := p.stage.pools[b.pool.Key()]
	held, _ := p.stage.azureAddresses(k)
	for _, a := range held {
		if !isForeignAddress(k, a.IP) && (p.cache.isServiceMissing(b) || !p.cache.hasNodeAddress(a.IP)) {
			k.foreign = append(k.foreign, a)
		}
	}
}

func (p *process) ReportWait(w updater.Waiting) {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.isOldLeader {
		return
	}
	k := s.pools[w.Pool.Key()]
	if w.Cause == updater.CauseGate {
		k.faultEnd = latest(k.faultEnd, w.Until)
	}
	switch { // a pool that waits is not attempted
	case k.isBatchRead():
		s.endBatchReads(w.Pool.LoadBalancer, nil)
	case k.isAttempted() && k.attempt.inBatch:
		s.voidAttempt(k)
	}
	s.history.messages = append(s.history.messages, w.Message)
	until := ""
	if !w.Until.IsZero() {
		until = " until " + s.formatTime(w.Until)
	}
	s.addLine(w.Pool.Name, "waits: %s%s", w.Cause, until)
}

// Report implements updater.Reporter. A report of a dead process is dropped and recorded as a
// violation.
func (p *process) Report(_ context.Context, r updater.Report) {
	s := p.stage
	goneBefore := p.isServiceDeleted(r.Ref)
	slept := p.waitRunning(r.Pool)
	s.mu.Lock()
	defer s.mu.Unlock()
	if slept && p.ctx.Err() != nil {
		return // it died before reporting
	}
	if p.isOldLeader {
		p.reportOldLeader(r)
		return
	}
	if !p.killed && p.fence.CheckWrite() != nil {
		return // neither event nor status is sent
	}
	if p.killed && r.InSync && p.resolvedPools[r.Pool.Key()] {
		return // it died writing the entry or report of another pool in the same batch
	}
	if p.killed {
		s.history.killedProcessReports = append(s.history.killedProcessReports, fmt.Sprintf("%s: %s", r.Pool.Name, r.Outcome))
		return
	}
	if p.isStopping && !r.InSync && len(r.Retrying)+len(r.Failed) > 0 {
		s.history.killedProcessReports = append(s.history.killedProcessReports, fmt.Sprintf("%s: %s", r.Pool.Name, r.Outcome))
	}
	p.recordReport(r, slept && !goneBefore)
	b := s.cluster.byRef(r.Ref)
	if b == nil {
		return
	}
	if s.statusErrors.slow > 0 || !s.statusErrors.isActive() {
		b.retryAfter, b.notification = r.NextEligibleAt, b.notification.afterReport(r)
	}
	if r.InSync {
		next := statusEntry{slices.Clone(r.Written), slices.Clone(r.Down), true}
		next, _ = p.writeEntry(b, next, "report") // a failure is written with the next entry
		p.setEntry(b, next)
	}
	if b.isDeleting && !p.killed {
		p.finishRemove(b, r)
	}
}

// isServiceDeleted reports whether the Service of a BackendPool is deleted or being deleted.
func (p *process) isServiceDeleted(ref schedule.Ref) bool {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	b := p.stage.cluster.byRef(ref)
	return b == nil || p.cache.isServiceMissing(b) || b.isDeleting
}

// recordEvents stores the events and writes the trace line.
func (s *Stage) recordEvents(k *pool, r updater.Report) {
	text := string(r.Outcome)
	if r.Resync {
		text = "looked for drift: " + text
	}
	if r.Fault != nil {
		text += " " + r.Fault.Code
		for err := error(r.Fault); err != nil; err = errors.Unwrap(err) { // the SDK's error contains the request
			s.history.messages = append(s.history.messages, fmt.Sprintf("%+v", err))
		}
	}
	if k.lastEvents == nil {
		k.lastEvents = map[string]string{}
	}
	for _, said := range reportEvents(r) {
		for _, name := range said.to {
			k.lastEvents[name.Name] = said.reason
			s.history.events = append(s.history.events, event{name.Name, said.reason})
			text += "; told " + name.Name + " " + said.reason
		}
	}
	text += formatAdminStates(s, r)
	if len(r.Conflicting) > 0 {
		text += fmt.Sprintf("; contested %v", r.Conflicting)
	}
	if len(r.Updated) > 0 {
		s.history.success++
	}
	if len(r.Failed) > 0 {
		s.history.failure++
	}
	if r.WillRetry {
		text += fmt.Sprintf("; retry %d of %d", r.RetriesUsed, r.Budget)
		if !r.RetryAt.IsZero() {
			text += " at " + s.formatTime(r.RetryAt)
		}
		if !r.NextEligibleAt.IsZero() {
			text += ", parked until " + s.formatTime(r.NextEligibleAt)
		}
	}
	s.addLine(r.Pool.Name, "%s", text)
}

func formatAdminStates(s *Stage, r updater.Report) string {
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
		text += "; admin states again at " + s.formatTime(r.AdminRetryAt)
	}
	return text
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
