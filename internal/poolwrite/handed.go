// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/words"
)

// Handed is the state of members that the machine updater writes.
type Handed struct {
	// Outcome is Postponed or a failure.
	Outcome Outcome
	Fault   *fault.Fault
	// For is how long to wait for a completion signal; zero if there will be none.
	For time.Duration
}

// machinesLast bounds the wait in case a signal is lost.
const machinesLast = time.Minute

// Limits of messages: number of machines, bytes for each.
const (
	machinesNamed = 5
	machineWords  = 160
)

// Hands processes the state of a pool's machines. A pool in sync is done, unless it has to be
// empty: pending joins, or scale sets that reference it, would prevent its deletion.
func (r *Result) Hands(state nic.State) {
	h := r.HandOver
	r.Unusable = h.drops(state.Unusable)
	if h.Level() && (len(h.Target.Members) > 0 || len(state.Working)+len(state.Waits)+len(state.Failed) == 0 && !state.Looking) {
		return
	}
	if len(state.Failed) > 0 {
		r.Handed = h.failed(state.Failed)
		return
	}
	waits := slices.Clone(h.waits)
	for _, w := range state.Waits {
		waits = append(waits, sayOf(w.Machine, w.Why))
	}
	if state.Looking && len(state.Working)+len(waits) == 0 {
		waits = append(waits, "which scale sets there are is being asked: one may name the pool")
	}
	r.Handed = &Handed{Outcome: Postponed, Fault: notReady(h.says(state.Working, waits))}
	if len(state.Working)+len(waits) > 0 {
		r.Handed.For = machinesLast
	}
}

// says returns the progress message. Machines that are only read do not count.
func (h *HandOver) says(working []nic.Machine, waits []string) string {
	moving, n := map[string]bool{}, 0
	for _, m := range slices.Concat(h.Target.Leaves, h.joining()) {
		moving[m.Key()] = true
	}
	for _, m := range working {
		if moving[m.Key()] {
			n++
		}
	}
	all := max(len(h.Target.Members)+len(h.Target.Leaves), n)
	var text []string
	if n > 0 {
		are := "are"
		if n == 1 {
			are = "is"
		}
		text = append(text, fmt.Sprintf("%d of %s %s being written", n, words.Count(all, "machine"), are))
	}
	if len(waits) > 0 {
		verb := "wait: "
		if len(waits) == 1 {
			verb = "waits: "
		}
		text = append(text, fmt.Sprintf("%d %s%s", len(waits), verb, listed(waits)))
	}
	if lacks := h.lacks(); len(text) == 0 && lacks != "" {
		return "the pool does not show yet that " + lacks
	}
	if len(text) == 0 {
		return "which machines and scale sets name the pool is being read"
	}
	return strings.Join(text, "; ")
}

func (h *HandOver) joining() (machines []nic.Machine) {
	for _, j := range h.joins {
		machines = append(machines, j.machines...)
	}
	return machines
}

// lacks describes what the pool does not show yet, without writes in progress.
func (h *HandOver) lacks() string {
	var text []string
	if n := len(h.joins); n > 0 {
		text = append(text, words.Count(n, "machine")+" joined")
	}
	if n := len(h.Target.Leaves); n > 0 {
		text = append(text, words.Count(n, "machine")+" left")
	}
	return strings.Join(text, ", ")
}

// failed summarizes failures; it is retriable if any is. Deleted machines and shutdowns say nothing
// about the pool, and a machine's Retry-After does not delay others.
func (h *HandOver) failed(all []nic.Failure) *Handed {
	all = slices.Clone(all)
	rank := func(f nic.Failure) int {
		return slices.Index([]fault.Class{fault.Terminal, fault.Retriable, fault.Stale, fault.Shutdown}, fault.From(f.Err).Class)
	}
	slices.SortStableFunc(all, func(a, b nic.Failure) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Machine.Key(), b.Machine.Key()))
	})
	first := max(0, slices.IndexFunc(all, func(f nic.Failure) bool { return fault.From(f.Err).Class == fault.Retriable }))
	worst := *fault.From(all[first].Err)
	messages := make([]string, len(all))
	for i, f := range all {
		messages[i] = sayOf(f.Machine, f.Err.Error())
	}
	worst.Err = fmt.Errorf("%d of %s failed: %s", len(all), words.Count(max(len(h.Target.Members)+len(h.Target.Leaves), len(all)), "machine"), listed(messages))
	worst.RetryAt, worst.Undecided, worst.Ended = time.Time{}, false, false
	switch worst.Class {
	case fault.Shutdown:
		return &Handed{Outcome: Postponed, Fault: notReady(worst.Err.Error())}
	case fault.Stale:
		worst.Class = fault.Retriable
	}
	return &Handed{Outcome: outcomeOf(&worst), Fault: &worst}
}

func notReady(text string) *fault.Fault {
	return &fault.Fault{Class: fault.Retriable, Code: "NotReady", Reason: "not_ready", Err: fmt.Errorf("%w: %s", ErrNotReady, text)}
}

// sayOf prefixes the machine's name unless present.
func sayOf(m nic.Machine, text string) string {
	if name := m.String(); !strings.HasPrefix(text, name) {
		text = name + ": " + text
	}
	return text
}

func listed(messages []string) string {
	short := make([]string, len(messages))
	for i, text := range messages {
		short[i] = words.Sentence(text, machineWords)
	}
	return words.List(short, machinesNamed)
}
