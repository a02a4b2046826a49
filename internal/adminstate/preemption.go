// SPDX-License-Identifier: Apache-2.0

package adminstate

import (
	"encoding/json"
	"time"
)

// Event is an event about a node's name that announces its eviction. An emitter that says
// the same again changes the event instead of making another one.
type Event struct {
	UID string
	// Created is when the API server first saw it, by its clock.
	Created time.Time
	// First and Last are the first and the latest occurrence by the emitter's clock; zero
	// if the event does not say.
	First, Last time.Time
	Count       int
	// Transition is true for a condition of the node that became true at Created: nobody repeats
	// it, so each is recorded.
	Transition bool
}

// at returns when the latest occurrence was, in whole seconds: most times of events have no
// more. The API server's clock is preferred, which also says when a node was created; that
// of the emitter counts alone where an event was changed later, and never back behind the
// other.
func (e Event) at() time.Time {
	at := e.Created
	if repeated := e.Count > 1 || e.Last.After(e.First); repeated && e.Last.After(at) {
		at = e.Last
	}
	return at.UTC().Truncate(time.Second)
}

// Record is the latest occurrence that a node has been judged by. It is kept on the node,
// so it ends with it.
type Record struct {
	UID   string    `json:"event"`
	At    time.Time `json:"at"`
	Count int       `json:"count"`
}

// ParseRecord reads what String wrote. What it cannot read is no record.
func ParseRecord(text string) Record {
	var r Record
	if json.Unmarshal([]byte(text), &r) != nil {
		return Record{}
	}
	return r
}

// String returns the record as it is kept.
func (r Record) String() string {
	text, _ := json.Marshal(r) // the year of a Kubernetes time has four digits
	return string(text)
}

// covers reports whether an occurrence is no later than the record. Within one event the
// count says so, whatever the emitter's clock does. Of two events in the same second the
// second one is covered: nobody has cleared a taint in between.
func (r Record) covers(e Event) bool {
	if e.UID == r.UID && e.Count > r.Count {
		return false
	}
	return !e.at().After(r.At)
}

// Node is what counts of a node when its eviction is announced.
type Node struct {
	Created time.Time
	// Tainted says that the taint of a spot eviction is on it.
	Tainted bool
	Record  Record
}

// Verdict is what has to be done about an event.
type Verdict int

const (
	// Ignore it: nothing is written.
	Ignore Verdict = iota
	// Note it: keep the record, and leave the taints as they are.
	Note
	// Put the taint on the node, and keep the record, in one write.
	Put
)

// Preempted judges an event, and returns the record to keep. heard says that it is one of
// Heard.
//
// While the taint stands a later occurrence changes nothing, and costs no write: agents repeat
// themselves every few seconds. That it was heard is known to this process, and the next one
// takes what it finds as it begins for heard. So an operator who clears the taint has cleared
// it for all of that, and what occurs afterwards puts it back. A node without a record was
// never judged: its first occurrence counts however late it is found.
func Preempted(n Node, e Event, heard bool) (Verdict, Record) {
	judged := n.Record != Record{}
	switch {
	case e.at().Before(n.Created.Truncate(time.Second)), n.Record.covers(e), judged && !e.Transition && (n.Tainted || heard):
		return Ignore, n.Record
	}
	// The time never goes back, so that what was covered stays so.
	next := Record{UID: e.UID, At: e.at(), Count: e.Count}
	if n.Record.At.After(next.At) {
		next.At = n.Record.At
	}
	if n.Tainted {
		return Note, next
	}
	return Put, next
}
