// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"log/slog"
	"slices"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/migrate"
)

type progressWriter struct {
	save     func(ctx context.Context, told migrate.Progress) error // optional
	log      *slog.Logger
	lastText string // last saved text
}

// publish saves changes only. A failure does not delay the migration.
func (t *progressWriter) publish(ctx context.Context, progress migrate.Progress) {
	text := migrate.FormatProgress(progress)
	if t.save == nil || text == t.lastText {
		return
	}
	if err := t.save(ctx, progress); err != nil {
		t.log.Warn("migration to Standard load balancers: what is said of it is not kept", "err", err)
		return
	}
	t.lastText = text
}

// publishIdle is for a state without reading Azure, because no migration is requested.
func (t *progressWriter) publishIdle(ctx context.Context, stored migrate.Journal, hears bool) {
	switch {
	case stored.Done:
		t.publish(ctx, migrate.NewProgress(migrate.ProgressDone))
	case !hears:
		t.publish(ctx, migrate.NewProgress(migrate.ProgressNoSKU))
	default:
		t.publish(ctx, migrate.NewProgress(migrate.ProgressIdle))
	}
}

func (t *progressWriter) publishStep(ctx context.Context, s migrate.Steps) {
	phases := migrate.Phases()
	t.publish(ctx, migrate.NewStepProgress(s, max(0, slices.Index(phases, s.Phase)), len(phases)-1))
}

func (t *progressWriter) publishRetry(ctx context.Context, phase migrate.Phase, err error) {
	if fault.FromError(err) != nil {
		t.publishStep(ctx, migrate.Steps{Phase: phase, WaitReasons: []string{err.Error()}})
	}
}
