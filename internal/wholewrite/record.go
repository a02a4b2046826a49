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
	Version     string `json:"version"`
	Addresses   Result `json:"addresses,omitzero"`
	AdminStates Result `json:"adminStates,omitzero"`
	Overlapping Result `json:"overlapping,omitzero"`
}

// Result is Azure's behavior for a change. Zero is unknown and untried.
type Result struct {
	Answer behaviour.Result `json:"answer,omitempty"`
	// At is the last confirmation.
	At time.Time `json:"at,omitzero"`
	// The number of trials, and the start of the last one.
	Attempts    int       `json:"trials,omitempty"`
	LastAttempt time.Time `json:"triedAt,omitzero"`
}

// ResultOf returns the result for a change.
func (r Record) ResultOf(c Change) Result {
	switch c {
	case AdminStates:
		return r.AdminStates
	case Overlap:
		return r.Overlapping
	case Addresses:
	}
	return r.Addresses
}

func (r Record) withResult(c Change, v Result) Record {
	switch c {
	case Addresses:
		r.Addresses = v
	case AdminStates:
		r.AdminStates = v
	case Overlap:
		r.Overlapping = v
	}
	return r
}

// WithAttempt adds a trial. Persist it first, so that a crash counts.
func (r Record) WithAttempt(c Change, version string, now time.Time) Record {
	r = r.forVersion(version)
	v := r.ResultOf(c)
	v.Attempts, v.LastAttempt = v.countAttempts(version, version, now)+1, now
	v.Answer, v.At = "", time.Time{}
	return r.withResult(c, v)
}

// WithoutAttempt removes a trial that was not made; before is the record before it. Newer observations are
// kept.
func (r Record) WithoutAttempt(c Change, before Record) Record {
	if r.ResultOf(c).Answer != "" {
		return r
	}
	return r.withResult(c, before.forVersion(r.Version).ResultOf(c))
}

// UpdateResult adds an observation, and reports whether to persist it.
func (r Record) UpdateResult(c Change, a behaviour.Result, version string, now time.Time) (Record, bool) {
	r = r.forVersion(version)
	v := r.ResultOf(c)
	fresh := v.Answer != a || !isClose(v.At, now, refreshAfter)
	if fresh {
		v.Answer, v.At = a, now
	}
	return r.withResult(c, v), fresh
}

// refreshAfter is the age at which a confirmed verdict is persisted again.
const refreshAfter = 24 * time.Hour

// forVersion drops other versions' observations.
func (r Record) forVersion(version string) Record {
	if r.Version != version {
		return Record{Version: version}
	}
	return r
}

func (v Result) isValid(by, version string, now time.Time) bool {
	return by == version && slices.Contains(validAnswers, v.Answer) && isClose(v.At, now, ResultTTL)
}

var validAnswers = []behaviour.Result{
	behaviour.Accepted, behaviour.Ignored,
	behaviour.Supersede, behaviour.SupersedeDiscard, behaviour.SupersedeDiscardLate, behaviour.Lock, behaviour.Conflict,
}

// countAttempts counts those that still matter.
func (v Result) countAttempts(by, version string, now time.Time) int {
	if by != version || !isClose(v.LastAttempt, now, ResultTTL) {
		return 0
	}
	return max(v.Attempts, 0)
}

// isClose compares in both directions, which tolerates clock changes.
func isClose(a, b time.Time, d time.Duration) bool { return a.Sub(b).Abs() < d }

const maxRecordBytes = 64 << 10

// ParseRecords parses formatted records, by subscription.
func ParseRecords(text string) (map[string]Record, error) {
	if text == "" {
		return map[string]Record{}, nil
	}
	if len(text) > maxRecordBytes {
		return nil, fmt.Errorf("%d bytes are more than the %d that it can have", len(text), maxRecordBytes)
	}
	var raw map[string]Record
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf("it is not what Weir writes: %w", err)
	}
	all := make(map[string]Record, len(raw))
	for subscription, r := range raw {
		all[SubscriptionKey(subscription)] = r
	}
	return all, nil
}

// FormatRecords encodes this version's records.
func FormatRecords(all map[string]Record, version string) string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(_ string, r Record) bool { return r.Version != version })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // only strings, ints and valid times
	}
	return string(text) + "\n"
}

// SubscriptionKey normalizes a subscription ID.
func SubscriptionKey(subscription string) string { return strings.ToLower(subscription) }
