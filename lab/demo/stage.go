// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"weir.dev/weir/api/v1alpha1"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// stepDeadline is the time limit for the pools to get in sync. Weir needs seconds; the rest is
	// for busy machines.
	stepDeadline = 5 * time.Minute
	// waitsEvery is the time between two progress lines.
	waitsEvery = 15 * time.Second
)

// stage runs the steps of the story.
type stage struct {
	lab      *lab
	cluster  *cluster
	truth    *truth
	observer *observer
	print    *printer
	random   *rand.Rand
	nodes    int           // final cluster size
	deadline time.Duration // per step
	progress progress
	steps    []StepSummary
	crowd    *CrowdSummary // nil before act two
	// evictions is nil before act three.
	evictions *EvictionsSummary
	// published is nil before act four.
	published *PublishedSummary
	// elsewhere are the calls of a step that uses another Azure.
	elsewhere *traffic
	joined    int // nodes added after the first s.nodes
	// notes are deviations from an idle machine's result. They do not fail the demo.
	notes []string
}

// step is one change of the cluster.
type step struct {
	// heading starts an act; empty within one.
	heading string
	name    string
	act     func(*stage, context.Context) error
	// check runs additional checks once all pools are in sync.
	check func(*stage, context.Context) error
	// moral describes the result where numbers do not.
	moral string
}

// play runs the steps. After each, the cluster must be idle and the pools in sync.
func (s *stage) play(ctx context.Context, story []step) error {
	for _, step := range story {
		began, before := time.Now(), s.observer.counted()
		s.print.plainly("")
		if step.heading != "" {
			s.print.verbatim(bold, step.heading, "")
		}
		if err := step.act(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		err := s.settle(ctx)
		if err == nil && step.check != nil {
			err = step.check(s, ctx)
		}
		calls := s.observer.counted().minus(before)
		if s.elsewhere != nil {
			calls, s.elsewhere = *s.elsewhere, nil
		}
		s.steps = append(s.steps, StepSummary{Name: step.name, Seconds: time.Since(began).Seconds(), traffic: calls})
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if step.moral != "" {
			s.print.detail(step.moral)
		}
		s.print.line(dim, "azure", fmt.Sprintf("%s; %.1f s", calls, time.Since(began).Seconds()))
	}
	return nil
}

// addNote prints a note and adds it to the summary.
func (s *stage) addNote(text string) {
	s.print.line(yellow, "note", text)
	s.notes = append(s.notes, text)
}

// tell prints a change of the cluster.
func (s *stage) tell(format string, args ...any) {
	s.print.line(bold, "cluster", fmt.Sprintf(format, args...))
}

// notLevel is the error of a step that timed out.
type notLevel struct {
	after   time.Duration
	details []string // one line each
}

func (e *notLevel) Error() string { return fmt.Sprintf("not level after %s", e.after) }

// settle waits until the cluster is idle, the pools are in sync and the controller reports so, and
// prints the progress.
func (s *stage) settle(ctx context.Context) error {
	began, reported := time.Now(), time.Now()
	calm := 0 // consecutive good checks
	for {
		pools := s.observer.levels()
		unrest, err := s.unrest(ctx, pools)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case unrest == "" && allLevel(pools):
			calm++
		default:
			calm = 0
		}
		// The checks above use different sources; a repeated check closes the gap.
		if calm == 3 {
			s.print.pools(pools)
			return nil
		}
		s.progress.next(s.print, time.Now(), pools)
		if unrest != "" && time.Since(reported) >= waitsEvery {
			s.print.line(dim, "waits", unrest)
			reported = time.Now()
		}
		if time.Since(began) > s.deadline {
			return &notLevel{s.deadline, s.explain(ctx, unrest, pools)}
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *stage) unrest(ctx context.Context, pools []poolLevel) (string, error) {
	why, err := s.cluster.unrest(ctx)
	if why == "" && err == nil {
		why, err = s.unserved()
	}
	if why == "" && err == nil {
		why, err = s.cluster.disagreement(ctx, pools)
	}
	return why, err
}

// explain describes what is out of sync and the known reasons.
func (s *stage) explain(ctx context.Context, unrest string, pools []poolLevel) []string {
	var lines []string
	if unrest != "" {
		lines = append(lines, "not at rest: "+unrest)
	}
	for _, pool := range pools {
		if pool.level {
			continue
		}
		lines = append(lines, s.observer.describe(pool), s.condition(ctx, pool.workload.pool()))
	}
	lines = append(lines, "the controller's last lines:")
	return append(lines, s.lab.weir.TailLines(8)...)
}

// condition formats the Synced condition of a pool's BackendPool.
func (s *stage) condition(ctx context.Context, pool string) string {
	var said v1alpha1.BackendPoolList
	if err := s.cluster.api.List(ctx, &said, client.InNamespace(namespace)); err != nil {
		return fmt.Sprintf("BackendPools: %v", err)
	}
	on := backendPoolOf(said.Items, pool)
	if on == nil {
		return fmt.Sprintf("no BackendPool speaks of pool %s", pool)
	}
	c := meta.FindStatusCondition(on.Status.Conditions, v1alpha1.ConditionSynced)
	if c == nil {
		return fmt.Sprintf("BackendPool %s has no condition Synced: the controller has not looked at it", on.Name)
	}
	return fmt.Sprintf("BackendPool %s: Synced=%s, %s: %s", on.Name, c.Status, c.Reason, c.Message)
}

// progress prints the pools' sync state when it changed, at a limited rate.
type progress struct {
	at   time.Time
	text string
}

// progressEvery is the minimum time between two lines.
const progressEvery = 500 * time.Millisecond

func (p *progress) next(to *printer, now time.Time, pools []poolLevel) {
	if text := levelText(pools); !allLevel(pools) && text != p.text && now.Sub(p.at) >= progressEvery {
		to.pools(pools)
		p.text, p.at = text, now
	}
}
