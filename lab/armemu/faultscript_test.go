// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// An error names the rule, the field and the fix, and changes nothing.
func TestBadFaultScripts(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	good := `rules: [{action: {status: 500}}]`
	setFaults(t, emu, good)
	for script, want := range map[string]string{
		`rules: [{action: {status: 500}}, {match: {metod: PUT}, action: {status: 500}}]`: `rules[1].match: unknown field "metod"; allowed here: method, path, kind`,
		`rules: [{action: {stats: 500}}]`:                                                `rules[0].action: unknown field "stats"; allowed here: delay, status`,
		`rule: []`:                                                                       `unknown field "rule"; allowed here: rules`,
		`rules: [{do: {}}]`:                                                              `rules[0]: unknown field "do"; allowed here: name, match, action`,
		`rules: [{}]`:                                                                    `rules[0].action: missing`,
		`rules: [{action: {}}]`:                                                          `rules[0].action.status: nothing is asked for`,
		`rules: [{action: {status: 42}}]`:                                                `rules[0].action.status: 42: use 200 to 599`,
		`rules: [{action: {status: "a"}}]`:                                               `rules[0].action: status must be a whole number, not string`,
		`rules: [{action: {delay: soon}}]`:                                               `"soon" is no duration of zero or more: write one like 250ms`,
		`rules: [{action: {delay: 3}}]`:                                                  `3 is no duration`,
		`rules: [{action: {code: X}}]`:                                                   `rules[0].action.status`,
		`rules: [{action: {status: 500, body: x, code: X}}]`:                             `rules[0].action.body: excludes code`,
		`rules: [{action: {drop: true, status: 500}}]`:                                   `rules[0].action.drop: excludes status`,
		`rules: [{action: {truncateBody: -1}}]`:                                          `rules[0].action.truncateBody: -1`,
		`rules: [{action: {delay: 1s, applied: true}}]`:                                  `rules[0].action.applied: needs status, drop or operation.fail`,
		`rules: [{action: {status: 500, operation: {stuck: true}}}]`:                     `rules[0].action.operation: no operation starts`,
		`rules: [{action: {operation: {}}}]`:                                             `rules[0].action.operation: set exactly one of stuck and fail`,
		`rules: [{action: {operation: {fail: {}}}}]`:                                     `rules[0].action.operation.fail.code: missing`,
		`rules: [{action: {operation: {fial: {}}}}]`:                                     `unknown field "fial"; allowed here:`,
		`rules: [{action: {polls: {status: 200, times: 1}}}]`:                            `rules[0].action.polls.status: 200: use 400 to 599`,
		`rules: [{action: {polls: {status: 429}}}]`:                                      `rules[0].action.polls.times: 0: use 1 or more`,
		`rules: [{action: {headers: {"a b": c}}}]`:                                       `rules[0].action.headers: "a b"`,
		`rules: [{match: {method: put}, action: {status: 500}}]`:                         `rules[0].match.method: "put" is not matched by any request: use one of GET, PUT`,
		`rules: [{match: {kind: write}, action: {status: 500}}]`:                         `rules[0].match.kind: "write" is unknown: use one of [get list put`,
		`rules: [{match: {nth: -1}, action: {status: 500}}]`:                             `rules[0].match.nth: -1`,
		`rules: [{match: {nth: 1, every: 2}, action: {status: 500}}]`:                    `exclude each other`,
		`rules: [{match: {probability: 2}, action: {status: 500}}]`:                      `rules[0].match.probability: 2`,
		`rules: [{match: {after: 5s, until: 5s}, action: {status: 500}}]`:                `rules[0].match.until: must be later`,
		`rules: [{match: {maxMatches: -2}, action: {status: 500}}]`:                      `rules[0].match.maxMatches: -2`,
		`rules: [{match: {every: -2}, action: {status: 500}}]`:                           `rules[0].match.every: -2`,
		"rules: [{action: {status: 500}}]\nrules: []":                                    `not YAML`,
		`{{{`: `not YAML`,
		`7`:   `it must be a mapping, not number`,
	} {
		err := emu.SetFaults(script)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n gave %v\nwant %s", script, err, want)
		}
	}
	if emu.Faults() != good || sendRequest(t, emu, http.MethodGet, poolID, "").status != 500 {
		t.Error("a bad script replaced the good one")
	}
}

// FuzzParseFaults: any text is a script or an error, even when requests follow.
func FuzzParseFaults(f *testing.F) {
	f.Add(`rules: [{match: {method: PUT, path: "backendAddressPools/*", nth: 2}, action: {status: 500, applied: true}}]`)
	f.Add(`rules: [{match: {probability: 0.5, after: 1s}, action: {polls: {status: 429, times: 1}, headers: {a: b}}}]`)
	f.Add(`rules: [{action: {truncateBody: 3, bumpEtag: true}}]`)
	f.Add("rules:\n- action: {operation: {fail: {code: X}}}\n  match: {path: '/**'}")
	f.Fuzz(func(t *testing.T, script string) {
		if strings.Contains(script, "delay") {
			return // a script may delay arbitrarily
		}
		emu := newCloud(t, armemu.Options{})
		if err := emu.SetFaults(script); err != nil {
			if !strings.HasPrefix(err.Error(), "fault script: ") {
				t.Errorf("the error does not say what it is about: %v", err)
			}
			return
		}
		for _, method := range []string{http.MethodPut, http.MethodGet, http.MethodDelete} {
			_, _ = trySend(t.Context(), emu, method, poolID, poolBody("10.0.0.1"))
		}
	})
}

// FuzzPut: any body is a resource or an ARM error, and stored bodies render.
func FuzzPut(f *testing.F) {
	f.Add(lbID, lbBody(`{"name":"web"},{"name":"spare","properties":{"backendIPConfigurations":[{"id":"/x"}]}}`))
	f.Add(poolID, poolBody("10.0.0.1", "fd00::1"))
	f.Add(vnetID, `{"location":"eastus","properties":{"subnets":[{"name":"a"}]}}`)
	f.Add(poolID, `{"properties":{"loadBalancerBackendAddresses":[{"name":null,"properties":null}]}}`)
	f.Fuzz(func(t *testing.T, id, body string) {
		emu := newCloud(t, armemu.Options{})
		if _, ok := emu.Get(id); !ok {
			id = lbID
		}
		a := sendRequest(t, emu, http.MethodPut, id, body)
		switch {
		case a.status >= 400 && a.errorCode() == "":
			t.Errorf("%d without a code: %s", a.status, a.raw)
		case a.status >= 500:
			t.Errorf("%d %s", a.status, a.raw)
		}
		if got := sendRequest(t, emu, http.MethodGet, id, ""); got.status != 200 || got.body == nil {
			t.Errorf("GET after PUT: %d %s", got.status, got.raw)
		}
		if err := armemu.New(armemu.Options{}).Restore(emu.Snapshot()); err != nil {
			t.Error(err)
		}
	})
}
