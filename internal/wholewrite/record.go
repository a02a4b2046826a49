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

// Record is what is persisted about a subscription.
type Record struct {
	// Version is the Weir version that observed it. Others ignore it: they may write differently.
	Version     string  `json:"version"`
	Addresses   Verdict `json:"addresses,omitzero"`
	AdminStates Verdict `json:"adminStates,omitzero"`
	Overlapping Verdict `json:"overlapping,omitzero"`
}

// Verdict is Azure's behavior for a change. Zero is unknown and untried.
type Verdict struct {
	Answer behaviour.Answer `json:"answer,omitempty"`
	// At is the last confirmation.
	At time.Time `json:"at,omitzero"`
	// The number of trials, and the start of the last one.
	Trials  int       `json:"trials,omitempty"`
	TriedAt time.Time `json:"triedAt,omitzero"`
}

// Of returns the result for a change.
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

// Tried adds a trial. Persist it first, so that a crash counts.
func (r Record) Tried(c Change, version string, now time.Time) Record {
	r = r.of(version)
	v := r.Of(c)
	v.Trials, v.TriedAt = v.trials(version, version, now)+1, now
	v.Answer, v.At = "", time.Time{}
	return r.with(c, v)
}

// Untried removes a trial that was not made; before is the record before it. Newer observations are
// kept.
func (r Record) Untried(c Change, before Record) Record {
	if r.Of(c).Answer != "" {
		return r
	}
	return r.with(c, before.of(r.Version).Of(c))
}

// Saw adds an observation, and reports whether to persist it.
func (r Record) Saw(c Change, a behaviour.Answer, version string, now time.Time) (Record, bool) {
	r = r.of(version)
	v := r.Of(c)
	fresh := v.Answer != a || !near(v.At, now, refreshAfter)
	if fresh {
		v.Answer, v.At = a, now
	}
	return r.with(c, v), fresh
}

// refreshAfter is the age at which a confirmed verdict is persisted again.
const refreshAfter = 24 * time.Hour

// of drops other versions' observations.
func (r Record) of(version string) Record {
	if r.Version != version {
		return Record{Version: version}
	}
	return r
}

func (v Verdict) holds(by, version string, now time.Time) bool {
	return by == version && slices.Contains(answers, v.Answer) && near(v.At, now, Lifetime)
}

var answers = []behaviour.Answer{
	behaviour.Taken, behaviour.Ignored,
	behaviour.Supersede, behaviour.SupersedeDiscard, behaviour.SupersedeDiscardLate, behaviour.Lock, behaviour.Conflict,
}

// trials counts those that still matter.
func (v Verdict) trials(by, version string, now time.Time) int {
	if by != version || !near(v.TriedAt, now, Lifetime) {
		return 0
	}
	return max(v.Trials, 0)
}

// near compares in both directions, which tolerates clock changes.
func near(a, b time.Time, d time.Duration) bool { return a.Sub(b).Abs() < d }

const mostText = 64 << 10

// Parse parses formatted records, by subscription.
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

// Format encodes this version's records.
func Format(all map[string]Record, version string) string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(_ string, r Record) bool { return r.Version != version })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // only strings, ints and valid times
	}
	return string(text) + "\n"
}

// Key normalizes a subscription ID.
func Key(subscription string) string { return strings.ToLower(subscription) }
