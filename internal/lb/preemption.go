// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"encoding/json"
	"time"
)

// TaintEvent announces a node's eviction. Emitters update it for repeated occurrences.
type TaintEvent struct {
	UID string
	// Created is by the API server's clock.
	Created time.Time
	// First and Last are by the emitter's clock; zero if unset.
	First, Last time.Time
	Count       int
	// Transition marks a condition that became true at Created. It is not repeated, so each one is
	// recorded.
	Transition bool
}

// lastSeen truncates to seconds, the resolution of most event times. It uses the API server's clock, like
// a node's creation time; the emitter's clock counts only for later updates, and never moves it
// back.
func (e TaintEvent) lastSeen() time.Time {
	at := e.Created
	if repeated := e.Count > 1 || e.Last.After(e.First); repeated && e.Last.After(at) {
		at = e.Last
	}
	return at.UTC().Truncate(time.Second)
}

// EvictionRecord is the last occurrence applied to a node. It is stored on the node.
type EvictionRecord struct {
	UID   string    `json:"event"`
	At    time.Time `json:"at"`
	Count int       `json:"count"`
}

// ParseEvictionRecord parses the output of String. Invalid text is an empty record.
func ParseEvictionRecord(text string) EvictionRecord {
	var r EvictionRecord
	if json.Unmarshal([]byte(text), &r) != nil {
		return EvictionRecord{}
	}
	return r
}

// String returns the stored form.
func (r EvictionRecord) String() string {
	text, _ := json.Marshal(r) // Kubernetes times have four-digit years
	return string(text)
}

// hasEvent compares counts within one event, regardless of clocks. A second event in the same second
// is covered.
func (r EvictionRecord) hasEvent(e TaintEvent) bool {
	if e.UID == r.UID && e.Count > r.Count {
		return false
	}
	return !e.lastSeen().After(r.At)
}

// TaintedNode is the relevant state of a node.
type TaintedNode struct {
	Created time.Time
	// HasTaint is true with the spot eviction taint.
	HasTaint bool
	Record   EvictionRecord
}

// EvictionAction is the action for an event.
type EvictionAction int

const (
	// EvictionIgnored does nothing.
	EvictionIgnored EvictionAction = iota
	// EvictionRecorded stores the record and leaves the taints.
	EvictionRecorded
	// EvictionTaints adds the taint and stores the record in one write.
	EvictionTaints
)

// HandleEviction returns the action and the record to store. seen is true if [SeenEvents] covers the event.
//
// While the taint is set, repeated occurrences cause no write, because agents repeat them every few
// seconds. After an operator removes the taint, earlier occurrences don't restore it, but later
// ones do. For a node without a record, any occurrence counts, however late.
func HandleEviction(n TaintedNode, e TaintEvent, seen bool) (EvictionAction, EvictionRecord) {
	recorded := n.Record != EvictionRecord{}
	switch {
	case e.lastSeen().Before(n.Created.Truncate(time.Second)), n.Record.hasEvent(e), recorded && !e.Transition && (n.HasTaint || seen):
		return EvictionIgnored, n.Record
	}
	// Time never moves back, so that covered occurrences stay covered.
	next := EvictionRecord{UID: e.UID, At: e.lastSeen(), Count: e.Count}
	if n.Record.At.After(next.At) {
		next.At = n.Record.At
	}
	if n.HasTaint {
		return EvictionRecorded, next
	}
	return EvictionTaints, next
}
