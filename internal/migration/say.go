// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"slices"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/migrate"
)

// says has what is told of the migration be kept, where it says something else than before. That it cannot be kept
// holds up no migration: it is tried with the next word.
func (m *Migration) says(ctx context.Context, told migrate.Told) {
	text := migrate.FormatTold(told)
	if m.cfg.Say == nil || text == m.saidLast {
		return
	}
	if err := m.cfg.Say(ctx, told); err != nil {
		m.cfg.Log.Warn("migration to Standard load balancers: what is said of it is not kept", "err", err)
		return
	}
	m.saidLast = text
}

// saysUnseen says how it stands where Azure was not looked at: nobody wants a migration, or nobody has asked.
func (m *Migration) saysUnseen(ctx context.Context, kept migrate.Journal) {
	switch {
	case kept.Done:
		m.says(ctx, migrate.Tell(migrate.Ended))
	case !m.cfg.Hears:
		m.says(ctx, migrate.Tell(migrate.NoSKU))
	default:
		m.says(ctx, migrate.Tell(migrate.Listens))
	}
}

// saysStep says what comes next.
func (m *Migration) saysStep(ctx context.Context, s migrate.Steps) {
	phases := migrate.Phases()
	m.says(ctx, migrate.TellSteps(s, max(0, slices.Index(phases, s.Phase)), len(phases)-1))
}

// saysTrying says what Azure answers while it is tried again.
func (m *Migration) saysTrying(ctx context.Context, err error) {
	if fault.From(err) != nil {
		s := migrate.Steps{Phase: m.phase}
		s.Waits = []string{err.Error()}
		m.saysStep(ctx, s)
	}
}
