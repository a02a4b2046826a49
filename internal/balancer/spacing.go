// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"reflect"
	"time"

	"weir.dev/weir/internal/service"
)

const (
	// freeRounds is how many rounds in a row a namespace may cause by changing the same Services again.
	freeRounds = 10
	// firstPause and maxPause bound the pause after each further one, which doubles.
	firstPause = time.Second
	maxPause   = 16 * time.Second
	// calmAfter is how long a namespace must not change a Service again to have its free rounds back.
	calmAfter = 64 * time.Second
	// changeTTL is how long a change of a Service is remembered.
	changeTTL = 5 * time.Minute
)

// spacing decides how soon a namespace that keeps changing the same Services causes another round of
// a resource. Its jobs take part in rounds for other namespaces. The zero value knows of no change.
type spacing struct {
	changes    map[string]change     // by Service
	namespaces map[string]repetition // by namespace
}

// change is the last change of a Service.
type change struct {
	desired *service.Spec
	at      time.Time
}

// repetition counts the rounds in a row with a Service that had changed before.
type repetition struct {
	rounds   int
	at, next time.Time
}

// add notes a round that has ended, and the jobs that took part.
func (s *spacing) add(jobs []*job, now time.Time) {
	if s.changes == nil {
		s.changes, s.namespaces = map[string]change{}, map[string]repetition{}
	}
	again := map[string]bool{}
	for _, j := range jobs {
		was, known := s.changes[j.Service]
		if known && now.Sub(was.at) < changeTTL && !reflect.DeepEqual(was.desired, j.Desired) {
			again[j.namespace()] = true
		}
		s.changes[j.Service] = change{j.Desired, now}
	}
	for namespace := range again {
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

// forget drops what has no effect any more.
func (s *spacing) forget(now time.Time) {
	for name, c := range s.changes {
		if now.Sub(c.at) >= changeTTL {
			delete(s.changes, name)
		}
	}
	for namespace, r := range s.namespaces {
		if now.Sub(r.at) >= calmAfter {
			delete(s.namespaces, namespace)
		}
	}
}

// nextAt returns when the next round begins for these jobs; a time that is over is at once.
func (s *spacing) nextAt(jobs []*job) time.Time {
	var first time.Time
	for i, j := range jobs {
		at := s.namespaces[j.namespace()].next
		if i == 0 || at.Before(first) {
			first = at
		}
	}
	return first
}
