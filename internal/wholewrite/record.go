// SPDX-License-Identifier: Apache-2.0

package wholewrite

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/behaviour"
)

// Record is what is on record of one subscription.
type Record struct {
	// Version is the Weir that has seen it. What another one saw counts no more: it may have
	// written otherwise.
	Version     string  `json:"version"`
	Addresses   Verdict `json:"addresses,omitzero"`
	AdminStates Verdict `json:"adminStates,omitzero"`
	Overlapping Verdict `json:"overlapping,omitzero"`
}

// Verdict is what Azure does with one change; the zero value is not known, and not tried.
type Verdict struct {
	Answer behaviour.Answer `json:"answer,omitempty"`
	// At is when Azure was last seen to keep to it.
	At time.Time `json:"at,omitzero"`
	// Trials counts the writes that were to find it out, and TriedAt is when the last began.
	Trials  int       `json:"trials,omitempty"`
	TriedAt time.Time `json:"triedAt,omitzero"`
}

// Of returns the verdict on a change.
func (r Record) Of(c Change) Verdict {
	switch c {
	case AdminStates:
		return r.AdminStates
	case Overlapping:
		return r.Overlapping
	case Addresses:
	}
	return r.Addresses
}

func (r Record) with(c Change, v Verdict) Record {
	switch c {
	case Addresses:
		r.Addresses = v
	case AdminStates:
		r.AdminStates = v
	case Overlapping:
		r.Overlapping = v
	}
	return r
}

// Tried returns the record with one more trial, which begins now. It has to be kept before: a
// trial that ends the process is one, too.
func (r Record) Tried(c Change, version string, now time.Time) Record {
	r = r.of(version)
	v := r.Of(c)
	v.Trials, v.TriedAt = v.trials(version, version, now)+1, now
	v.Answer, v.At = "", time.Time{}
	return r.with(c, v)
}

// Untried returns the record without the last trial, which was not made; before is the record from
// before it. What was seen since counts more.
func (r Record) Untried(c Change, before Record) Record {
	if r.Of(c).Answer != "" {
		return r
	}
	return r.with(c, before.of(r.Version).Of(c))
}

// Saw returns the record with what Azure was seen to do just now, and whether it says anything
// that it did not say before, but for the hour.
func (r Record) Saw(c Change, a behaviour.Answer, version string, now time.Time) (Record, bool) {
	r = r.of(version)
	v := r.Of(c)
	fresh := v.Answer != a || !near(v.At, now, refreshAfter)
	if fresh {
		v.Answer, v.At = a, now
	}
	return r.with(c, v), fresh
}

// refreshAfter is how old a verdict may be on record that is seen to hold every minute.
const refreshAfter = 24 * time.Hour

// of drops what another version has seen.
func (r Record) of(version string) Record {
	if r.Version != version {
		return Record{Version: version}
	}
	return r
}

// holds reports whether the verdict counts.
func (v Verdict) holds(by, version string, now time.Time) bool {
	return by == version && slices.Contains(answers, v.Answer) && near(v.At, now, Lifetime)
}

// answers are all that a verdict may have.
var answers = []behaviour.Answer{
	behaviour.Taken, behaviour.Ignored,
	behaviour.Supersede, behaviour.SupersedeDiscard, behaviour.SupersedeDiscardLate, behaviour.Lock, behaviour.Conflict,
}

// trials counts those that still do.
func (v Verdict) trials(by, version string, now time.Time) int {
	if by != version || !near(v.TriedAt, now, Lifetime) {
		return 0
	}
	return max(v.Trials, 0)
}

// near reports whether two times are less apart than d, whichever way clocks were set meanwhile.
func near(a, b time.Time, d time.Duration) bool { return a.Sub(b).Abs() < d }

// mostText bounds what is read.
const mostText = 64 << 10

// Parse reads what Format has written, by subscription; nothing is an empty text.
func Parse(text string) (map[string]Record, error) {
	if text == "" {
		return map[string]Record{}, nil
	}
	if len(text) > mostText {
		return nil, fmt.Errorf("%d bytes are more than the %d that it can have", len(text), mostText)
	}
	var raw map[string]Record
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf("it is not what Weir writes: %w", err)
	}
	all := make(map[string]Record, len(raw))
	for subscription, r := range raw {
		all[Key(subscription)] = r
	}
	return all, nil
}

// Format writes records, without those of other versions: they count no more.
func Format(all map[string]Record, version string) string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(_ string, r Record) bool { return r.Version != version })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // times of this century, and words
	}
	return string(text) + "\n"
}

// Key is how a subscription is told from another: by its id, without regard to case.
func Key(subscription string) string { return strings.ToLower(subscription) }
