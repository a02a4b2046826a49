// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

const healthPath = lbID + "/loadBalancingRules/r/health"

// readHealth returns the reasons by address, and up and down.
func readHealth(t *testing.T, emu *armemu.Emulator) string {
	t.Helper()
	a := sendRequest(t, emu, http.MethodPost, healthPath, "")
	if a.status != http.StatusAccepted || a.header.Get("Location") == "" || a.header.Get("Azure-AsyncOperation") != "" || a.raw != "" {
		t.Fatalf("%d %v %s", a.status, a.header, a.raw)
	}
	for a.status == http.StatusAccepted {
		time.Sleep(10 * time.Second)
		a = sendRequest(t, emu, http.MethodGet, a.header.Get("Location"), "")
	}
	if a.status != http.StatusOK {
		t.Fatal(a.status, a.raw)
	}
	members, _ := a.body["loadBalancerBackendAddresses"].([]any)
	text := fmt.Sprintf("%v up, %v down:", a.body["up"], a.body["down"])
	for _, m := range members {
		of := m.(map[string]any)
		text += fmt.Sprintf(" %s %s %s;", of["ipAddress"], of["state"], of["reason"])
	}
	return text
}

func TestHealthOfARule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu := newCloud(t, armemu.Options{LatencyScale: 1})
		putResource(t, emu, lbID, strings.Replace(lbBody(`{"name":"web"},{"name":"spare"}`), `{"name":"p"}`,
			`{"name":"p","properties":{"protocol":"Http","port":31000,"requestPath":"/healthz","intervalInSeconds":5,"probeThreshold":2}}`, 1))
		putResource(t, emu, poolID, strings.Replace(poolBody("10.0.0.1", "10.0.0.2", "10.0.0.3"), `"ipAddress":"10.0.0.3"`, `"adminState":"Down","ipAddress":"10.0.0.3"`, 1))
		etag := sendRequest(t, emu, http.MethodGet, lbID, "").stringField("etag")
		want := func(when, text string) {
			t.Helper()
			if got := readHealth(t, emu); got != text {
				t.Errorf("%s: %s\nwant %s", when, got, text)
			}
		}
		const rest = " 10.0.0.2 Up Up_Probe_Success; 10.0.0.3 Down Down_Admin;"
		want("at first", "2 up, 1 down: 10.0.0.1 Up Up_Probe_Success;"+rest)
		emu.SetAlive(netip.MustParseAddr("10.0.0.1"), false)
		want("a node died", "1 up, 2 down: 10.0.0.1 Down Down_Probe_HttpEndpointUnreachable;"+rest)
		emu.ReportHealth(func(p armemu.ForwardingProbe, ip netip.Addr) (up, known bool) {
			return false, p.Port == 31000 && ip.String() == "10.0.0.1"
		})
		want("with a data plane", "1 up, 2 down: 10.0.0.1 Down Down_Probe_HttpStatusCodeError;"+rest)
		if w := sendAdmin(emu, http.MethodPost, "/_emu/health", `{"ip":"10.0.0.1","port":31000,"reason":"Down_Platform"}`); w.Code != http.StatusNoContent {
			t.Fatal(w.Body)
		}
		want("set", "1 up, 2 down: 10.0.0.1 Down Down_Platform;"+rest)
		if now := sendRequest(t, emu, http.MethodGet, lbID, "").stringField("etag"); now != etag {
			t.Errorf("the etag changed from %s to %s", etag, now)
		}
	})
}

func TestHealthIsRefused(t *testing.T) {
	role := &armemu.Role{Actions: []string{"*"}, NotActions: []string{"Microsoft.Network/loadBalancers/loadBalancingRules/health/action"}}
	for _, tt := range []struct {
		name, method, path string
		role               *armemu.Role
		edit               func(string) string
		status             int
		code               string
	}{
		{"no such rule", http.MethodPost, lbID + "/loadBalancingRules/x/health", nil, nil, 404, "NotFound"},
		{"no such load balancer", http.MethodPost, group + "/loadBalancers/x/loadBalancingRules/r/health", nil, nil, 404, "ResourceNotFound"},
		{"not by GET", http.MethodGet, healthPath, nil, nil, 405, "MethodNotAllowed"},
		{"without the right", http.MethodPost, healthPath, role, nil, 403, "AuthorizationFailed"},
		{"no probe", http.MethodPost, healthPath, nil, func(s string) string { return strings.Replace(s, `"probe":{"id":"`+lbID+`/probes/p"},`, "", 1) }, 400, "LoadBalancingRuleHasNoProbe"},
	} {
		emu := newCloud(t, armemu.Options{Role: tt.role})
		if tt.edit != nil {
			putResource(t, emu, lbID, tt.edit(lbBody(`{"name":"web"}`)))
		}
		if a := sendRequest(t, emu, tt.method, tt.path, ""); a.status != tt.status || a.errorCode() != tt.code {
			t.Errorf("%s: %d %s", tt.name, a.status, a.raw)
		}
	}
	for _, body := range []string{`{"ip":"x","port":1}`, `{"ip":"10.0.0.1"}`, `{"ip":"10.0.0.1","port":1,"reason":"Up"}`, `{"port":"1"}`} {
		if w := sendAdmin(armemu.New(armemu.Options{}), http.MethodPost, "/_emu/health", body); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", body, w.Code)
		}
	}
}
