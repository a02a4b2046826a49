// SPDX-License-Identifier: Apache-2.0

package adminstate

import (
	"encoding/json"
	"time"
)

// Event announces a node's eviction. Emitters update it for repeated occurrences.
type Event struct {
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
func (e Event) lastSeen() time.Time {
	at := e.Created
	if repeated := e.Count > 1 || e.Last.After(e.First); repeated && e.Last.After(at) {
		at = e.Last
	}
	return at.UTC().Truncate(time.Second)
}

// Record is the last occurrence applied to a node. It is stored on the node.
type Record struct {
	UID   string    `json:"event"`
	At    time.Time `json:"at"`
	Count int       `json:"count"`
}

// ParseRecord parses the output of String. Invalid text is an empty record.
func ParseRecord(text string) Record {
	var r Record
	if json.Unmarshal([]byte(text), &r) != nil {
		return Record{}
	}
	return r
}

// String returns the stored form.
func (r Record) String() string {
	text, _ := json.Marshal(r) // Kubernetes times have four-digit years
	return string(text)
}

// hasEvent compares counts within one event, regardless of clocks. A second event in the same second
// is covered.
func (r Record) hasEvent(e Event) bool {
	if e.UID == r.UID && e.Count > r.Count {
		return false
	}
	return !e.lastSeen().After(r.At)
}

// Node is the relevant state of a node.
type Node struct {
	Created time.Time
	// HasTaint is true with the spot eviction taint.
	HasTaint bool
	Record   Record
}

// Action is the action for an event.
type Action int

const (
	// ActionIgnore does nothing.
	ActionIgnore Action = iota
	// ActionRecord stores the record and leaves the taints.
	ActionRecord
	// ActionTaint adds the taint and stores the record in one write.
	ActionTaint
)

// HandleEviction returns the action and the record to store. seen is true if [SeenEvents] covers the event.
//
// While the taint is set, repeated occurrences cause no write, because agents repeat them every few
// seconds. After an operator removes the taint, earlier occurrences don't restore it, but later
// ones do. For a node without a record, any occurrence counts, however late.
func HandleEviction(n Node, e Event, seen bool) (Action, Record) {
	recorded := n.Record != Record{}
	switch {
	case e.lastSeen().Before(n.Created.Truncate(time.Second)), n.Record.hasEvent(e), recorded && !e.Transition && (n.HasTaint || seen):
		return ActionIgnore, n.Record
	}
	// Time never moves back, so that covered occurrences stay covered.
	next := Record{UID: e.UID, At: e.lastSeen(), Count: e.Count}
	if n.Record.At.After(next.At) {
		next.At = n.Record.At
	}
	if n.HasTaint {
		return ActionRecord, next
	}
	return ActionTaint, next
}
