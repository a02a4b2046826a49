// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"log/slog"
	"slices"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/migrate"
)

type telling struct {
	keep func(ctx context.Context, told migrate.Told) error // optional
	log  *slog.Logger
	last string // last saved text
}

// says saves changes only. A failure does not delay the migration.
func (t *telling) says(ctx context.Context, progress migrate.Told) {
	text := migrate.FormatTold(progress)
	if t.keep == nil || text == t.last {
		return
	}
	if err := t.keep(ctx, progress); err != nil {
		t.log.Warn("migration to Standard load balancers: what is said of it is not kept", "err", err)
		return
	}
	t.last = text
}

// unseen is for a state without reading Azure, because no migration is requested.
func (t *telling) unseen(ctx context.Context, stored migrate.Journal, hears bool) {
	switch {
	case stored.Done:
		t.says(ctx, migrate.Tell(migrate.Ended))
	case !hears:
		t.says(ctx, migrate.Tell(migrate.NoSKU))
	default:
		t.says(ctx, migrate.Tell(migrate.Listens))
	}
}

func (t *telling) step(ctx context.Context, s migrate.Steps) {
	phases := migrate.Phases()
	t.says(ctx, migrate.TellSteps(s, max(0, slices.Index(phases, s.Phase)), len(phases)-1))
}

func (t *telling) trying(ctx context.Context, phase migrate.Phase, err error) {
	if fault.From(err) != nil {
		t.step(ctx, migrate.Steps{Phase: phase, Waits: []string{err.Error()}})
	}
}
