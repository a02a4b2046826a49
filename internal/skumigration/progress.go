// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"log/slog"
	"slices"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/skumigration/phase"
)

type progressWriter struct {
	save     func(ctx context.Context, progress phase.Progress) error // optional
	log      *slog.Logger
	lastText string // last saved text
}

// publish saves changes only. A failure does not delay the migration.
func (t *progressWriter) publish(ctx context.Context, progress phase.Progress) {
	text := phase.FormatProgress(progress)
	if t.save == nil || text == t.lastText {
		return
	}
	if err := t.save(ctx, progress); err != nil {
		t.log.Warn("migration to Standard load balancers: its progress could not be recorded", "err", err)
		return
	}
	t.lastText = text
}

// publishIdle is for a state without reading Azure, because no migration is requested.
func (t *progressWriter) publishIdle(ctx context.Context, stored phase.Journal, acceptsRequests bool) {
	switch {
	case stored.Done:
		t.publish(ctx, phase.NewProgress(phase.ProgressDone))
	case !acceptsRequests:
		t.publish(ctx, phase.NewProgress(phase.ProgressNoSKU))
	default:
		t.publish(ctx, phase.NewProgress(phase.ProgressIdle))
	}
}

func (t *progressWriter) publishStep(ctx context.Context, s phase.Steps) {
	phases := phase.Phases()
	t.publish(ctx, phase.NewStepProgress(s, max(0, slices.Index(phases, s.Phase)), len(phases)-1))
}

func (t *progressWriter) publishRetry(ctx context.Context, ph phase.Phase, err error) {
	if armerror.FromError(err) != nil {
		t.publishStep(ctx, phase.Steps{Phase: ph, WaitReasons: []string{err.Error()}})
	}
}
