// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/humanize"
)

// runStorm makes Azure reject writes for a while and a second writer change the same load balancer,
// while all Deployments scale.
func (s *stage) runStorm(ctx context.Context) error {
	t := &stormState{stage: s, before: s.observer.currentTraffic()}
	if err := s.observer.azure.setFaults(ctx, stormFaults()); err != nil {
		return err
	}
	t.startTime = time.Now()
	s.observer.setStorm(true)
	defer s.observer.setStorm(false)
	s.print.printLine(redText, "storm", fmt.Sprintf("for %.0f s Azure throttles %s (429), is busy with %s (429, 409),", stormLength.Seconds(), throttledPool, busyPool)+
		" and a second writer overtakes Weir at "+conflictPool)
	few := s.smallScale()
	s.printAction("web scales to %s, api to %d", humanize.FormatCount(few, "pod"), few)
	if err := s.scaleAll(ctx, few, few); err != nil {
		return err
	}
	if err := t.advanceStorm(ctx); err != nil {
		return err
	}
	s.print.printLine(greenText, "storm", "is over")
	if err := t.missedError(); err != nil {
		s.addNote(err.Error())
		if unseen, ok := errors.AsType[*notVisibleError](err); ok {
			s.print.printVerbatim(plainText, unseen.details...)
		}
	}
	return nil
}

// stormState is the state of a storm. The emulator and the API server decide when its events happen.
type stormState struct {
	*stage
	startTime time.Time
	before    traffic

	reads         int   // of the contested pool, when the second writer acted last
	latestTable   table // latest
	eventsPrinted map[string]int
	// Completed events.
	isGateClosed, isScaled, tablePrinted, gatePrinted bool
}

func (t *stormState) advanceStorm(ctx context.Context) error {
	return pollUntil(ctx, pollInterval, func() (bool, error) {
		for _, act := range []func(context.Context) error{t.writeConflict, t.closeGate, t.printRetrying, t.scaleAgain, t.printGate} {
			if err := act(ctx); err != nil {
				return false, err
			}
		}
		return time.Since(t.startTime) >= stormLength, nil
	})
}

// poolCalls returns the controller's calls about a pool since the storm began.
func (t *stormState) poolCalls(pool string) poolCalls {
	now, before := t.observer.currentTraffic().pools[pool], t.before.pools[pool]
	return poolCalls{
		reads: now.reads - before.reads, writes: now.writes - before.writes,
		throttled: now.throttled - before.throttled, conflicts: now.conflicts - before.conflicts, preconditionFailed: now.preconditionFailed - before.preconditionFailed,
	}
}

// conflictWrites is how often the second writer wins: before both writes of an attempt.
const conflictWrites = 2

// writeConflict writes with the second writer between Weir's read and write of the contested pool, so
// Weir's write gets 412.
func (t *stormState) writeConflict(ctx context.Context) error {
	calls := t.poolCalls(conflictPool)
	if calls.conflicts >= conflictWrites || calls.reads == t.reads || !t.isBehind(conflictPool) {
		return nil
	}
	// While a write is in progress, Weir reads again before it writes.
	if busy, err := newSecondWriter(t.lab.endpoint).isBusy(ctx); busy || err != nil {
		return err
	}
	t.reads = calls.reads
	ip, name := secondWriterAddress(calls.reads)
	return t.addForeignMember(ctx, conflictPool, ip, name)
}

func secondWriterAddress(n int) (netip.Addr, string) {
	return netip.AddrFrom4([4]byte{10, 225, 0, byte(20 + n)}), fmt.Sprintf("%s-%d", secondWriterID, n) //nolint:gosec // some few
}

func (t *stormState) isBehind(pool string) bool {
	return slices.ContainsFunc(t.observer.poolStates(), func(p poolState) bool { return p.workload.poolName() == pool && !p.isInSync })
}

// closeGate scales the third Deployment once writes of both other pools were rejected: the answer
// to its first write blocks all pools.
func (t *stormState) closeGate(ctx context.Context) error {
	if t.isGateClosed || t.poolCalls(throttledPool).rejected() == 0 || t.poolCalls(conflictPool).rejected() == 0 {
		return nil
	}
	t.isGateClosed = true
	fewer := t.smallScale() / 2
	t.printAction("db scales to %s", humanize.FormatCount(fewer, "pod"))
	return t.cluster.scaleDeployment(ctx, "db", fewer)
}

// smallScale is small enough to change every pool; it is zero in a small cluster.
func (s *stage) smallScale() int { return s.nodes / 10 * 2 }

// scaleAgain scales again before the first change succeeded.
func (t *stormState) scaleAgain(ctx context.Context) error {
	if t.isScaled || !t.tablePrinted {
		return nil
	}
	t.isScaled = true
	web, api, db := t.nodes*7/10, t.nodes/2, t.nodes*3/10
	t.printAction("web scales to %d pods, api to %d, db to %d", web, api, db)
	return t.scaleAll(ctx, web, api, db)
}

// printRetrying prints what kubectl shows after the first failed attempts.
func (t *stormState) printRetrying(ctx context.Context) error {
	if t.tablePrinted || slices.ContainsFunc(allWorkloads, func(w workload) bool { return t.poolCalls(w.poolName()).failedAttempts() == 0 }) {
		return nil
	}
	events, err := t.cluster.serviceEvents(ctx, reasonRetrying)
	if err != nil {
		return err
	}
	t.eventsPrinted = countByService(events)
	if t.latestTable, err = t.cluster.backendPools(ctx); err != nil {
		return err
	}
	if !t.latestTable.allEqual("STATE", stateRetrying) || len(t.eventsPrinted) < len(allWorkloads) {
		return nil
	}
	t.tablePrinted = true
	t.print.printVerbatim(boldText, "", "$ kubectl -n "+namespace+" get events  # the Warnings")
	for i := range events {
		t.print.printVerbatim(plainText, eventLines(&events[i], time.Now(), width)...)
	}
	t.printTable()
	return nil
}

const stateRetrying = "Retrying"

// optionalColumns are the columns dropped when space is short, in this order.
var optionalColumns = []string{"WHY", "LOAD BALANCER", "SERVICE", "POOL", "AGE", "DOWN", "PAUSED UNTIL", "MISSING", "SURPLUS", "RETRIES", "FOREIGN"}

// printTable prints the latest table without its spare columns.
func (t *stormState) printTable() {
	t.print.printVerbatim(boldText, "", "$ kubectl -n "+namespace+" get backendpools -o wide  # without its widest columns")
	t.print.printVerbatim(plainText, t.latestTable.formatLines(width, optionalColumns...)...)
	t.print.printVerbatim(plainText, "")
}

// printGate shows that all pools wait when the subscription's write quota is exhausted.
func (t *stormState) printGate(ctx context.Context) error {
	if t.gatePrinted || !t.tablePrinted {
		return nil
	}
	var err error
	if t.latestTable, err = t.cluster.backendPools(ctx); err != nil || !t.latestTable.sameTime("PARKED UNTIL") {
		return err
	}
	t.gatePrinted = true
	t.print.printLine(redText, "azure", "429 SubscriptionRequestsThrottled was for all: nobody calls")
	t.printTable()
	for _, row := range t.latestTable.rows {
		t.print.printVerbatim(plainText, wrapText(row[0]+": "+t.latestTable.cellValue(row, "WHY"), width)...)
	}
	t.print.printVerbatim(plainText, "")
	return nil
}

// missedError returns an error if the storm ended without being shown.
func (t *stormState) missedError() error {
	var unhurt, unreported []string
	for _, w := range allWorkloads {
		if t.poolCalls(w.poolName()).rejected() == 0 {
			unhurt = append(unhurt, w.poolName())
		}
		if t.eventsPrinted[w.name] == 0 {
			unreported = append(unreported, w.name)
		}
	}
	what := ""
	switch {
	case len(unhurt) > 0:
		return fmt.Errorf("the storm passed by: no write was refused of %s", strings.Join(unhurt, ", "))
	case len(unreported) > 0:
		what = fmt.Sprintf("no event %s on Service %s, though Azure refused writes", reasonRetrying, strings.Join(unreported, ", "))
	case !t.tablePrinted:
		what = "the BackendPools were not all " + stateRetrying + " at any time, though Azure refused writes of all"
	case !t.gatePrinted:
		what = "the BackendPools did not say until when all are parked, though Azure takes no write"
	default:
		return nil
	}
	return &notVisibleError{what, append([]string{"kubectl get backendpools showed at last:"}, t.latestTable.formatLines(width, optionalColumns...)...)}
}

// notVisibleError means that the storm was not visible to users.
type notVisibleError struct {
	missing string
	details []string
}

func (e *notVisibleError) Error() string { return e.missing }

// eventsTimeout is how long the events of a rejected attempt may take.
const eventsTimeout = 30 * time.Second

// checkStormEvents compares the events with Azure's rejections: each rejected attempt that is retried has
// exactly one Retrying event. A rejected write of a pipelined update is not an attempt.
func (s *stage) checkStormEvents(ctx context.Context) error {
	var failures string
	limited, cancel := context.WithTimeoutCause(ctx, min(s.deadline, eventsTimeout), errors.New("events"))
	defer cancel()
	err := pollUntil(limited, 2*pollInterval, func() (bool, error) {
		events, err := s.cluster.serviceEvents(ctx, reasonRetrying)
		if err != nil {
			return false, err
		}
		failures = eventMismatch(countByService(events), s.observer.currentTraffic().pools)
		return failures == "", nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case failures != "":
		s.addNote(failures)
	case err != nil:
		return err
	}
	for _, p := range s.observer.poolStates() {
		if p.workload.poolName() == conflictPool {
			s.print.printDetail(fmt.Sprintf("%s holds %s of others", conflictPool, strings.Join(s.observer.foreignNames(p.workload.name), ", ")))
		}
	}
	return nil
}

// maxPipelinedRejections is the maximum number of writes that are rejected because they overlap: after each,
// Weir writes serially for a while.
const maxPipelinedRejections = 3

// eventMismatch returns where events and rejections differ, or "".
func eventMismatch(events map[string]int, refused map[string]poolCalls) string {
	var failures []string
	spared := maxPipelinedRejections
	for _, w := range allWorkloads {
		n, want := events[w.name], refused[w.poolName()].failedAttempts()
		if n > 0 && n < want && want-n <= spared {
			spared -= want - n
			continue
		}
		if n != want {
			failures = append(failures, fmt.Sprintf("Service %s has %s for %s at %s that Azure refused",
				w.name, humanize.FormatCount(n, "Retrying event"), humanize.FormatCount(want, "attempt"), w.poolName()))
		}
	}
	return strings.Join(failures, "; ")
}
