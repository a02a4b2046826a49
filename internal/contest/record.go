// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"reflect"
	"time"
)

// Weir leaves contested parts unchanged for a pause, which doubles each time, and then writes them
// again.
const (
	firstLeft = 30 * time.Minute
	lastLeft  = 24 * time.Hour
	// forgets is how long ago a part must have been reverted to no longer count, once the Service
	// is in sync again.
	forgets = time.Hour
	// How long and how often Azure must show something other than just written until that counts as
	// a revert: a policy may change what is written, but a read may also be stale.
	atOnce      = 5 * time.Minute
	timesAtOnce = 5
)

// record is the state of one Service in one resource.
type record struct {
	asked Asked
	// held is true once Azure has shown all parts as written.
	held bool
	// otherwise counts consecutive writes after which Azure showed something else, with the times
	// of the first and the last.
	otherwise struct {
		first, last time.Time
		times       int
	}
	// found maps each reverted part to when that was last detected.
	found map[string]time.Time
	// left counts the pauses until the conflict is forgotten.
	left    int
	contest *Contest // nil if none
}

func (a Asked) equal(b Asked) bool {
	return a.On == b.On && a.Again == b.Again && reflect.DeepEqual(a.Desired, b.Desired)
}

// look processes a read of all parts, of which differ are out of sync.
func (r *record) look(name string, differ []Undone, now time.Time) (leave bool) {
	switch {
	case !r.held && (r.otherwise.times < timesAtOnce || r.otherwise.last.Sub(r.otherwise.first) < atOnce):
		return false // Weir's own write is pending or its result unknown
	case len(differ) == 0:
		r.level(now)
		return false
	}
	return r.undone(name, differ, now)
}

// shownOtherwise processes a write after which Azure showed something else.
func (r *record) shownOtherwise(now time.Time) {
	if r.otherwise.times == 0 {
		r.otherwise.first = now
	}
	r.otherwise.last = now
	r.otherwise.times++
}

// shown processes a read or write after which Azure shows everything as written.
func (r *record) shown() *Contest {
	r.held = true
	if r.contest == nil {
		r.otherwise.times = 0
		return nil
	}
	c := *r.contest
	return &c
}

// level processes a read that finds everything in sync.
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

// undone processes a read that finds reverted parts. The first revert is written again, because it
// may be a manual edit.
func (r *record) undone(name string, differ []Undone, now time.Time) (leave bool) {
	again := !r.held // reverted right after each write
	var texts []string
	for _, u := range differ {
		_, before := r.found[u.Part]
		again = again || before
		r.found[u.Part] = now
		texts = append(texts, u.Text)
	}
	if r.contest == nil && !again {
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
