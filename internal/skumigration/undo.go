// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"time"

	"weir.dev/weir/internal/skumigration/phase"
)

// runUndo acts as a stop if an undo is impossible. A rejected write is retried until it succeeds or
// the user withdraws the stop.
func (m *Migration) runUndo(ctx context.Context, stored phase.Journal, snapshot phase.Snapshot, services []phase.Service, stop phase.UserRequest) (time.Duration, error) {
	s := phase.NextUndoSteps(stored, snapshot)
	for _, reason := range s.StopReasons {
		if !m.logged[reason] {
			m.cfg.Log.Warn("migration to Standard load balancers: "+reason, "phase", s.Phase)
		}
		m.logged[reason] = true
	}
	switch {
	case s.Phase == phase.PhaseUndone:
		return m.completeUndo(ctx, stored, snapshot, services, stop)
	case len(s.StopReasons) > 0:
		return m.pauseForStop(ctx, stored, stop)
	}
	if m.phase != s.Phase {
		m.phase = s.Phase
		m.cfg.Log.Info("migration to Standard load balancers is taken back: machines join the Basic ones again", "by", stop.By, "at", stop.At, "why", stop.Reason)
	}
	updateServiceStatus(ctx, m.cfg, stored, snapshot, services, "it is being undone, and machines join the Basic one again")
	for _, reason := range s.WaitReasons {
		m.cfg.Log.Info("migration to Standard load balancers waits: "+reason, "phase", s.Phase)
	}
	if err := m.writeSteps(ctx, s); err != nil {
		return 0, err
	}
	if len(s.WaitReasons) > 0 {
		return pollInterval, nil
	}
	return writeDelay, nil
}

func (m *Migration) completeUndo(ctx context.Context, stored phase.Journal, snapshot phase.Snapshot, services []phase.Service, stop phase.UserRequest) (time.Duration, error) {
	next := stored
	next.CompletedUndo = &stop
	if wanted, err := m.cfg.Store.CompleteUndo(ctx, next); err != nil || !wanted {
		return writeDelay, err
	}
	m.journal, m.startRequested, m.loggedStop = next, false, nil
	m.recordUndo(stored, snapshot, services)
	m.cfg.Log.Info("migration to Standard load balancers was undone: load balancers remain Basic until weir migrate run", "by", stop.By, "at", stop.At)
	return 0, nil
}
