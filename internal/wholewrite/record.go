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

// Record is the persisted knowledge about one subscription.
type Record struct {
	// Version is the version of Weir that observed it. Other versions ignore it, because they may
	// write differently.
	Version     string  `json:"version"`
	Addresses   Verdict `json:"addresses,omitzero"`
	AdminStates Verdict `json:"adminStates,omitzero"`
	Overlapping Verdict `json:"overlapping,omitzero"`
}

// Verdict is Azure's behavior for one change. The zero value is unknown and untried.
type Verdict struct {
	Answer behaviour.Answer `json:"answer,omitempty"`
	// At is when Azure was last seen to behave so.
	At time.Time `json:"at,omitzero"`
	// Trials is the number of trials, and TriedAt the start of the last one.
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

// Tried returns the record with another trial that starts now. Persist it before the trial, so that
// a crash counts as one.
func (r Record) Tried(c Change, version string, now time.Time) Record {
	r = r.of(version)
	v := r.Of(c)
	v.Trials, v.TriedAt = v.trials(version, version, now)+1, now
	v.Answer, v.At = "", time.Time{}
	return r.with(c, v)
}

// Untried returns the record without the last trial, which was not made. before is the record
// before it. Observations since take precedence.
func (r Record) Untried(c Change, before Record) Record {
	if r.Of(c).Answer != "" {
		return r
	}
	return r.with(c, before.of(r.Version).Of(c))
}

// Saw returns the record with an observation, and whether it has to be persisted: the answer
// changed, or the old one needs a refresh.
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

// of drops the observations of other versions.
func (r Record) of(version string) Record {
	if r.Version != version {
		return Record{Version: version}
	}
	return r
}

// holds reports whether the verdict is valid.
func (v Verdict) holds(by, version string, now time.Time) bool {
	return by == version && slices.Contains(answers, v.Answer) && near(v.At, now, Lifetime)
}

// answers are the valid answers of a verdict.
var answers = []behaviour.Answer{
	behaviour.Taken, behaviour.Ignored,
	behaviour.Supersede, behaviour.SupersedeDiscard, behaviour.SupersedeDiscardLate, behaviour.Lock, behaviour.Conflict,
}

// trials returns the number of trials that still count.
func (v Verdict) trials(by, version string, now time.Time) int {
	if by != version || !near(v.TriedAt, now, Lifetime) {
		return 0
	}
	return max(v.Trials, 0)
}

// near reports whether two times differ by less than d in either direction, which tolerates clock
// changes.
func near(a, b time.Time, d time.Duration) bool { return a.Sub(b).Abs() < d }

// mostText bounds the input of Parse.
const mostText = 64 << 10

// Parse parses the output of Format into records by subscription. Empty text has none.
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

// Format encodes the records of this version.
func Format(all map[string]Record, version string) string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(_ string, r Record) bool { return r.Version != version })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // only strings, ints and valid times
	}
	return string(text) + "\n"
}

// Key returns the subscription ID in lower case.
func Key(subscription string) string { return strings.ToLower(subscription) }
