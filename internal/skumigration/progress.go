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
func (p *progressWriter) publish(ctx context.Context, progress phase.Progress) {
	text := phase.FormatProgress(progress)
	if p.save == nil || text == p.lastText {
		return
	}
	if err := p.save(ctx, progress); err != nil {
		p.log.Warn("migration to Standard load balancers: its progress could not be recorded", "err", err)
		return
	}
	p.lastText = text
}

// publishIdle is for a state without reading Azure, because no migration is requested.
func (p *progressWriter) publishIdle(ctx context.Context, stored phase.Journal, acceptsRequests bool) {
	switch {
	case stored.Done:
		p.publish(ctx, phase.NewProgress(phase.ProgressDone))
	case !acceptsRequests:
		p.publish(ctx, phase.NewProgress(phase.ProgressNoSKU))
	default:
		p.publish(ctx, phase.NewProgress(phase.ProgressIdle))
	}
}

func (p *progressWriter) publishStep(ctx context.Context, s phase.Steps) {
	phases := phase.Phases()
	p.publish(ctx, phase.NewStepProgress(s, max(0, slices.Index(phases, s.Phase)), len(phases)-1))
}

func (p *progressWriter) publishRetry(ctx context.Context, ph phase.Phase, err error) {
	if armerror.FromError(err) != nil {
		p.publishStep(ctx, phase.Steps{Phase: ph, WaitReasons: []string{err.Error()}})
	}
}
