// SPDX-License-Identifier: Apache-2.0

package adminstate

import (
	"slices"
	"strings"
)

// DefaultReporters write the events that announce evictions: the first is what AKS's
// node-problem-detector calls itself in them, the others are what its further monitors of
// scheduled events, and a detector without monitors of its own, are taken to be called.
func DefaultReporters() []string {
	return []string{
		"custom-scheduledevents-consolidated-preempt-plugin-monitor",
		"custom-scheduledevents-consolidated-plugin-monitor",
		"node-problem-detector",
	}
}

// DefaultMinAvailablePercent is the share of a pool that announced evictions leave up. A
// forged wave costs half a pool; of a true one, what stays is dead soon, and its probe says so.
const DefaultMinAvailablePercent = 50

// noAnswer begins the message of an event that AKS's monitor has been seen to write when the
// metadata service did not answer it: nothing is known of an eviction then.
const noAnswer = "IMDS query failed"

// Announcement is who says what in an event about an eviction.
type Announcement struct {
	// Reporter is the event's reportingController, or its source where that is empty.
	Reporter string
	Message  string
}

// Believes reports whether an announcement is one, and from somebody who may make it. Anybody
// who may write events may call himself so: Floor bounds what that is worth.
func (s Signals) Believes(a Announcement) bool {
	return slices.Contains(s.Reporters, a.Reporter) && !strings.HasPrefix(a.Message, noAnswer)
}

// The conditions of a node that announce its eviction, as AKS's monitors set them. The second
// speaks of other events as well, and says in its message of which.
const (
	conditionPreemption = "PreemptionScheduled"
	conditionVMEvent    = "VMEventScheduled"
	preemptsVM          = "Preempt Scheduled"
)

// Condition is a condition of a node.
type Condition struct{ Type, Status, Message string }

// Announces reports whether a condition announces the eviction of its node. Only the node itself
// and those that may write nodes/status set one, so no reporter is asked for.
func (c Condition) Announces() bool {
	switch {
	case c.Status != "True" || strings.HasPrefix(c.Message, noAnswer):
		return false
	case c.Type == conditionVMEvent:
		return strings.HasPrefix(c.Message, preemptsVM)
	}
	return c.Type == conditionPreemption
}

// Heard are the occurrences that change nothing any more though no node has a record of them,
// by the UID of their event: this process found them as it began, or heard them while the
// taint stood. Whoever has cleared the taint since has cleared it for them, too.
type Heard map[string]Event

// Add notes an occurrence.
func (h Heard) Add(e Event) { h[e.UID] = e }

// Covers reports whether an occurrence was noted, or an event's later one was.
func (h Heard) Covers(e Event) bool {
	heard, ok := h[e.UID]
	return ok && e.Count <= heard.Count && !e.at().After(heard.at())
}
