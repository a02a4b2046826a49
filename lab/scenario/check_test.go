// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/lb/behavior"
)

// Every check fails after its tampering, and holds before.
func TestABrokenRuleIsReported(t *testing.T) {
	for _, c := range Checks() {
		if !slices.ContainsFunc(allTamperings(), func(x tampering) bool { return x.check == c.Name }) {
			t.Errorf("nothing shows that check %q can fail", c.Name)
		}
	}
	for _, x := range allTamperings() {
		t.Run(x.check+"/"+x.how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t)
				setUp(t, s, behavior.Supersede)
				runStep(t, s, "scale web nodes=(n1)", "clock 10s", "expect in-sync")
				x.with(t, s)
				err := s.runChecks()
				if err == nil || !strings.Contains(err.Error(), "check \""+x.check+"\" does not hold") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// An invalid step changes nothing and returns a reason.
func TestAWrongStepIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		setUp(t, s, behavior.Supersede)
		for text, want := range map[string]string{
			"shrink web":                          "no verb",
			"scale nobody nodes=(n1)":             "no Service nobody",
			"scale web nods=(n1)":                 `no argument "nods"`,
			"throttle on=DELETE":                  "want GET, PUT, poll or any",
			"throttle pool=none":                  "there is no pool none",
			"throttle times=soon":                 "want a number",
			"conflict pool=web answer=1":          "want 409 or 412",
			"clock soon":                          "invalid duration",
			"expect":                              "expect what?",
			"expect pool=web holds=(n4)":          "pool web holds",
			"expect in-sync":                      "is not in sync",
			"node-lost n9":                        "there is no node n9",
			"kill at=GET nth=one":                 "want a number",
			"delete-pool none":                    "there is no pool none",
			"cluster interval=5s":                 "before the process starts",
			"lease take":                          "there is no lease",
			"lock none":                           "there is no load balancer none",
			"stale nobody":                        "there is no Service nobody",
			"ledger":                              "want fail",
			"pause none":                          "there is no BackendPool none",
			"create-backendpool web":              "want service= or nodes=",
			"create-backendpool web nodes=(n1)":   "the BackendPool web is there",
			"create-backendpool none service=web": "there is no pool none",
			"select web nodes=(n1)":               "its members are a Service's",
			"exclude n9":                          "there is no node n9",
			"suspend soon":                        "invalid duration",
			"kill at=settle":                      "for leader alone",
			"unreachable":                         "want refused or silent",
			"unreachable silent lb=none":          "there is no load balancer none",
			"node-dead n9":                        "there is no node n9",
			"flows":                               "no pool has a probe",
			"thaw":                                "no process is frozen",

			"cluster\npool kubernetes/web probe=500ms": "want whole seconds",
		} {
			line, input, _ := strings.Cut(text, "\n")
			step, err := ParseStep(line)
			if err != nil {
				t.Fatal(err)
			}
			step.Input = input
			if _, err := s.Do(step); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", text, err, want)
			}
		}
	})
}
