// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func tablePolicy() Policy {
	return Policy{Retries: 1 << 30, Initial: 30 * time.Second, Factor: 1.048, MaxInterval: 48 * time.Minute, AttemptTimeout: time.Hour}
}

const tableAttempt = 22 * time.Minute

func TestTheTable(t *testing.T) {
	if got := tablePolicy().CountRetries(tableAttempt, TablePeriods()); !slices.Equal(got, []int{58, 196, 669, 7561}) {
		t.Errorf("got %v retries in a day, a week, a month and a year", got)
	}
	var waits []time.Duration
	for _, row := range DefaultPolicy().TableRows(0, 10) {
		waits = append(waits, row.Wait)
	}
	if want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute}; !slices.Equal(waits, want) {
		t.Errorf("by default retries are %v apart, want %v", waits, want)
	}
}

// Simulating a year of a dead link reproduces the table, with two status writes per attempt.
func TestAYearOfADeadLink(t *testing.T) {
	p := newSimulation()
	p.policy, p.takes = tablePolicy(), tableAttempt
	p.advanceTime(365 * 24 * time.Hour)
	var got []int
	for _, period := range TablePeriods() {
		n := -1 // the first attempt is no retry
		for _, at := range p.begins {
			if at <= period.Long {
				n++
			}
		}
		got = append(got, n)
	}
	if !slices.Equal(got, []int{58, 196, 669, 7561}) {
		t.Errorf("%v retries in a day, a week, a month and a year", got)
	}
	if limit := 2*len(p.begins) + 1; p.writes > limit {
		t.Errorf("%d writes for %d attempts, want at most %d", p.writes, len(p.begins), limit)
	}
}

func TestSourceOfValue(t *testing.T) {
	ten, zero := int32(10), int32(0)
	p, values, err := ResolvePolicy(
		Layer{From: "Partner/edge", Admin: true, Raw: RawPolicy{Retries: &ten, InitialInterval: "1m", Factor: "1.5", Horizon: "72h"}},
		Layer{From: "ProvisioningPolicy", Raw: RawPolicy{InitialInterval: "2m", Horizon: "0s"}},
		Layer{From: "Provision", Raw: RawPolicy{Retries: &zero}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Policy{Retries: 0, Initial: 2 * time.Minute, Factor: 1.5, MaxInterval: time.Hour, AttemptTimeout: 30 * time.Minute, MinInterval: 10 * time.Second}); p != want {
		t.Errorf("got %+v, want %+v", p, want)
	}
	want := []Value{{"retries", "0", "Provision"}, {"initialInterval", "2m0s", "ProvisioningPolicy"}, {"factor", "1.5", "Partner/edge"},
		{"maxInterval", "1h0m0s", FromDefault}, {"horizon", "0s", "ProvisioningPolicy"}, {"attemptTimeout", "30m0s", FromDefault}}
	if !slices.Equal(values, want) {
		t.Errorf("got %v", values)
	}
	for _, tt := range []struct {
		words RawPolicy
		want  string
	}{
		{RawPolicy{Factor: "x"}, `factor "x" of Partner/edge`},
		{RawPolicy{Factor: "NaN"}, "factor NaN"},
		{RawPolicy{Factor: "0.5"}, "factor 0.5"},
		{RawPolicy{MaxInterval: "soon"}, `maxInterval "soon"`},
		{RawPolicy{MaxInterval: "10s"}, "maxInterval 10s: want at least the initialInterval"},
		{RawPolicy{InitialInterval: "1ms"}, "initialInterval 1ms"},
		{RawPolicy{Horizon: "-1h"}, "horizon -1h"},
		{RawPolicy{AttemptTimeout: "25h"}, "attemptTimeout 25h"},
	} {
		if _, _, err := ResolvePolicy(Layer{From: "Partner/edge", Raw: tt.words}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.words, err, tt.want)
		}
	}
}

// Waits never decrease and never exceed MaxInterval.
func TestLawWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{
			Initial: time.Duration(rapid.Int64Range(1, 1e6).Draw(t, "initial")) * time.Second,
			Factor:  rapid.Float64Range(1, 1000).Draw(t, "factor"),
		}
		p.MaxInterval = p.Initial + time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "more"))
		n := rapid.IntRange(1, 1<<40).Draw(t, "n")
		if a, b := p.RetryInterval(n), p.RetryInterval(n+1); a < p.Initial || b < a || b > p.MaxInterval {
			t.Fatalf("retry %d waits %s, the next %s, of %s to %s", n, a, b, p.Initial, p.MaxInterval)
		}
	})
}

// Only an administrator can set an interval below the minimum.
func TestMinimumOfIntervals(t *testing.T) {
	second := RawPolicy{InitialInterval: "1s", MaxInterval: "2s"}
	for name, tt := range map[string]struct {
		layers             []Layer
		initial, max, min  time.Duration
		initialIs, maximum string
	}{
		"a tenant": {
			[]Layer{{From: "ProvisioningPolicy", Raw: second}, {From: "Provision", Raw: second}},
			10 * time.Second, 10 * time.Second, 10 * time.Second, FromMinimum, FromMinimum,
		},
		"an administrator": {
			[]Layer{{From: "Partner/a", Raw: RawPolicy{InitialInterval: "3s"}, Admin: true}, {From: "Provision", Raw: second}},
			3 * time.Second, 3 * time.Second, 3 * time.Second, FromMinimum, FromMinimum,
		},
		"an administrator with longer waits": {
			[]Layer{{From: "Partner/a", Raw: RawPolicy{InitialInterval: "5m"}, Admin: true}, {From: "Provision", Raw: RawPolicy{InitialInterval: "11s"}}},
			11 * time.Second, time.Hour, 10 * time.Second, "Provision", FromDefault,
		},
	} {
		p, values, err := ResolvePolicy(tt.layers...)
		if err != nil || p.Initial != tt.initial || p.MaxInterval != tt.max || p.MinInterval != tt.min || values[1].From != tt.initialIs || values[3].From != tt.maximum {
			t.Errorf("%s: %+v, %v, %v", name, p, values, err)
		}
	}
}
