// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/nic"
)

// MemberProgress is the state of members that the machine updater writes.
type MemberProgress struct {
	Outcome Outcome
	Fault   *armerror.Fault
	// WaitFor is how long to wait for a completion signal; zero if there will be none.
	WaitFor time.Duration
}

// maxMachineWait bounds the wait in case a signal is lost.
const maxMachineWait = time.Minute

// Limits of messages: number of machines, bytes for each.
const (
	maxListedMachines = 5
	maxMessageBytes   = 160
	maxFailureBytes   = 900
)

// RecordMachines processes machines' states. A pool that has to be empty waits for all: pending joins, or scale sets
// that reference it, would prevent its deletion.
func (r *Result) RecordMachines(state nic.State) {
	h := r.MachineTarget
	r.Unusable = h.removeUnusable(state.Unavailable)
	if h.IsInSync() && (len(h.Target.Members) > 0 || len(state.Working)+len(state.Waiting)+len(state.Failed) == 0 && !state.ScaleSetsUnknown) {
		return
	}
	if len(state.Failed) > 0 {
		r.MemberProgress = h.summarizeFailures(state.Failed)
		return
	}
	waits := slices.Clone(h.waitReasons)
	for _, w := range state.Waiting {
		waits = append(waits, prefixMachine(w.Machine, w.Reason))
	}
	if state.ScaleSetsUnknown && len(state.Working)+len(waits) == 0 {
		waits = append(waits, "scale sets are being listed: one may name the pool")
	}
	r.MemberProgress = &MemberProgress{Outcome: Postponed, Fault: newNotReadyFault(h.progressMessage(state.Working, waits))}
	if len(state.Working)+len(waits) > 0 {
		r.MemberProgress.WaitFor = maxMachineWait
	}
}

func (h *MachineTarget) progressMessage(working []nic.Machine, waits []string) string {
	moving, n := map[string]bool{}, 0
	for _, m := range h.Target.ToRemove {
		moving[m.Key()] = true
	}
	for _, m := range slices.Concat(h.addresses...) {
		moving[m.Key()] = true
	}
	for _, m := range working {
		if moving[m.Key()] {
			n++
		}
	}
	all := max(len(h.Target.Members)+len(h.Target.ToRemove), n)
	var text []string
	if n > 0 {
		are := "are"
		if n == 1 {
			are = "is"
		}
		text = append(text, fmt.Sprintf("%d of %s %s being written", n, humanize.FormatCount(all, "machine"), are))
	}
	if len(waits) > 0 {
		verb := "wait: "
		if len(waits) == 1 {
			verb = "waits: "
		}
		text = append(text, fmt.Sprintf("%d %s%s", len(waits), verb, joinMessages(waits, maxListedMachines)))
	}
	if lacks := h.missingMessage(); len(text) == 0 && lacks != "" {
		return "the pool does not show yet that " + lacks
	}
	if len(text) == 0 {
		return "which machines and scale sets name the pool is being read"
	}
	return strings.Join(text, "; ")
}

func (h *MachineTarget) missingMessage() string {
	var text []string
	if n := len(h.addresses); n > 0 {
		text = append(text, humanize.FormatCount(n, "machine")+" joined")
	}
	if n := len(h.Target.ToRemove); n > 0 {
		text = append(text, humanize.FormatCount(n, "machine")+" left")
	}
	return strings.Join(text, ", ")
}

// summarizeFailures is retriable if any is. Deleted machines and shutdowns prove nothing about the pool, and a
// machine's Retry-After does not delay others.
func (h *MachineTarget) summarizeFailures(all []nic.Failure) *MemberProgress {
	all = slices.Clone(all)
	rank := func(f nic.Failure) int {
		return slices.Index([]armerror.Class{armerror.Terminal, armerror.Retriable, armerror.Stale, armerror.Shutdown}, armerror.FromError(f.Err).Class)
	}
	slices.SortStableFunc(all, func(a, b nic.Failure) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Machine.Key(), b.Machine.Key()))
	})
	first := max(0, slices.IndexFunc(all, func(f nic.Failure) bool { return armerror.FromError(f.Err).Class == armerror.Retriable }))
	worst := *armerror.FromError(all[first].Err)
	messages, codes := make([]string, len(all)), make([]string, len(all))
	for i, f := range all {
		messages[i], codes[i] = prefixMachine(f.Machine, f.Err.Error()), armerror.FromError(f.Err).Code
	}
	prefix := fmt.Sprintf("%d of %s failed: ", len(all), humanize.FormatCount(max(len(h.Target.Members)+len(h.Target.ToRemove), len(all)), "machine"))
	worst.Err = errors.New(formatFailures(prefix, messages, codes))
	worst.RetryAt, worst.MayBeApplied, worst.OperationFailed = time.Time{}, false, false
	switch worst.Class {
	case armerror.Shutdown:
		return &MemberProgress{Outcome: Postponed, Fault: newNotReadyFault(worst.Err.Error())}
	case armerror.Stale:
		worst.Class = armerror.Retriable
	}
	return &MemberProgress{Outcome: Outcome(worst.Class), Fault: &worst}
}

func newNotReadyFault(text string) *armerror.Fault {
	return &armerror.Fault{Class: armerror.Retriable, Code: "NotReady", Reason: "not_ready", Err: fmt.Errorf("%w: %s", ErrNotReady, text)}
}

func prefixMachine(m nic.Machine, text string) string {
	if name := m.String(); !strings.HasPrefix(text, name) {
		text = name + ": " + text
	}
	return text
}

// formatFailures lists fewer failures rather than losing what to do against them.
func formatFailures(prefix string, messages, codes []string) string {
	for limit := maxListedMachines; ; limit-- {
		text := armerror.AppendResolution(prefix+joinMessages(messages, limit), codes)
		if limit == 1 || len(text) <= maxFailureBytes {
			return text
		}
	}
}

func joinMessages(messages []string, limit int) string {
	short := make([]string, len(messages))
	for i, text := range messages {
		short[i] = humanize.FormatMessage(text, maxMessageBytes)
	}
	return humanize.FormatList(short, limit)
}
