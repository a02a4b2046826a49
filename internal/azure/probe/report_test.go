// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/azure/probe"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

// secrets are secrets that Azure may send anywhere.
var secrets = []string{
	"sub-canary-1", "tenant-canary-1", "11111111-2222-3333-4444-555555555555", "deadbeefdeadbeefdeadbeefdeadbeef",
	"canary@example.com", "someone-canary", "canary-token-8b1f",
}

const progressOf = "The client 'someone-canary' of tenant tenant-canary-1 (canary@example.com) with object id '11111111-2222-3333-4444-555555555555' " +
	"may not do that over /subscriptions/sub-canary-1/x, correlation DEADBEEF-DEAD-BEEF-DEAD-BEEFDEADBEEF deadbeefdeadbeefdeadbeefdeadbeef, Bearer canary-token-8b1f"

// Secrets in any response never appear in the report, in progress lines or in errors.
func TestNothingTellsWhoseAzureItWas(t *testing.T) {
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
				all := strings.ToLower(strings.Join(c.said, "\n") + report.FormatText() + string(raw) + fmt.Sprint(err))
				for _, canary := range secrets {
					if i := strings.Index(all, strings.ToLower(canary)); i >= 0 {
						t.Errorf("%s, %s: %q is told: …%s…", at, action, canary, all[max(0, i-200):min(len(all), i+100)])
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
		again, err := probe.ParseReport(text)
		if err != nil || !reflect.DeepEqual(again, report) {
			t.Errorf("%v\n%+v\n%+v", err, again, report)
		}
		if _, err := armemu.ParseBehavior(text); err != nil {
			t.Error(err)
		}
	})
}

func TestParseIsStrict(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`{"behaviour": {"overlap": "mixed"}}`, ""},
		{`{"behaviour": {}, "cloud": "AzurePublicCloud", "when": "2026-11-22T09:00:00Z"}`, ""},
		{`{}`, `the key "behaviour" is missing`},
		{`{"overlap": "mixed"}`, `the key "behaviour" is missing`},
		{`{"behaviour": {"overlap": "maybe"}}`, `behaviour: overlap: "maybe" is invalid: use one of [supersede `},
		{`{"behaviour": {"colour": "red"}}`, `behaviour: no question of Azure's behaviour is named "colour"`},
		{`{"behaviour": {}, "colour": "red"}`, `the key "colour" is unknown: use behaviour, cloud, `},
		{`{"behaviour": {}, "latencies": [{"colour": 1}]}`, `latencies: json: unknown field "colour"`},
		{`{"behaviour": {}, "requests": "many"}`, `requests: json: `},
		{`{"behaviour": {}} {}`, `more follows after the JSON object`},
		{`[]`, `want a JSON object, as weir probe-azure --out writes it: `},
		{``, `want a JSON object, as weir probe-azure --out writes it: `},
		{strings.Repeat(" ", probe.MaxReport+1), `larger than 1048576 bytes`},
	} {
		_, err := probe.ParseReport([]byte(row.text))
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%.60s: got %v, want %s", row.text, err, row.want)
		}
	}
}

// A parsed report is valid and is encoded as it was read.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"behaviour": {"overlap": "mixed", "poolIfMatch": "ignored"}, "questions": [{"name": "overlap", "seen": [{"status": 409}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		report, err := probe.ParseReport(text)
		if err != nil {
			return
		}
		for i, q := range behavior.AllProperties() {
			if _, err := report.Behaviour.WithResult(q.Name, report.Behaviour.GetResult(i)); err != nil {
				t.Error(err)
			}
		}
		raw, err := json.Marshal(report)
		if err != nil {
			t.Skip() // a time that JSON cannot encode
		}
		again, err := probe.ParseReport(raw)
		if err != nil || again.Behaviour != report.Behaviour {
			t.Errorf("%v: %s", err, raw)
		}
	})
}

func TestNormalize(t *testing.T) {
	good := probe.Settings{Subscription: "s-1", Location: "West Europe", Suffix: "abc123"}
	is, err := good.Normalize()
	if err != nil || is.Location != "westeurope" || is.VMSize != probe.DefaultVMSize || is.Image != probe.DefaultImage || is.GroupName() != "weir-probe-abc123" {
		t.Errorf("%+v, %v", is, err)
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
	raw, err := os.ReadFile("../../../docs/reference/azure-behaviour.md")
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
	if report, err := probe.ParseReport([]byte(example)); err != nil || len(report.Properties) == 0 || len(report.Latencies) == 0 {
		t.Errorf("the example is not read: %v", err)
	}
	for _, of := range []any{probe.Report{}, probe.PropertyResult{}, probe.Event{}, probe.Latency{}, probe.Span{}} {
		for field := range reflect.TypeOf(of).Fields() {
			if key, _, _ := strings.Cut(field.Tag.Get("json"), ","); !strings.Contains(page, "`"+key+"`") && !strings.Contains(example, `"`+key+`"`) {
				t.Errorf("the key %q is not on the page", key)
			}
		}
	}
}
