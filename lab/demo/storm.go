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

func (s *stormState) advanceStorm(ctx context.Context) error {
	return pollUntil(ctx, pollInterval, func() (bool, error) {
		for _, act := range []func(context.Context) error{s.writeConflict, s.closeGate, s.printRetrying, s.scaleAgain, s.printGate} {
			if err := act(ctx); err != nil {
				return false, err
			}
		}
		return time.Since(s.startTime) >= stormLength, nil
	})
}

// poolCalls returns the controller's calls about a pool since the storm began.
func (s *stormState) poolCalls(pool string) poolCalls {
	now, before := s.observer.currentTraffic().pools[pool], s.before.pools[pool]
	return poolCalls{
		reads: now.reads - before.reads, writes: now.writes - before.writes,
		throttled: now.throttled - before.throttled, conflicts: now.conflicts - before.conflicts, preconditionFailed: now.preconditionFailed - before.preconditionFailed,
	}
}

// conflictWrites is how often the second writer wins: before both writes of an attempt.
const conflictWrites = 2

// writeConflict writes with the second writer between Weir's read and write of the contested pool, so
// Weir's write gets 412.
func (s *stormState) writeConflict(ctx context.Context) error {
	calls := s.poolCalls(conflictPool)
	if calls.conflicts >= conflictWrites || calls.reads == s.reads || !s.isBehind(conflictPool) {
		return nil
	}
	// While a write is in progress, Weir reads again before it writes.
	if busy, err := newSecondWriter(s.lab.endpoint).isBusy(ctx); busy || err != nil {
		return err
	}
	s.reads = calls.reads
	ip, name := secondWriterAddress(calls.reads)
	return s.addForeignMember(ctx, conflictPool, ip, name)
}

func secondWriterAddress(n int) (netip.Addr, string) {
	return netip.AddrFrom4([4]byte{10, 225, 0, byte(20 + n)}), fmt.Sprintf("%s-%d", secondWriterID, n) //nolint:gosec // some few
}

func (s *stormState) isBehind(pool string) bool {
	return slices.ContainsFunc(s.observer.poolStates(), func(p poolState) bool { return p.workload.poolName() == pool && !p.isInSync })
}

// closeGate scales the third Deployment once writes of both other pools were rejected: the answer
// to its first write blocks all pools.
func (s *stormState) closeGate(ctx context.Context) error {
	if s.isGateClosed || s.poolCalls(throttledPool).rejected() == 0 || s.poolCalls(conflictPool).rejected() == 0 {
		return nil
	}
	s.isGateClosed = true
	fewer := s.smallScale() / 2
	s.printAction("db scales to %s", humanize.FormatCount(fewer, "pod"))
	return s.cluster.scaleDeployment(ctx, "db", fewer)
}

// smallScale is small enough to change every pool; it is zero in a small cluster.
func (s *stage) smallScale() int { return s.nodes / 10 * 2 }

// scaleAgain scales again before the first change succeeded.
func (s *stormState) scaleAgain(ctx context.Context) error {
	if s.isScaled || !s.tablePrinted {
		return nil
	}
	s.isScaled = true
	web, api, db := s.nodes*7/10, s.nodes/2, s.nodes*3/10
	s.printAction("web scales to %d pods, api to %d, db to %d", web, api, db)
	return s.scaleAll(ctx, web, api, db)
}

// printRetrying prints what kubectl shows after the first failed attempts.
func (s *stormState) printRetrying(ctx context.Context) error {
	if s.tablePrinted || slices.ContainsFunc(allWorkloads, func(w workload) bool { return s.poolCalls(w.poolName()).failedAttempts() == 0 }) {
		return nil
	}
	events, err := s.cluster.serviceEvents(ctx, reasonRetrying)
	if err != nil {
		return err
	}
	s.eventsPrinted = countByService(events)
	if s.latestTable, err = s.cluster.backendPools(ctx); err != nil {
		return err
	}
	if !s.latestTable.allEqual("STATE", stateRetrying) || len(s.eventsPrinted) < len(allWorkloads) {
		return nil
	}
	s.tablePrinted = true
	s.print.printVerbatim(boldText, "", "$ kubectl -n "+namespace+" get events  # the Warnings")
	for i := range events {
		s.print.printVerbatim(plainText, eventLines(&events[i], time.Now(), width)...)
	}
	s.printTable()
	return nil
}

const stateRetrying = "Retrying"

// optionalColumns are the columns dropped when space is short, in this order.
var optionalColumns = []string{"WHY", "LOAD BALANCER", "SERVICE", "POOL", "AGE", "DOWN", "PAUSED UNTIL", "MISSING", "SURPLUS", "RETRIES", "FOREIGN"}

// printTable prints the latest table without its spare columns.
func (s *stormState) printTable() {
	s.print.printVerbatim(boldText, "", "$ kubectl -n "+namespace+" get backendpools -o wide  # without its widest columns")
	s.print.printVerbatim(plainText, s.latestTable.formatLines(width, optionalColumns...)...)
	s.print.printVerbatim(plainText, "")
}

// printGate shows that all pools wait when the subscription's write quota is exhausted.
func (s *stormState) printGate(ctx context.Context) error {
	if s.gatePrinted || !s.tablePrinted {
		return nil
	}
	var err error
	if s.latestTable, err = s.cluster.backendPools(ctx); err != nil || !s.latestTable.sameTime("PARKED UNTIL") {
		return err
	}
	s.gatePrinted = true
	s.print.printLine(redText, "azure", "429 SubscriptionRequestsThrottled was for all: nobody calls")
	s.printTable()
	for _, row := range s.latestTable.rows {
		s.print.printVerbatim(plainText, wrapText(row[0]+": "+s.latestTable.cellValue(row, "WHY"), width)...)
	}
	s.print.printVerbatim(plainText, "")
	return nil
}

// missedError returns an error if the storm ended without being shown.
func (s *stormState) missedError() error {
	var unhurt, unreported []string
	for _, w := range allWorkloads {
		if s.poolCalls(w.poolName()).rejected() == 0 {
			unhurt = append(unhurt, w.poolName())
		}
		if s.eventsPrinted[w.name] == 0 {
			unreported = append(unreported, w.name)
		}
	}
	text := ""
	switch {
	case len(unhurt) > 0:
		return fmt.Errorf("the storm passed by: no write was refused of %s", strings.Join(unhurt, ", "))
	case len(unreported) > 0:
		text = fmt.Sprintf("no event %s on Service %s, though Azure refused writes", reasonRetrying, strings.Join(unreported, ", "))
	case !s.tablePrinted:
		text = "the BackendPools were not all " + stateRetrying + " at any time, though Azure refused writes of all"
	case !s.gatePrinted:
		text = "the BackendPools did not say until when all are parked, though Azure takes no write"
	default:
		return nil
	}
	return &notVisibleError{text, append([]string{"kubectl get backendpools showed at last:"}, s.latestTable.formatLines(width, optionalColumns...)...)}
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
