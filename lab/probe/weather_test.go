// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/probe"
)

// Under any throttling of Azure, the results are the same.
func TestThrottled(t *testing.T) {
	for name, faults := range map[string]string{
		"now and then": `rules:
- match: {kind: put, every: 3}
  action: {status: 429, code: SubscriptionRequestsThrottled, headers: {Retry-After: "17"}}
- match: {kind: get, every: 4}
  action: {status: 429, code: TooManyRequests, headers: {Retry-After: "5"}}
- match: {kind: delete, maxMatches: 2}
  action: {status: 429, code: TooManyRequests}
- match: {kind: poll, every: 5}
  action: {status: 429, code: TooManyRequests, headers: {Retry-After: "30"}}
`,
		"by a lock before it": `rules:
- match: {kind: put, path: "loadBalancers/weir-probe-addresses", maxMatches: 3}
  action: {status: 409, code: AnotherOperationInProgress}
`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t, armemu.Options{Seed: 3, Behavior: behavior.AssumedBehavior(), Throttle: armemu.AzureLimits()})
				if err := c.emu.SetFaults(faults); err != nil {
					t.Fatal(err)
				}
				report, err := c.run(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				want := behavior.AssumedBehavior()
				want.FailedParent = ""
				if report.Behaviour.Overlap == "" { // other rejections are not counted
					want.Overlap = ""
				}
				checkResults(t, report, want)
			})
		})
	}
}

// Under any faults, an answer is correct or the question remains open; leftovers are reported and
// deleted by --clean.
func TestNoAnswerIsWrong(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var world behavior.Behavior
		for _, q := range behavior.AllProperties() {
			world, _ = world.WithResult(q.Name, rapid.SampledFrom(q.Results).Draw(rt, q.Name))
		}
		script := "rules:\n"
		for i := range rapid.IntRange(1, 4).Draw(rt, "faults") {
			kind := rapid.SampledFrom([]string{"put", "get", "poll", "delete", "list"}).Draw(rt, fmt.Sprint("kind ", i))
			actions := []string{
				`{status: 500, code: InternalServerError}`, `{status: 503, code: ServerTimeout, headers: {Retry-After: "3"}}`, `{status: 404, code: Strange}`,
				`{drop: true}`, `{status: 403, code: AuthorizationFailed}`, `{truncateBody: 7}`,
			}
			if world.PoolIfMatch != behavior.Ignored && world.IfNoneMatch != behavior.Ignored { // a 412 proves that the header is honored
				actions = append(actions, `{status: 412, code: PreconditionFailed}`)
			}
			if kind == "put" {
				actions = append(actions, `{drop: true, applied: true}`, `{status: 500, applied: true}`, `{operation: {fail: {code: Strange}}}`)
			}
			script += fmt.Sprintf("- {match: {kind: %s, probability: %g}, action: %s}\n", kind,
				rapid.SampledFrom([]float64{0.02, 0.1, 0.3}).Draw(rt, fmt.Sprint("probability ", i)), rapid.SampledFrom(actions).Draw(rt, fmt.Sprint("action ", i)))
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(t, armemu.Options{Seed: seed, Behavior: world})
			if err := c.emu.SetFaults(script); err != nil {
				rt.Fatal(err, script)
			}
			report, err := c.run(t.Context(), nil)
			for i, q := range behavior.AllProperties() {
				got := report.Behaviour.GetResult(i)
				byChance := q.Name == "overlap" && world.Overlap == behavior.Mixed && got != behavior.SupersedeDiscard
				if got != "" && got != world.GetResult(i) && !byChance {
					rt.Errorf("%s: found out %q, it is %q: %v", q.Name, got, world.GetResult(i), seen(report, q.Name))
				}
			}
			if err := c.emu.SetFaults(""); err != nil {
				rt.Fatal(err)
			}
			c.emu.ResetRetryAfter()
			remaining := c.remainingResources()
			if remaining != "" && (err == nil || !strings.Contains(err.Error(), "resource group weir-probe-abc123 could not be deleted")) {
				rt.Errorf("%v, left behind: %s", err, remaining)
			}
			if err := c.runCleanup(t.Context()); err != nil || c.remainingResources() != "" {
				rt.Errorf("%v, left behind: %s", err, c.remainingResources())
			}
		})
	})
}

const (
	roleFile = "../../config/probe-azure-role.json"
	lacks    = "AuthorizationFailed"
)

func shippedRole(t *testing.T) *armemu.Role {
	t.Helper()
	raw, err := os.ReadFile(roleFile)
	if err != nil {
		t.Fatal(err)
	}
	r, err := armemu.ParseRole(raw)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The shipped role is sufficient for a run and for --clean, and minimal.
func TestTheRoleIsEnoughAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, armemu.Options{Seed: 1, Behavior: behavior.AssumedBehavior()})
		report, err := c.run(t.Context(), nil)
		if err != nil || report.CountOpen() != 1 {
			t.Errorf("%v\n%s", err, probe.FormatReport(report))
		}
		if err := c.runCleanup(t.Context()); err != nil {
			t.Error(err)
		}
		var requested []string
		for _, call := range c.emu.Calls() {
			for _, action := range call.Actions {
				if !slices.Contains(requested, action) {
					requested = append(requested, action)
				}
			}
		}
		for action := range unmodeledActions {
			requested = append(requested, action)
		}
		got := shippedRole(t).Actions
		slices.Sort(requested)
		slices.Sort(got)
		requested = slices.Compact(requested)
		if !slices.Equal(requested, got) {
			text, _ := json.MarshalIndent(requested, "", "  ")
			t.Errorf("asked for is %s\nthe role has %q", text, got)
		}
	})
}

// unmodeledActions are documented permissions that the emulator does not, or not always, check.
var unmodeledActions = map[string]string{
	"Microsoft.Network/networkInterfaces/read":            "a network interface that is not made at once",
	"Microsoft.Network/networkSecurityGroups/join/action": "a subnet with a security group",
	"Microsoft.Network/networkInterfaces/delete":          "a network interface that goes with its machine",
	"Microsoft.Compute/disks/write":                       "a machine with a managed disk",
	"Microsoft.Compute/disks/delete":                      "a disk that goes with its machine",
}

// Missing permissions are named, and everything that may be deleted is.
func TestARoleThatLacksSomething(t *testing.T) {
	for _, action := range shippedRole(t).Actions {
		if unmodeledActions[action] != "" {
			continue
		}
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				have := *shippedRole(t)
				have.NotActions = []string{action}
				c := newCloud(t, armemu.Options{Seed: 1, LatencyScale: 0.1, Behavior: behavior.AssumedBehavior(), Role: &have})
				report, err := c.run(t.Context(), nil)
				open := strings.Join(c.said, "\n")
				switch {
				case err == nil && report.CountOpen() < 2 && strings.Contains(action, "/read"):
					// a write reveals more than a read
				case err == nil && !strings.Contains(open, lacks), err != nil && !strings.Contains(err.Error(), lacks):
					t.Errorf("it says %v\n%s", err, open)
				}
				if remaining := c.remainingResources(); remaining != "" && !strings.Contains(fmt.Sprint(err), "could not be deleted") {
					t.Errorf("left behind: %s", remaining)
				}
			})
		})
	}
}
