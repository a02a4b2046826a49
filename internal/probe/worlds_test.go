// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/probe"
	"weir.dev/weir/lab/armemu"
)

// failing makes a load balancer write end Failed in the emulator.
const failing = `rules:
- name: ends Failed
  match: {method: PUT, path: "loadBalancers/weir-probe-addresses", maxMatches: 1}
  action: {operation: {fail: {code: InternalServerError, message: "The operation failed."}}}
`

// found returns the results of a probe in a world. With fails, all questions can be answered.
func found(t testing.TB, opts armemu.Options, fails bool) (probe.Report, *cloud) {
	t.Helper()
	c := newCloud(t, opts)
	c.heard = func(line string) {
		if fails && strings.Contains(line, "9 of 9") {
			if err := c.emu.SetFaults(failing); err != nil {
				t.Error(err)
			}
		}
	}
	report, err := c.run(t.Context(), nil)
	if err != nil {
		t.Errorf("%v\n%s", err, strings.Join(c.said, "\n"))
	}
	if left := c.left(); left != "" {
		t.Errorf("left behind: %s", left)
	}
	return report, c
}

// Each answer is found with all others as assumed.
func TestEachWorldIsFoundOut(t *testing.T) {
	for _, q := range behaviour.Questions() {
		for _, a := range q.Answers {
			t.Run(q.Name+"/"+string(a), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					world, err := behaviour.Assumed().With(q.Name, a)
					if err != nil {
						t.Fatal(err)
					}
					report, _ := found(t, armemu.Options{Seed: 1, Behaviour: world}, true)
					tells(t, report, world)
					if report.Open() != 0 || report.Requests > 60 {
						t.Errorf("%d questions are open after %d requests", report.Open(), report.Requests)
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
		var world behaviour.Behaviour
		for _, q := range behaviour.Questions() {
			var err error
			if world, err = world.With(q.Name, rapid.SampledFrom(q.Answers).Draw(rt, q.Name)); err != nil {
				rt.Fatal(err)
			}
		}
		opts := armemu.Options{
			Seed: rapid.Uint64().Draw(rt, "seed"), Behaviour: world, LatencyFixed: rapid.Bool().Draw(rt, "fixed"),
			LatencyScale: rapid.SampledFrom([]float64{0.5, 1, 3}).Draw(rt, "scale"),
			Latency:      rapid.SampledFrom([]armemu.Latency{armemu.Quiet, armemu.Busy}).Draw(rt, "latency"),
		}
		fails := rapid.Bool().Draw(rt, "a load balancer fails")
		synctest.Test(t, func(t *testing.T) {
			report, _ := found(t, opts, fails)
			want := world
			if !fails {
				want.FailedParent = ""
			}
			if world.Overlap == behaviour.Mixed && report.Behaviour.Overlap != behaviour.Mixed && len(seen(report, "overlap")) >= 10 {
				want.Overlap = report.Behaviour.Overlap
			}
			tells(rt, report, want)
		})
	})
}

// tells fails unless the report has these answers.
func tells(t rapid.TB, r probe.Report, want behaviour.Behaviour) {
	for i, q := range behaviour.Questions() {
		if got, want := r.Behaviour.Get(i), want.Get(i); got != want {
			t.Errorf("%s: found out %q, it is %q: %v", q.Name, got, want, seen(r, q.Name))
		}
	}
}

func seen(r probe.Report, question string) []probe.Seen {
	for _, f := range r.Questions {
		if f.Name == question {
			return f.Seen
		}
	}
	return nil
}

// If writes finish before their response, two are sent at once and the question is still answered.
func TestOverlapWhereAnswersAreSlow(t *testing.T) {
	for _, a := range []behaviour.Answer{behaviour.Supersede, behaviour.SupersedeDiscard, behaviour.Lock, behaviour.Conflict} {
		synctest.Test(t, func(t *testing.T) {
			world, _ := behaviour.Assumed().With("overlap", a)
			c := newCloud(t, armemu.Options{Seed: 1, Behaviour: world, LatencyFixed: true})
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
