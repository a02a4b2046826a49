// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/probe"
)

// secrets are secrets that Azure may send anywhere.
var secrets = []string{
	"sub-canary-1", "tenant-canary-1", "11111111-2222-3333-4444-555555555555", "deadbeefdeadbeefdeadbeefdeadbeef",
	"canary@example.com", "someone-canary", "canary-token-8b1f",
}

const progressOf = "The client 'someone-canary' of tenant tenant-canary-1 (canary@example.com) with object id '11111111-2222-3333-4444-555555555555' " +
	"may not do that over /subscriptions/sub-canary-1/x, correlation DEADBEEF-DEAD-BEEF-DEAD-BEEFDEADBEEF deadbeefdeadbeefdeadbeefdeadbeef, Bearer canary-token-8b1f"

// Secrets in any response never appear in the report, in progress lines or in errors.
func TestReportLeaksNoIdentity(t *testing.T) {
	for _, at := range []string{
		`kind: put, path: "loadBalancers/**"`, `kind: put, path: "**/backendAddressPools/*"`, `kind: get, path: "loadBalancers/**"`, `kind: poll`,
		`kind: put, path: "virtualMachines/*"`, `kind: put, path: "resourceGroups/*"`, `kind: delete`, `method: GET, path: "resourceGroups/*"`,
	} {
		for _, action := range []string{"status: 403, code: AuthorizationFailed", "status: 400, code: Strange", "operation: {fail: {code: Strange, message: %q}}", "drop: true"} {
			if !strings.Contains(action, "%q") {
				if action != "drop: true" {
					action += ", message: %q"
				}
			} else if !strings.HasPrefix(at, "kind: put") {
				continue
			}
			if strings.Contains(action, "%q") {
				action = fmt.Sprintf(action, progressOf)
			}
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t, armemu.Options{Seed: 1, Token: ""})
				if err := c.emu.SetFaults("rules:\n- {match: {" + at + ", every: 2}, action: {" + action + "}}\n"); err != nil {
					t.Fatal(err, at, action)
				}
				report, err := c.run(t.Context(), nil)
				raw, _ := report.EncodeJSON()
				text := strings.ToLower(strings.Join(c.said, "\n") + probe.FormatReport(report) + string(raw) + fmt.Sprint(err))
				for _, canary := range secrets {
					if i := strings.Index(text, strings.ToLower(canary)); i >= 0 {
						t.Errorf("%s, %s: %q is told: …%s…", at, action, canary, text[max(0, i-200):min(len(text), i+100)])
					}
				}
			})
		}
	}
}

func TestAReportIsReadAsItIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t, armemu.Options{Seed: 1})
		report, err := c.run(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := report.EncodeJSON()
		if err != nil {
			t.Fatal(err)
		}
		second, err := behavior.ParseReport(text)
		if err != nil || !reflect.DeepEqual(second, report) {
			t.Errorf("%v\n%+v\n%+v", err, second, report)
		}
		if _, err := armemu.ParseBehavior(text); err != nil {
			t.Error(err)
		}
	})
}

func TestNormalize(t *testing.T) {
	good := probe.Settings{Subscription: "s-1", Location: "West Europe", Suffix: "abc123"}
	got, err := good.Normalize()
	if err != nil || got.Location != "westeurope" || got.VMSize != probe.DefaultVMSize || got.Image != probe.DefaultImage || got.GroupName() != "weir-probe-abc123" {
		t.Errorf("%+v, %v", got, err)
	}
	for want, change := range map[string]func(*probe.Settings){
		`--subscription "": want the id of a subscription`:        func(s *probe.Settings) { s.Subscription = "" },
		`--subscription "a/b": want the id`:                       func(s *probe.Settings) { s.Subscription = "a/b" },
		`--location "": want a region such as westeurope`:         func(s *probe.Settings) { s.Location = "" },
		`--vm-size "x y": want a size such as Standard_B1s`:       func(s *probe.Settings) { s.VMSize = "x y" },
		`--image "ubuntu": want publisher:offer:sku:version`:      func(s *probe.Settings) { s.Image = "ubuntu" },
		`suffix "../..": want 6 to 20 lower-case letters and dig`: func(s *probe.Settings) { s.Suffix = "../.." },
	} {
		s := good
		change(&s)
		if _, err := s.Normalize(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The offer lists resources, place and questions before anything is created.
func TestOffer(t *testing.T) {
	c := newCloud(t, armemu.Options{})
	text := c.settings().FormatOffer()
	for _, want := range []string{"sub-canary-1", "weir-probe-abc123", "westeurope", probe.DefaultVMSize, "USD", "deletes the group again"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in it:\n%s", want, text)
		}
	}
	for _, q := range behavior.AllProperties() {
		if !strings.Contains(text, q.Description) {
			t.Errorf("it does not say that it asks: %s", q.Description)
		}
	}
	if calls := c.emu.Calls(); len(calls) > 0 {
		t.Errorf("%d calls were made", len(calls))
	}
}

// The page describes all questions and the file.
func TestThePageIsWhole(t *testing.T) {
	raw, err := os.ReadFile("../../docs/reference/azure-behaviour.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	for _, q := range behavior.AllProperties() {
		row := fmt.Sprintf("| `%s` | ", q.Name)
		for i, a := range q.Results {
			if i > 0 {
				row += ", "
			}
			row += fmt.Sprintf("`%s`", a)
		}
		if !strings.Contains(page, row+" | ") {
			t.Errorf("no line begins with %s", row)
		}
	}
	_, example, _ := strings.Cut(page, "```json\n")
	example, _, _ = strings.Cut(example, "```")
	if report, err := behavior.ParseReport([]byte(example)); err != nil || len(report.Properties) == 0 || len(report.Latencies) == 0 {
		t.Errorf("the example is not read: %v", err)
	}
	for _, of := range []any{behavior.Report{}, behavior.PropertyResult{}, behavior.Event{}, behavior.Latency{}, behavior.Span{}} {
		for field := range reflect.TypeOf(of).Fields() {
			if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); !strings.Contains(page, "`"+key+"`") && !strings.Contains(example, `"`+key+`"`) {
				t.Errorf("the key %q is not on the page", key)
			}
		}
	}
}
