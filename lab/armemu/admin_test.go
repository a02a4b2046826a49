// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/lab/armemu"
)

func sendAdmin(emu *armemu.Emulator, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	emu.Admin().ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

func TestAdminCalls(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	sendRequest(t, emu, http.MethodGet, lbID, "")
	sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
	sendRequest(t, emu, http.MethodGet, vnetID, "")
	for query, want := range map[string]string{
		"":                              "1 2 3",
		"?method=GET":                   "1 3",
		"?kind=put":                     "2",
		"?path=backendAddressPools/*":   "2",
		"?path=virtualNetworks/*":       "3",
		"?since=2":                      "3",
		"?since=1&method=PUT":           "2",
		"?since=2001-01-01T00:00:00Z":   "1 2 3",
		"?since=" + "9999-01-01T00:00Z": "bad",
		"?what=x":                       "bad",
	} {
		w := sendAdmin(emu, http.MethodGet, "/_emu/calls"+query, "")
		var got []string
		for line := range strings.Lines(w.Body.String()) {
			var c armemu.Call
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(c.Seq))
		}
		if w.Code == http.StatusBadRequest {
			got = []string{"bad"}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", query, got, want)
		}
	}
	if got := emu.Calls(armemu.CalledSince(time.Now().Add(time.Hour))); len(got) != 0 {
		t.Errorf("calls of the future: %v", got)
	}
	if w := sendAdmin(emu, http.MethodGet, "/_emu/stats", ""); !strings.Contains(w.Body.String(), `"writes":1`) {
		t.Errorf("stats: %s", w.Body)
	}
	if w := sendAdmin(emu, http.MethodDelete, "/_emu/calls", ""); w.Code != 204 || len(emu.Calls()) != 0 || emu.Stats().Calls != 0 {
		t.Errorf("after DELETE: %d, %d calls", w.Code, len(emu.Calls()))
	}
}

func TestAdminSnapshotFaultsAndConfig(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	snapshot := sendAdmin(emu, http.MethodGet, "/_emu/snapshot", "").Body.String()
	sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
	steps := []struct {
		method, path, body string
		code               int
		contains           string
	}{
		{http.MethodGet, "/_emu/healthz", "", 200, "ok"},
		{http.MethodPut, "/_emu/snapshot", snapshot, 204, ""},
		{http.MethodGet, "/_emu/snapshot", "", 200, snapshot},
		{http.MethodPut, "/_emu/snapshot", "{", 400, "snapshot"},
		{http.MethodPut, "/_emu/faults", "rules: [{action: {status: 599}}]", 204, ""},
		{http.MethodPut, "/_emu/faults", "rules: [{action: {status: 1}}]", 400, "rules[0].action.status"},
		{http.MethodGet, "/_emu/faults", "", 200, "599"},
		{http.MethodGet, "/_emu/config", "", 200, `"overlap":"supersede"`},
		{http.MethodPut, "/_emu/config", `{"behaviour":{"overlap":"lock-429"},"latencyScale":0.5}`, 204, ""},
		{http.MethodPut, "/_emu/config", `{"behaviour":{"overlap":"lock"},"latencyScale":2}`, 400, "supersede-discard"},
		{http.MethodPut, "/_emu/config", `{"latencyScale":-1}`, 400, "out of range"},
		{http.MethodPut, "/_emu/config", `{"overlap":1}`, 400, "allowed here: behaviour"},
		{http.MethodPut, "/_emu/config", `{"latency":"slow"}`, 400, "busy (with machines in service)"},
		{http.MethodPut, "/_emu/config", `{"latency":"busy","latencyScale":-1}`, 400, "out of range"},
		{http.MethodGet, "/_emu/config", "", 200, `"latency":"quiet","latencyScale":0.5`},
		{http.MethodPut, "/_emu/config", `{"latency":"busy"}`, 204, ""},
		{http.MethodGet, "/_emu/config", "", 200, `"latency":"busy","latencyScale":0.5`},
		{http.MethodPut, "/_emu/config", `{}`, 400, "nothing to change"},
		{http.MethodPut, "/_emu/config", `{"behaviour":{"poolIfMatch":"ignored"}}`, 204, ""},
		{http.MethodGet, "/_emu/config", "", 200, `"overlap":"lock-429","poolIfMatch":"ignored","ifNoneMatch":"honoured"`},
		{http.MethodDelete, "/_emu/snapshot", "", 405, ""},
		{http.MethodGet, lbID, "", 404, ""},
	}
	for _, s := range steps {
		w := sendAdmin(emu, s.method, s.path, s.body)
		if w.Code != s.code || !strings.Contains(w.Body.String(), s.contains) {
			t.Errorf("%s %s %s: %d %s", s.method, s.path, s.body, w.Code, w.Body)
		}
	}
	if a := sendRequest(t, emu, http.MethodGet, lbID, ""); a.status != 599 {
		t.Errorf("with the fault script: %d", a.status)
	}
	sendAdmin(emu, http.MethodDelete, "/_emu/faults", "")
	if a := sendRequest(t, emu, http.MethodGet, lbID, ""); a.status != 200 {
		t.Errorf("without it: %d", a.status)
	}
}
