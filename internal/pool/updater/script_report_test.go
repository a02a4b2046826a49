// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"cmp"
	"context"
	"slices"

	"weir.dev/weir/internal/pool/schedule"
)

// Report implements Reporter. It traces the visible effects: an event per Service, a metric
// observation if the attempt ends with Updated or Failed, and the pool's status.
func (s *stage) Report(_ context.Context, r Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attemptEnds(r)
	for _, reported := range []struct {
		word schedule.Notification
		to   []schedule.ServiceName
	}{{schedule.NotifyFailed, r.Failed}, {schedule.NotifyRetrying, r.Retrying}, {schedule.NotifyUpdated, r.Updated}} {
		for _, service := range reported.to {
			reason := ""
			if r.Fault != nil {
				reason = ": " + r.Fault.Code
			}
			s.say("event %s %s%s", spellService(service), reported.word, reason)
		}
	}
	if len(r.Updated) > 0 {
		s.observe(true)
	}
	if len(r.Failed) > 0 {
		s.observe(false)
	}
	parked := ""
	if !r.NextEligibleAt.IsZero() {
		parked = ", parked until " + s.stamp(r.NextEligibleAt)
	}
	s.say("status %s %s, %d of %d retries used%s", spellPool(r.Pool), r.Outcome, r.RetriesUsed, r.Budget, parked)
	if r.InSync {
		s.ledger[r.Pool.Key()] = r.Written
	}
}

// ReportWait implements Reporter.
func (s *stage) ReportWait(w Waiting) {
	s.set(func() { s.say("status %s waits until %s", spellPool(w.Pool), s.stamp(w.Until)) })
}

// observe counts an observation. The caller holds s.mu.
func (s *stage) observe(success bool) {
	s.observed[success]++
	s.say("metric %s", map[bool]string{true: "succeeded", false: "failed"}[success])
}

// metricsVerb prints the observations since the start.
func metricsVerb(s *stage, _ *command) {
	s.list("%d succeeded, %d failed", s.observed[true], s.observed[false])
}

// queueVerb prints the waiting operations, sorted by pool.
func queueVerb(s *stage, _ *command) {
	waits := s.queued()
	if len(waits) == 0 {
		s.list("empty")
	}
	for _, op := range waits {
		parked := ""
		if !op.NextEligibleAt.IsZero() {
			parked = ", not before " + s.stamp(op.NextEligibleAt)
		}
		s.list("%s for %s: retryCount %d%s", spellPool(op.Pool), spellService(op.Service), op.RetryCount, parked)
	}
}

// queued returns all waiting operations, in order for each pool.
func (s *stage) queued() []schedule.Operation {
	var operations []schedule.Operation
	for _, l := range s.lanes.listWorkers() {
		l.queue.mu.Lock()
		for _, w := range l.queue.pools {
			operations = append(operations, w.ops...)
		}
		l.queue.mu.Unlock()
	}
	slices.SortStableFunc(operations, func(a, b schedule.Operation) int { return cmp.Compare(a.Pool.Key(), b.Pool.Key()) })
	return operations
}
