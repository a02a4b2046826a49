// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"time"

	"weir.dev/weir/internal/migrate"
)

// undo acts as a stop if an undo is impossible. A rejected write is retried until it succeeds or
// the user withdraws the stop.
func (m *Migration) undo(ctx context.Context, stored migrate.Journal, snapshot migrate.Seen, services []migrate.Service, stop migrate.Wish) (time.Duration, error) {
	s := migrate.Undo(stored, snapshot)
	for _, why := range s.Stops {
		if !m.said[why] {
			m.cfg.Log.Warn("migration to Standard load balancers: "+why, "phase", s.Phase)
		}
		m.said[why] = true
	}
	switch {
	case s.Phase == migrate.Undone:
		return m.undone(ctx, stored, snapshot, services, stop)
	case len(s.Stops) > 0:
		return m.waits(ctx, stored, stop)
	}
	if m.phase != s.Phase {
		m.phase = s.Phase
		m.cfg.Log.Info("migration to Standard load balancers is taken back: machines join the Basic ones again", "by", stop.By, "at", stop.At, "why", stop.Why)
	}
	show(ctx, m.cfg, stored, snapshot, services, "somebody has that taken back, and machines join the Basic one again")
	for _, why := range s.Waits {
		m.cfg.Log.Info("migration to Standard load balancers waits: "+why, "phase", s.Phase)
	}
	if err := m.write(ctx, s); err != nil {
		return 0, err
	}
	if len(s.Waits) > 0 {
		return lookAgainAfter, nil
	}
	return settles, nil
}

func (m *Migration) undone(ctx context.Context, stored migrate.Journal, snapshot migrate.Seen, services []migrate.Service, stop migrate.Wish) (time.Duration, error) {
	next := stored
	next.Undone = &stop
	if wanted, err := m.cfg.Store.Undone(ctx, next); err != nil || !wanted {
		return settles, err
	}
	m.journal, m.asked, m.heard = next, false, nil
	m.tellUndone(stored, snapshot, services)
	m.cfg.Log.Info("migration to Standard load balancers was taken back: load balancers stay Basic until weir migrate run", "by", stop.By, "at", stop.At)
	return 0, nil
}
