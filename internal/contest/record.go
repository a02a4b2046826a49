// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"reflect"
	"time"
)

// Contested parts are left for a pause, which doubles each time, and then written again.
const (
	firstLeft = 30 * time.Minute
	lastLeft  = 24 * time.Hour
	// forgets is the age from which a revert does not count once the Service is in sync.
	forgets = time.Hour
	// How long and how often a read right after a write has to differ to count as a revert: a
	// policy may change writes, but reads may also be stale.
	atOnce      = 5 * time.Minute
	timesAtOnce = 5
)

// record is a Service in a resource.
type record struct {
	asked Asked
	// held is true once Azure has shown all parts as written.
	held bool
	// otherwise counts consecutive writes that Azure did not show.
	otherwise struct {
		first, last time.Time
		times       int
	}
	// found maps reverted parts to the last detection.
	found   map[string]time.Time
	left    int
	contest *Contest // nil if none
}

func (a Asked) equal(b Asked) bool {
	return a.On == b.On && a.Again == b.Again && reflect.DeepEqual(a.Desired, b.Desired)
}

// look processes a read in which the changed parts are out of sync.
func (r *record) look(name string, changed []Undone, now time.Time) (leave bool) {
	switch {
	case !r.held && (r.otherwise.times < timesAtOnce || r.otherwise.last.Sub(r.otherwise.first) < atOnce):
		return false // Weir's own write is pending or its result unknown
	case len(changed) == 0:
		r.level(now)
		return false
	}
	return r.undone(name, changed, now)
}

func (r *record) shownOtherwise(now time.Time) {
	if r.otherwise.times == 0 {
		r.otherwise.first = now
	}
	r.otherwise.last = now
	r.otherwise.times++
}

// shown processes a read or write that shows everything as written.
func (r *record) shown() *Contest {
	r.held = true
	if r.contest == nil {
		r.otherwise.times = 0
		return nil
	}
	c := *r.contest
	return &c
}

func (r *record) level(now time.Time) {
	r.contest, r.otherwise.times = nil, 0
	for part, at := range r.found {
		if now.Sub(at) >= forgets {
			delete(r.found, part)
		}
	}
	if len(r.found) == 0 {
		r.left = 0
	}
}

// undone processes reverted parts. The first revert, which may be a manual edit, is written again.
func (r *record) undone(name string, changed []Undone, now time.Time) (leave bool) {
	repeated := !r.held // reverted right after each write
	var texts []string
	for _, u := range changed {
		_, before := r.found[u.Part]
		repeated = repeated || before
		r.found[u.Part] = now
		texts = append(texts, u.Text)
	}
	if r.contest == nil && !repeated {
		r.held = false
		return false
	}
	if r.contest == nil {
		r.contest = &Contest{In: name, Since: now}
	}
	c := r.contest
	c.Undone = texts
	switch {
	case now.Before(c.Until):
		return true
	case !c.Until.IsZero(): // the pause is over
		c.Until, r.held = time.Time{}, false
		return false
	}
	c.Until = now.Add(min(firstLeft<<min(r.left, 10), lastLeft))
	r.left++
	return true
}
