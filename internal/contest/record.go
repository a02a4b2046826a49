// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"reflect"
	"time"
)

// Parts that are contested stay as somebody else wants them, and Weir tries again after a pause
// that doubles.
const (
	firstLeft = 30 * time.Minute
	lastLeft  = 24 * time.Hour
	// forgets is how long ago it has to be that a part was undone, once the Service is level
	// again, to count no more.
	forgets = time.Hour
	// Azure may show something else right after a write than was written, for so long and so
	// often, before that counts as undone: a policy can change what is written, but Azure can be
	// late as well.
	atOnce      = 5 * time.Minute
	timesAtOnce = 5
)

// record is what is known of one Service in one resource.
type record struct {
	asked Asked
	// held is true once Azure has shown all parts as they were written.
	held bool
	// otherwise are the writes in a row right after which Azure showed something else: the
	// first, the last, and how many.
	otherwise struct {
		first, last time.Time
		times       int
	}
	// found are the parts that were undone, and when that was found last.
	found map[string]time.Time
	// left counts how often they were left as they are, until that is forgotten.
	left    int
	contest *Contest // nil if there is none
}

func (a Asked) equal(b Asked) bool {
	return a.On == b.On && a.Again == b.Again && reflect.DeepEqual(a.Desired, b.Desired)
}

// look is a look at all parts, of which these differ.
func (r *record) look(name string, differ []Undone, now time.Time) (leave bool) {
	switch {
	case !r.held && (r.otherwise.times < timesAtOnce || r.otherwise.last.Sub(r.otherwise.first) < atOnce):
		return false // our own write is still to come, or nobody knows what became of it
	case len(differ) == 0:
		r.level(now)
		return false
	}
	return r.undone(name, differ, now)
}

// shownOtherwise is for a write after which Azure showed something else.
func (r *record) shownOtherwise(now time.Time) {
	if r.otherwise.times == 0 {
		r.otherwise.first = now
	}
	r.otherwise.last = now
	r.otherwise.times++
}

// shown is for a look, or a write, after which Azure shows all as it was written.
func (r *record) shown() *Contest {
	r.held = true
	if r.contest == nil {
		r.otherwise.times = 0
		return nil
	}
	c := *r.contest
	return &c
}

// level is for a look that finds all as it should be.
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

// undone is for a look that finds parts undone. Parts that are undone for the first time are
// written again: somebody may have edited them by hand.
func (r *record) undone(name string, differ []Undone, now time.Time) (leave bool) {
	again := !r.held // each time, at once
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
