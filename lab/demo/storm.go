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

	"weir.dev/weir/internal/words"
)

// storm makes Azure reject writes for a while and a second writer change the same load balancer,
// while all Deployments scale.
func (s *stage) storm(ctx context.Context) error {
	t := &tempest{stage: s, before: s.observer.counted()}
	if err := s.observer.azure.setFaults(ctx, stormFaults()); err != nil {
		return err
	}
	t.began = time.Now()
	s.observer.storm(true)
	defer s.observer.storm(false)
	s.print.line(red, "storm", fmt.Sprintf("for %.0f s Azure throttles %s (429), is busy with %s (429, 409),", stormLength.Seconds(), throttledPool, busyPool)+
		" and a second writer overtakes Weir at "+contestedPool)
	few := s.few()
	s.tell("web scales to %s, api to %d", words.FormatCount(few, "pod"), few)
	if err := s.scale(ctx, few, few); err != nil {
		return err
	}
	if err := t.rage(ctx); err != nil {
		return err
	}
	s.print.line(green, "storm", "is over")
	if err := t.missed(); err != nil {
		s.addNote(err.Error())
		if unseen, ok := errors.AsType[*notShown](err); ok {
			s.print.verbatim(plain, unseen.details...)
		}
	}
	return nil
}

// tempest is the state of a storm. The emulator and the API server decide when its events happen.
type tempest struct {
	*stage
	began  time.Time
	before traffic

	reads int   // of the contested pool, when the second writer acted last
	seen  table // latest
	told  map[string]int
	// Completed events.
	closed, grown, shown, gateShown bool
}

func (t *tempest) rage(ctx context.Context) error {
	return until(ctx, lookEvery, func() (bool, error) {
		for _, act := range []func(context.Context) error{t.overtake, t.closeGate, t.showRetrying, t.grow, t.showGate} {
			if err := act(ctx); err != nil {
				return false, err
			}
		}
		return time.Since(t.began) >= stormLength, nil
	})
}

// calls returns the controller's calls about a pool since the storm began.
func (t *tempest) calls(pool string) poolCalls {
	now, before := t.observer.counted().pools[pool], t.before.pools[pool]
	return poolCalls{
		reads: now.reads - before.reads, writes: now.writes - before.writes,
		throttled: now.throttled - before.throttled, conflicts: now.conflicts - before.conflicts, overtaken: now.overtaken - before.overtaken,
	}
}

// overtakings is how often the second writer wins: before both writes of an attempt.
const overtakings = 2

// overtake writes with the second writer between Weir's read and write of the contested pool, so
// Weir's write gets 412.
func (t *tempest) overtake(ctx context.Context) error {
	calls := t.calls(contestedPool)
	if calls.conflicts >= overtakings || calls.reads == t.reads || !t.behind(contestedPool) {
		return nil
	}
	// While a write is in progress, Weir reads again before it writes.
	if busy, err := newSecondWriter(t.lab.endpoint).busy(ctx); busy || err != nil {
		return err
	}
	t.reads = calls.reads
	ip, name := secondAddress(calls.reads)
	return t.strangerPuts(ctx, contestedPool, ip, name)
}

func secondAddress(n int) (netip.Addr, string) {
	return netip.AddrFrom4([4]byte{10, 225, 0, byte(20 + n)}), fmt.Sprintf("%s-%d", secondWriterID, n) //nolint:gosec // some few
}

func (t *tempest) behind(pool string) bool {
	return slices.ContainsFunc(t.observer.levels(), func(p poolLevel) bool { return p.workload.pool() == pool && !p.level })
}

// closeGate scales the third Deployment once writes of both other pools were rejected: the answer
// to its first write blocks all pools.
func (t *tempest) closeGate(ctx context.Context) error {
	if t.closed || t.calls(throttledPool).refused() == 0 || t.calls(contestedPool).refused() == 0 {
		return nil
	}
	t.closed = true
	fewer := t.few() / 2
	t.tell("db scales to %s", words.FormatCount(fewer, "pod"))
	return t.cluster.scale(ctx, "db", fewer)
}

// few is small enough to change every pool; it is zero in a small cluster.
func (s *stage) few() int { return s.nodes / 10 * 2 }

// grow scales again before the first change succeeded.
func (t *tempest) grow(ctx context.Context) error {
	if t.grown || !t.shown {
		return nil
	}
	t.grown = true
	web, api, db := t.nodes*7/10, t.nodes/2, t.nodes*3/10
	t.tell("web scales to %d pods, api to %d, db to %d", web, api, db)
	return t.scale(ctx, web, api, db)
}

// showRetrying prints what kubectl shows after the first failed attempts.
func (t *tempest) showRetrying(ctx context.Context) error {
	if t.shown || slices.ContainsFunc(workloads, func(w workload) bool { return t.calls(w.pool()).failed() == 0 }) {
		return nil
	}
	events, err := t.cluster.told(ctx, reasonRetrying)
	if err != nil {
		return err
	}
	t.told = countByService(events)
	if t.seen, err = t.cluster.backendPools(ctx); err != nil {
		return err
	}
	if !t.seen.all("STATE", stateRetrying) || len(t.told) < len(workloads) {
		return nil
	}
	t.shown = true
	t.print.verbatim(bold, "", "$ kubectl -n "+namespace+" get events  # the Warnings")
	for i := range events {
		t.print.verbatim(plain, eventLines(&events[i], time.Now(), width)...)
	}
	t.showPools()
	return nil
}

const stateRetrying = "Retrying"

// spare are the columns dropped when space is short, in this order.
var spare = []string{"WHY", "LOAD BALANCER", "SERVICE", "POOL", "AGE", "DOWN"}

// showPools prints the latest table without its spare columns.
func (t *tempest) showPools() {
	t.print.verbatim(bold, "", "$ kubectl -n "+namespace+" get backendpools -o wide  # without its widest columns")
	t.print.verbatim(plain, t.seen.lines(width, spare...)...)
	t.print.verbatim(plain, "")
}

// showGate shows that all pools wait when the subscription's write quota is exhausted.
func (t *tempest) showGate(ctx context.Context) error {
	if t.gateShown || !t.shown {
		return nil
	}
	var err error
	if t.seen, err = t.cluster.backendPools(ctx); err != nil || !t.seen.together("PARKED UNTIL") {
		return err
	}
	t.gateShown = true
	t.print.line(red, "azure", "429 SubscriptionRequestsThrottled was for all: nobody calls")
	t.showPools()
	for _, row := range t.seen.rows {
		t.print.verbatim(plain, wrap(row[0]+": "+t.seen.value(row, "WHY"), width)...)
	}
	t.print.verbatim(plain, "")
	return nil
}

// missed returns an error if the storm ended without being shown.
func (t *tempest) missed() error {
	var unhurt, untold []string
	for _, w := range workloads {
		if t.calls(w.pool()).refused() == 0 {
			unhurt = append(unhurt, w.pool())
		}
		if t.told[w.name] == 0 {
			untold = append(untold, w.name)
		}
	}
	what := ""
	switch {
	case len(unhurt) > 0:
		return fmt.Errorf("the storm passed by: no write was refused of %s", strings.Join(unhurt, ", "))
	case len(untold) > 0:
		what = fmt.Sprintf("no event %s on Service %s, though Azure refused writes", reasonRetrying, strings.Join(untold, ", "))
	case !t.shown:
		what = "the BackendPools were not all " + stateRetrying + " at any time, though Azure refused writes of all"
	case !t.gateShown:
		what = "the BackendPools did not say until when all are parked, though Azure takes no write"
	default:
		return nil
	}
	return &notShown{what, append([]string{"kubectl get backendpools showed at last:"}, t.seen.lines(width, spare...)...)}
}

// notShown means that the storm was not visible to users.
type notShown struct {
	what    string
	details []string
}

func (e *notShown) Error() string { return e.what }

// eventsTimeout is how long the events of a rejected attempt may take.
const eventsTimeout = 30 * time.Second

// afterStorm compares the events with Azure's rejections: each rejected attempt that is retried has
// exactly one Retrying event. A rejected write of a pipelined update is not an attempt.
func (s *stage) afterStorm(ctx context.Context) error {
	var wrong string
	limited, cancel := context.WithTimeoutCause(ctx, min(s.deadline, eventsTimeout), errors.New("events"))
	defer cancel()
	err := until(limited, 2*lookEvery, func() (bool, error) {
		events, err := s.cluster.told(ctx, reasonRetrying)
		if err != nil {
			return false, err
		}
		wrong = untold(countByService(events), s.observer.counted().pools)
		return wrong == "", nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wrong != "":
		s.addNote(wrong)
	case err != nil:
		return err
	}
	for _, p := range s.observer.levels() {
		if p.workload.pool() == contestedPool {
			s.print.detail(fmt.Sprintf("%s holds %s of others", contestedPool, strings.Join(s.observer.foreignIn(p.workload.name), ", ")))
		}
	}
	return nil
}

// overlaps is the maximum number of rejected pipelined writes: after the third, Weir writes
// serially.
const overlaps = 3

// untold returns where events and rejections differ, or "".
func untold(told map[string]int, refused map[string]poolCalls) string {
	var wrong []string
	spared := overlaps
	for _, w := range workloads {
		n, want := told[w.name], refused[w.pool()].failed()
		if n > 0 && n < want && want-n <= spared {
			spared -= want - n
			continue
		}
		if n != want {
			wrong = append(wrong, fmt.Sprintf("Service %s has %s for %s at %s that Azure refused",
				w.name, words.FormatCount(n, "Retrying event"), words.FormatCount(want, "attempt"), w.pool()))
		}
	}
	return strings.Join(wrong, "; ")
}
