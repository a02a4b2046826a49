// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"reflect"
	"time"
)

const (
	// freeRounds is the number of consecutive rounds without a pause.
	freeRounds = 10
	// The pause after each further round doubles.
	firstPause = time.Second
	maxPause   = 16 * time.Second
	// calmAfter is the time without repeated changes that resets a namespace.
	calmAfter = 64 * time.Second
	// changeTTL is how long a change is remembered.
	changeTTL = 5 * time.Minute
)

// Spacing limits how often a namespace that keeps changing the same objects causes a round. Its
// changes take part in others' rounds. The zero value is ready.
type Spacing struct {
	last       map[string]last
	namespaces map[string]repetition
}

// Change is an object's desired state in a round.
type Change struct {
	Namespace, Object string
	Wants             any
}

type last struct {
	wants any
	at    time.Time
}

// repetition counts consecutive rounds with repeated changes.
type repetition struct {
	rounds   int
	at, next time.Time
}

// Add records the changes of a finished round.
func (s *Spacing) Add(changes []Change, now time.Time) {
	if s.last == nil {
		s.last, s.namespaces = map[string]last{}, map[string]repetition{}
	}
	repeated := map[string]bool{}
	for _, c := range changes {
		previous, known := s.last[c.Object]
		if known && now.Sub(previous.at) < changeTTL && !reflect.DeepEqual(previous.wants, c.Wants) {
			repeated[c.Namespace] = true
		}
		s.last[c.Object] = last{c.Wants, now}
	}
	for namespace := range repeated {
		r := s.namespaces[namespace]
		if now.Sub(r.at) >= calmAfter {
			r = repetition{}
		}
		r.rounds, r.at = r.rounds+1, now
		if r.rounds > freeRounds {
			r.next = now.Add(min(firstPause<<min(r.rounds-freeRounds-1, 10), maxPause))
		}
		s.namespaces[namespace] = r
	}
	s.forget(now)
}

func (s *Spacing) forget(now time.Time) {
	for name, c := range s.last {
		if now.Sub(c.at) >= changeTTL {
			delete(s.last, name)
		}
	}
	for namespace, r := range s.namespaces {
		if now.Sub(r.at) >= calmAfter {
			delete(s.namespaces, namespace)
		}
	}
}

// NextAt returns when a round may begin for any of the changes.
func (s *Spacing) NextAt(waiting []Change) time.Time {
	var first time.Time
	for i, c := range waiting {
		if at := s.namespaces[c.Namespace].next; i == 0 || at.Before(first) {
			first = at
		}
	}
	return first
}
