// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"reflect"
	"time"
)

const (
	// maxFreeRounds is the number of consecutive rounds without a pause.
	maxFreeRounds = 10
	// The pause after each further round doubles.
	minDelay = time.Second
	maxDelay = 16 * time.Second
	// resetAfter is the time without repeated changes that resets a namespace.
	resetAfter = 64 * time.Second
	// changeTTL is how long a change is remembered.
	changeTTL = 5 * time.Minute
)

// FairLimiter limits how often a namespace that keeps changing the same objects causes a round. Its
// changes take part in others' rounds. The zero value is ready.
type FairLimiter struct {
	lastChanges map[string]lastChange
	namespaces  map[string]repeatCount
}

// SharedChange is an object's desired state in a round.
type SharedChange struct {
	Namespace, Object string
	Desired           any
}

type lastChange struct {
	desired any
	at      time.Time
}

// repeatCount counts consecutive rounds with repeated changes.
type repeatCount struct {
	rounds     int
	at, nextAt time.Time
}

// RecordChanges records the changes of a finished round.
func (f *FairLimiter) RecordChanges(changes []SharedChange, now time.Time) {
	if f.lastChanges == nil {
		f.lastChanges, f.namespaces = map[string]lastChange{}, map[string]repeatCount{}
	}
	repeated := map[string]bool{}
	for _, c := range changes {
		previous, known := f.lastChanges[c.Object]
		if known && now.Sub(previous.at) < changeTTL && !reflect.DeepEqual(previous.desired, c.Desired) {
			repeated[c.Namespace] = true
		}
		f.lastChanges[c.Object] = lastChange{c.Desired, now}
	}
	for namespace := range repeated {
		r := f.namespaces[namespace]
		if now.Sub(r.at) >= resetAfter {
			r = repeatCount{}
		}
		r.rounds, r.at = r.rounds+1, now
		if r.rounds > maxFreeRounds {
			r.nextAt = now.Add(min(minDelay<<min(r.rounds-maxFreeRounds-1, 10), maxDelay))
		}
		f.namespaces[namespace] = r
	}
	f.removeExpired(now)
}

func (f *FairLimiter) removeExpired(now time.Time) {
	for name, c := range f.lastChanges {
		if now.Sub(c.at) >= changeTTL {
			delete(f.lastChanges, name)
		}
	}
	for namespace, r := range f.namespaces {
		if now.Sub(r.at) >= resetAfter {
			delete(f.namespaces, namespace)
		}
	}
}

// NextRoundAt returns when a round may begin for any of the changes.
func (f *FairLimiter) NextRoundAt(waiting []SharedChange) time.Time {
	var first time.Time
	for i, c := range waiting {
		if at := f.namespaces[c.Namespace].nextAt; i == 0 || at.Before(first) {
			first = at
		}
	}
	return first
}
