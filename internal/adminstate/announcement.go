// SPDX-License-Identifier: Apache-2.0

package adminstate

import (
	"slices"
	"strings"
)

// DefaultReporters report evictions in events: AKS's node-problem-detector, its other
// scheduled-event monitors, and a detector without custom monitors.
func DefaultReporters() []string {
	return []string{
		"custom-scheduledevents-consolidated-preempt-plugin-monitor",
		"custom-scheduledevents-consolidated-plugin-monitor",
		"node-problem-detector",
	}
}

// DefaultMinAvailablePercent limits the effect of forged events to half a pool; after a real mass
// eviction, health probes remove the rest.
const DefaultMinAvailablePercent = 50

// noAnswer is sent by AKS's monitor when the metadata service is unreachable.
const noAnswer = "IMDS query failed"

// Announcement is an eviction event.
type Announcement struct {
	// Reporter is the event's reportingController, or its source if empty.
	Reporter string
	Message  string
}

// Believes checks the reporter and the message. Any creator of events can forge them; Floor limits
// the damage.
func (s Signals) Believes(a Announcement) bool {
	return slices.Contains(s.Reporters, a.Reporter) && !strings.HasPrefix(a.Message, noAnswer)
}

// Node conditions set by AKS's monitors. The second one covers other events as well, named in its
// message.
const (
	conditionPreemption = "PreemptionScheduled"
	conditionVMEvent    = "VMEventScheduled"
	preemptsVM          = "Preempt Scheduled"
)

// Condition is a condition of a node.
type Condition struct{ Type, Status, Message string }

// Announces does not check a reporter: only writers of nodes/status can set a condition.
func (c Condition) Announces() bool {
	switch {
	case c.Status != "True" || strings.HasPrefix(c.Message, noAnswer):
		return false
	case c.Type == conditionVMEvent:
		return strings.HasPrefix(c.Message, preemptsVM)
	}
	return c.Type == conditionPreemption
}

// Heard are occurrences, by event UID, that no longer count for nodes without a record: they
// existed at startup, or occurred while the taint was set. Removing the taint dismisses them.
type Heard map[string]Event

// Add adds an occurrence.
func (h Heard) Add(e Event) { h[e.UID] = e }

// Covers reports whether this or a later occurrence of the event was added.
func (h Heard) Covers(e Event) bool {
	seen, ok := h[e.UID]
	return ok && e.Count <= seen.Count && !e.at().After(seen.at())
}
