// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"log/slog"
	"slices"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/migrate"
)

// telling keeps what is said of a migration for who asks from elsewhere.
type telling struct {
	keep func(ctx context.Context, told migrate.Told) error // nil is nobody
	log  *slog.Logger
	last string // that was kept
}

// says has what is told be kept, where it says something else than before. That it cannot be kept holds up no
// migration: it is tried with the next word.
func (t *telling) says(ctx context.Context, told migrate.Told) {
	text := migrate.FormatTold(told)
	if t.keep == nil || text == t.last {
		return
	}
	if err := t.keep(ctx, told); err != nil {
		t.log.Warn("migration to Standard load balancers: what is said of it is not kept", "err", err)
		return
	}
	t.last = text
}

// unseen says how it stands where Azure was not looked at: nobody wants a migration, or nobody has asked.
func (t *telling) unseen(ctx context.Context, kept migrate.Journal, hears bool) {
	switch {
	case kept.Done:
		t.says(ctx, migrate.Tell(migrate.Ended))
	case !hears:
		t.says(ctx, migrate.Tell(migrate.NoSKU))
	default:
		t.says(ctx, migrate.Tell(migrate.Listens))
	}
}

// step says what comes next.
func (t *telling) step(ctx context.Context, s migrate.Steps) {
	phases := migrate.Phases()
	t.says(ctx, migrate.TellSteps(s, max(0, slices.Index(phases, s.Phase)), len(phases)-1))
}

// trying says what Azure answers while it is tried again.
func (t *telling) trying(ctx context.Context, phase migrate.Phase, err error) {
	if fault.From(err) != nil {
		t.step(ctx, migrate.Steps{Phase: phase, Waits: []string{err.Error()}})
	}
}
