// SPDX-License-Identifier: Apache-2.0

package lb

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

// queryFailedPrefix is sent by AKS's monitor when the metadata service is unreachable.
const queryFailedPrefix = "IMDS query failed"

// EvictionReport is an eviction event.
type EvictionReport struct {
	// Reporter is the event's reportingController, or its source if empty.
	Reporter string
	Message  string
}

// IsTrusted checks the reporter and the message. Any creator of events can forge them; Floor limits
// the damage.
func (s DrainSignals) IsTrusted(a EvictionReport) bool {
	return slices.Contains(s.Reporters, a.Reporter) && !strings.HasPrefix(a.Message, queryFailedPrefix)
}

// Node conditions set by AKS's monitors. The second one covers other events as well, named in its
// message.
const (
	conditionPreemption = "PreemptionScheduled"
	conditionVMEvent    = "VMEventScheduled"
	preemptPrefix       = "Preempt Scheduled"
	// conditionReady is a condition of every node.
	conditionReady = "Ready"
	conditionTrue  = "True"
)

// NodeCondition is a condition of a node.
type NodeCondition struct{ Type, Status, Message string }

// IsEviction does not check a reporter: only writers of nodes/status can set a condition.
func (c NodeCondition) IsEviction() bool {
	switch {
	case c.Status != conditionTrue || strings.HasPrefix(c.Message, queryFailedPrefix):
		return false
	case c.Type == conditionVMEvent:
		return strings.HasPrefix(c.Message, preemptPrefix)
	}
	return c.Type == conditionPreemption
}

// SeenEvents are occurrences, by event UID, that no longer count for nodes without a record: they
// existed at startup, or occurred while the taint was set. Removing the taint dismisses them.
type SeenEvents map[string]TaintEvent

// AddEvent adds an occurrence.
func (s SeenEvents) AddEvent(e TaintEvent) { s[e.UID] = e }

// HasEvent reports whether this or a later occurrence of the event was added.
func (s SeenEvents) HasEvent(e TaintEvent) bool {
	seen, ok := s[e.UID]
	return ok && e.Count <= seen.Count && !e.lastSeen().After(seen.lastSeen())
}
