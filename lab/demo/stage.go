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
	// stepDeadline is how long the pools may take to become level after a step. Weir takes seconds; the
	// rest is for a machine that does other work.
	stepDeadline = 5 * time.Minute
	// waitsEvery is the time between two lines about what a step waits for.
	waitsEvery = 15 * time.Second
)

// stage is where the story plays.
type stage struct {
	lab      *lab
	cluster  *cluster
	truth    *truth
	observer *observer
	print    *printer
	random   *rand.Rand
	nodes    int           // what the cluster grows to
	deadline time.Duration // for a step to become level
	progress progress
	steps    []StepSummary
	crowd    *CrowdSummary // nil before the second act
	// evictions is nil before the third act.
	evictions *EvictionsSummary
	// published is nil before the fourth act.
	published *PublishedSummary
	// elsewhere are the calls of a step that plays in another Azure.
	elsewhere *traffic
	joined    int // how many nodes came after the first s.nodes
	// notes are what a run cost more, or showed less, than it does on a machine that is idle. They do not
	// fail the demo.
	notes []string
}

// step is one thing that happens to the cluster.
type step struct {
	// heading is that of the act that begins with the step; empty within one.
	heading string
	name    string
	act     func(*stage, context.Context) error
	// check looks, when all is level, at what that does not show.
	check func(*stage, context.Context) error
	// moral is what being level means here, where numbers do not show it.
	moral string
}

// play acts a story out. After each step the cluster has to come to rest and the
// pools have to become level.
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

// addNote prints a note and keeps it for the summary.
func (s *stage) addNote(text string) {
	s.print.line(yellow, "note", text)
	s.notes = append(s.notes, text)
}

// tell says what happens to the cluster.
func (s *stage) tell(format string, args ...any) {
	s.print.line(bold, "cluster", fmt.Sprintf(format, args...))
}

// notLevel is the failure of a step that did not end in time.
type notLevel struct {
	after   time.Duration
	details []string // one line each
}

func (e *notLevel) Error() string { return fmt.Sprintf("not level after %s", e.after) }

// settle waits until the cluster has come to rest, the pools are level and the
// controller says so too, and prints how they get there.
func (s *stage) settle(ctx context.Context) error {
	began, reported := time.Now(), time.Now()
	calm := 0 // how often in a row all was well
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
		// The truth and the answers above come by different ways; a second look
		// leaves none behind.
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

// explain says what is not level, and what is known about it.
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
	return append(lines, s.lab.weir.Tail(8)...)
}

// condition returns the Synced condition of a pool's BackendPool as a line.
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

// progress prints how level the pools are when that has changed, not too often.
type progress struct {
	at   time.Time
	text string
}

// progressEvery is the shortest time between two lines.
const progressEvery = 500 * time.Millisecond

func (p *progress) next(to *printer, now time.Time, pools []poolLevel) {
	if text := levelText(pools); !allLevel(pools) && text != p.text && now.Sub(p.at) >= progressEvery {
		to.pools(pools)
		p.text, p.at = text, now
	}
}
