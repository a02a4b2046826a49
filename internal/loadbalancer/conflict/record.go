// SPDX-License-Identifier: Apache-2.0

package conflict

import (
	"reflect"
	"slices"
	"time"
)

// A contested part is not written for minBackoff, then for twice as long each time, at most maxBackoff.
const (
	minBackoff = 30 * time.Minute
	maxBackoff = 24 * time.Hour
	// revertTTL is the age from which a revert does not count once the Service is in sync.
	revertTTL = time.Hour
	// How long and how often a read right after a write has to differ to count as a revert: a
	// policy may change writes, but reads may also be stale.
	minMismatchTime = 5 * time.Minute
	minMismatches   = 5
	// A part is written again after this many reverts. A missing resource serves no client, so it is created once more.
	maxPartRewrites     = 1
	maxResourceRewrites = 2
)

// reverts counts the reverts of a part.
type reverts struct {
	last  time.Time
	count int
}

// record is a Service in a resource.
type record struct {
	desired DesiredKey
	// isConfirmed is true once Azure has shown all parts as written.
	isConfirmed bool
	// mismatches counts consecutive writes that Azure did not show.
	mismatches struct {
		first, last time.Time
		count       int
	}
	reverted     map[string]reverts
	backoffCount int
	conflict     *Conflict // nil if none
	isMissing    bool      // the conflict is about a missing resource
}

func (d DesiredKey) isEqual(b DesiredKey) bool {
	return d.LoadBalancer == b.LoadBalancer && d.RetryToken == b.RetryToken && reflect.DeepEqual(d.Desired, b.Desired)
}

// processRead processes a read in which the changed parts are out of sync.
func (r *record) processRead(name string, changed []RevertedPart, now time.Time) (leave bool) {
	switch {
	case !r.isConfirmed && (r.mismatches.count < minMismatches || r.mismatches.last.Sub(r.mismatches.first) < minMismatchTime):
		return false // Weir's own write is pending or its result unknown
	case len(changed) == 0:
		r.setInSync(now)
		return false
	}
	return r.processReverts(name, changed, now)
}

func (r *record) addMismatch(now time.Time) {
	if r.mismatches.count == 0 {
		r.mismatches.first = now
	}
	r.mismatches.last = now
	r.mismatches.count++
}

// confirmMatch processes a read or write that shows everything as written.
func (r *record) confirmMatch() *Conflict {
	r.isConfirmed = true
	if r.conflict == nil {
		r.mismatches.count = 0
		return nil
	}
	c := *r.conflict
	return &c
}

func (r *record) setInSync(now time.Time) {
	r.conflict, r.mismatches.count = nil, 0
	for part, of := range r.reverted {
		if now.Sub(of.last) >= revertTTL {
			delete(r.reverted, part)
		}
	}
	if len(r.reverted) == 0 {
		r.backoffCount = 0
	}
}

// processReverts processes reverted parts. The first reverts, which may be manual edits, are written again.
func (r *record) processReverts(name string, changed []RevertedPart, now time.Time) (leave bool) {
	isMissing := slices.ContainsFunc(changed, func(u RevertedPart) bool { return u.IsResource })
	if r.isMissing && !isMissing { // it exists again
		r.conflict = nil
	}
	r.isMissing = isMissing
	repeated := !r.isConfirmed // reverted right after each write
	var texts []string
	for _, u := range changed {
		of := reverts{last: now, count: r.reverted[u.Part].count + 1}
		repeated = repeated || of.count > maxPartRewrites && !u.IsResource || of.count > maxResourceRewrites
		r.reverted[u.Part] = of
		texts = append(texts, u.Text)
	}
	if r.conflict == nil && !repeated {
		r.isConfirmed = false
		return false
	}
	if r.conflict == nil {
		r.conflict = &Conflict{Resource: name, Since: now}
	}
	c := r.conflict
	c.Reverted = texts
	switch {
	case now.Before(c.Until):
		return true
	case !c.Until.IsZero(): // the pause is over
		c.Until, r.isConfirmed = time.Time{}, false
		return false
	}
	c.Until = now.Add(min(minBackoff<<min(r.backoffCount, 10), maxBackoff))
	r.backoffCount++
	return true
}
