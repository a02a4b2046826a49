// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

// failingConfig makes a load balancer write end Failed in the emulator.
const failingConfig = `rules:
- name: ends Failed
  match: {method: PUT, path: "loadBalancers/weir-probe-addresses", maxMatches: 1}
  action: {operation: {fail: {code: InternalServerError, message: "The operation failed."}}}
`

// runProbe returns the results of a probe in a world. With fails, all questions can be answered.
func runProbe(t testing.TB, opts armemu.Options, fails bool) (behavior.Report, *cloud) {
	t.Helper()
	c := newCloud(t, opts)
	c.onLine = func(line string) {
		if fails && strings.Contains(line, "10 of 10") {
			if err := c.emu.SetFaults(failingConfig); err != nil {
				t.Error(err)
			}
		}
	}
	report, err := c.run(t.Context(), nil)
	if err != nil {
		t.Errorf("%v\n%s", err, strings.Join(c.said, "\n"))
	}
	if remaining := c.remainingResources(); remaining != "" {
		t.Errorf("left behind: %s", remaining)
	}
	return report, c
}

// Each answer is found with all others as assumed.
func TestEachWorldIsFoundOut(t *testing.T) {
	for _, q := range behavior.AllProperties() {
		for _, a := range q.Results {
			t.Run(q.Name+"/"+string(a), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					world, err := behavior.AssumedBehavior().WithResult(q.Name, a)
					if err != nil {
						t.Fatal(err)
					}
					report, _ := runProbe(t, armemu.Options{Seed: 1, Behavior: world}, true)
					checkResults(t, report, world)
					if report.CountOpen() != 0 || report.Requests > 60+3 { // 3 are for the DNS label
						t.Errorf("%d questions are open after %d requests", report.CountOpen(), report.Requests)
					}
				})
			})
		}
	}
}

// Any world is measured correctly at any speed. With random answers, the report claims no more than
// was seen.
func TestAnyWorldIsFoundOut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var world behavior.Behavior
		for _, q := range behavior.AllProperties() {
			var err error
			if world, err = world.WithResult(q.Name, rapid.SampledFrom(q.Results).Draw(rt, q.Name)); err != nil {
				rt.Fatal(err)
			}
		}
		opts := armemu.Options{
			Seed: rapid.Uint64().Draw(rt, "seed"), Behavior: world, LatencyFixed: rapid.Bool().Draw(rt, "fixed"),
			LatencyScale: rapid.SampledFrom([]float64{0.5, 1, 3}).Draw(rt, "scale"),
			Latency:      rapid.SampledFrom([]armemu.Latency{armemu.Quiet, armemu.Busy}).Draw(rt, "latency"),
		}
		fails := rapid.Bool().Draw(rt, "a load balancer fails")
		synctest.Test(t, func(t *testing.T) {
			report, _ := runProbe(t, opts, fails)
			want := world
			if !fails {
				want.FailedParent = ""
			}
			if world.Overlap == behavior.Mixed && report.Behaviour.Overlap != behavior.Mixed && len(seen(report, "overlap")) >= 10 {
				want.Overlap = report.Behaviour.Overlap
			}
			checkResults(rt, report, want)
		})
	})
}

// checkResults fails unless the report has these answers.
func checkResults(t rapid.TB, r behavior.Report, want behavior.Behavior) {
	for i, q := range behavior.AllProperties() {
		if got, want := r.Behaviour.GetResult(i), want.GetResult(i); got != want {
			t.Errorf("%s: found out %q, it is %q: %v", q.Name, got, want, seen(r, q.Name))
		}
	}
}

func seen(r behavior.Report, question string) []behavior.Event {
	for _, f := range r.Properties {
		if f.Name == question {
			return f.Events
		}
	}
	return nil
}

// If writes finish before their response, two are sent at once and the question is still answered.
func TestOverlapWhereAnswersAreSlow(t *testing.T) {
	for _, a := range []behavior.Result{behavior.Supersede, behavior.SupersedeDiscard, behavior.Lock, behavior.Conflict} {
		synctest.Test(t, func(t *testing.T) {
			world, _ := behavior.AssumedBehavior().WithResult("overlap", a)
			c := newCloud(t, armemu.Options{Seed: 1, Behavior: world, LatencyFixed: true})
			report, err := c.run(t.Context(), transport(func(r *http.Request) (*http.Response, error) {
				resp, err := c.emu.Transport().Do(r)
				if r.Method == http.MethodPut {
					time.Sleep(2 * time.Minute)
				}
				return resp, err
			}))
			if err != nil || report.Behaviour.Overlap != a {
				t.Errorf("%v: found out %q, it is %q: %v", err, report.Behaviour.Overlap, a, seen(report, "overlap"))
			}
		})
	}
}
