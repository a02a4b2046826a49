// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

const (
	// stepDeadline is the time limit for the pools to get in sync. Weir needs seconds; the rest is
	// for busy machines.
	stepDeadline = 5 * time.Minute
	// waitInterval is the time between two progress lines.
	waitInterval = 15 * time.Second
)

// stage runs the steps of the story.
type stage struct {
	lab          *lab
	cluster      *cluster
	desired      *desiredState
	observer     *observer
	print        *printer
	random       *rand.Rand
	nodes        int           // final cluster size
	deadline     time.Duration // per step
	progress     progress
	steps        []StepSummary
	bulkServices *BulkSummary // nil before act two
	// evictions is nil before act three.
	evictions *EvictionsSummary
	// privateLink is nil before act four.
	privateLink *PrivateLinkSummary
	// gateway is nil before act five.
	gateway *GatewaySummary
	// connections is nil before real connections are opened.
	connections *connections
	// otherTraffic are the calls of a step that uses another Azure.
	otherTraffic *traffic
	addedNodes   int // nodes added after the first s.nodes
	// notes are deviations from an idle machine's result. They do not fail the demo.
	notes []string
}

// step is one change of the cluster.
type step struct {
	// title starts an act; empty within one.
	title string
	name  string
	// usual is its duration in seconds on an idle machine of two cores.
	usual int
	run   func(*stage, context.Context) error
	// check runs additional checks once all pools are in sync.
	check func(*stage, context.Context) error
	// resultText describes the result where numbers do not.
	resultText string
	// needsGatewayAPI is set if the cluster must have Gateway API from the start.
	needsGatewayAPI bool
	// compared is the cost of such a change elsewhere, if it was measured.
	compared *comparison
}

// runSteps runs the steps. After each, the cluster must be idle and the pools in sync.
func (s *stage) runSteps(ctx context.Context, explanation []step) error {
	start, left := time.Now(), time.Duration(0)
	for i, step := range explanation {
		began, before := time.Now(), s.observer.currentTraffic()
		s.print.printPlain("")
		if step.title != "" {
			s.print.printVerbatim(boldText, step.title, "")
		}
		if step.compared != nil {
			s.print.printDetail(step.compared.String())
		}
		if err := step.run(s, ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		err := s.waitInSync(ctx)
		if err == nil && step.check != nil {
			err = step.check(s, ctx)
		}
		calls := s.observer.currentTraffic().subtract(before)
		if s.otherTraffic != nil {
			calls, s.otherTraffic = *s.otherTraffic, nil
		}
		s.steps = append(s.steps, StepSummary{Name: step.name, Seconds: time.Since(began).Seconds(), traffic: calls})
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if step.resultText != "" {
			s.print.printDetail(step.resultText)
		}
		text := fmt.Sprintf("%s; %.1f s", calls, time.Since(began).Seconds())
		if left = estimateTimeLeft(explanation, i+1, time.Since(start), left); left > 0 {
			text += fmt.Sprintf("; about %.0f s left", left.Seconds())
		}
		s.print.printLine(dimText, "azure", text)
	}
	return nil
}

// estimateTimeLeft returns the expected duration of the steps after the first done ones: at most the last estimate, if there
// is one. A machine that was slower than usual so far is expected to remain so.
func estimateTimeLeft(explanation []step, done int, elapsed, last time.Duration) time.Duration {
	before, after := usualTime(explanation[:done]), usualTime(explanation[done:])
	if before == 0 || after == 0 {
		return 0
	}
	left := time.Duration(float64(after) * max(1, float64(elapsed)/float64(before)))
	if last > 0 {
		left = min(left, last)
	}
	return left
}

// usualTime returns the duration of steps on an idle machine.
func usualTime(steps []step) time.Duration {
	seconds := 0
	for _, s := range steps {
		seconds += s.usual
	}
	return time.Duration(seconds) * time.Second
}

// addNote prints a note and adds it to the summary.
func (s *stage) addNote(text string) {
	s.print.printLine(yellowText, "note", text)
	s.notes = append(s.notes, text)
}

// printAction prints a change of the cluster.
func (s *stage) printAction(format string, args ...any) {
	s.print.printLine(boldText, "cluster", fmt.Sprintf(format, args...))
}

// syncTimeoutError is the error of a step that timed out.
type syncTimeoutError struct {
	duration time.Duration
	details  []string // one line each
}

func (e *syncTimeoutError) Error() string { return fmt.Sprintf("not in sync after %s", e.duration) }

// waitInSync waits until the cluster is idle, the pools are in sync and the controller reports so, and
// prints the progress.
func (s *stage) waitInSync(ctx context.Context) error {
	began, reported := time.Now(), time.Now()
	calm := 0 // consecutive good checks
	for {
		pools := s.observer.poolStates()
		unrest, err := s.pendingChange(ctx, pools)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case unrest == "" && allInSync(pools):
			calm++
		default:
			calm = 0
		}
		// The checks above use different sources; a repeated check closes the gap.
		if calm == 3 {
			s.print.printPools(pools)
			return nil
		}
		s.progress.nextLine(s.print, time.Now(), pools)
		if unrest != "" && time.Since(reported) >= waitInterval {
			s.print.printLine(dimText, "waits", unrest)
			reported = time.Now()
		}
		if time.Since(began) > s.deadline {
			return &syncTimeoutError{s.deadline, s.explainOutOfSync(ctx, unrest, pools)}
		}
		if err := sleepContext(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *stage) pendingChange(ctx context.Context, pools []poolState) (string, error) {
	reason, err := s.cluster.pendingChange(ctx)
	if reason == "" && err == nil {
		reason, err = s.dataPathMismatch()
	}
	if reason == "" && err == nil {
		reason, err = s.cluster.statusMismatch(ctx, pools)
	}
	return reason, err
}

// explainOutOfSync describes what is out of sync and the known reasons.
func (s *stage) explainOutOfSync(ctx context.Context, unrest string, pools []poolState) []string {
	var lines []string
	if unrest != "" {
		lines = append(lines, "not at rest: "+unrest)
	}
	for _, pool := range pools {
		if pool.isInSync {
			continue
		}
		lines = append(lines, s.observer.describeDiff(pool), s.syncedCondition(ctx, pool.workload.poolName()))
	}
	lines = append(lines, "the controller's last lines:")
	return append(lines, s.lab.controller.latest().TailLines(8)...)
}

// syncedCondition formats the Synced condition of a pool's BackendPool.
func (s *stage) syncedCondition(ctx context.Context, pool string) string {
	var list v1alpha1.BackendPoolList
	if err := s.cluster.api.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return fmt.Sprintf("BackendPools: %v", err)
	}
	on := backendPoolOf(list.Items, pool)
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

// progressInterval is the minimum time between two lines.
const progressInterval = 500 * time.Millisecond

func (p *progress) nextLine(to *printer, now time.Time, pools []poolState) {
	if text := formatPoolStates(pools); !allInSync(pools) && text != p.text && now.Sub(p.at) >= progressInterval {
		to.printPools(pools)
		p.text, p.at = text, now
	}
}
