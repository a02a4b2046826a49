// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/worlds"
)

// writeDurations are sorted and rounded to tenths.
func writeDurations(t *testing.T, emu *armemu.Emulator, id, body string) []float64 {
	t.Helper()
	var took []float64
	for i := range 200 {
		start := time.Now()
		a := sendRequest(t, emu, http.MethodPut, id, strings.Replace(body, "{", `{"n":`+string(rune('0'+i%2))+`,`, 1))
		if a.status >= 300 {
			t.Fatal(a.raw)
		}
		for at := a.header.Get("Azure-AsyncOperation"); at != "" && sendRequest(t, emu, http.MethodGet, at, "").stringField("status") == "InProgress"; {
			time.Sleep(max(50*time.Millisecond, time.Since(start)/10))
		}
		took = append(took, time.Since(start).Seconds())
	}
	slices.Sort(took)
	return took
}

func TestLatency(t *testing.T) {
	withVM := func(t *testing.T, emu *armemu.Emulator) {
		putResource(t, emu, nics+"nic", nic(poolID))
		putResource(t, emu, computeGroup+"/virtualMachines/vm", `{"location":"eastus","properties":{"networkProfile":{"networkInterfaces":[{"id":"`+nics+`nic"}]}}}`)
	}
	pool := strings.Replace(poolBody("10.0.0.1"), "{", `{"name":"web",`, 1)
	for _, row := range []struct {
		about            string
		profile          armemu.Latency
		prepare          func(*testing.T, *armemu.Emulator)
		id, body         string
		median, p90, max float64
	}{
		{"a pool of addresses that no machine has", armemu.Quiet, nil, poolID, poolBody("10.0.0.1"), 1.5, 2, 2},
		{"a pool of addresses of machines", armemu.Busy, nil, poolID, poolBody("10.0.0.1"), 27, 72, 142},
		{"a pool without addresses", armemu.Busy, nil, poolID, poolBody(), 1.5, 2, 2},
		{"a load balancer without members", armemu.Busy, nil, lbID, lbBody(`{"name":"web"}`), 0, 0, 0},
		{"a load balancer of addresses that no machine has", armemu.Quiet, nil, lbID, lbBody(pool), 3, 4, 4},
		{"a load balancer of addresses of machines", armemu.Busy, nil, lbID, lbBody(pool), 27, 72, 142},
		{"a load balancer of interfaces", armemu.Quiet, withVM, lbID, lbBody(`{"name":"web"}`), 27, 72, 142},
		{"an interface that a machine has", armemu.Quiet, withVM, nics + "nic", nic(poolID), 41.5, 72, 198},
		{"an interface that no machine has", armemu.Busy, nil, nics + "nic", nic(poolID), 0, 0, 0},
		{"a public IP address", armemu.Busy, nil, pips + "a", lb("Standard", static), 2, 3, 3},
		{"a virtual network", armemu.Busy, nil, vnetID + "2", `{"location":"eastus"}`, 3.5, 4, 4},
	} {
		t.Run(row.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				emu := newCloud(t, armemu.Options{Seed: 5, Latency: row.profile, LatencyScale: 1, Behavior: worlds.BatchedWrites()})
				if row.prepare != nil {
					row.prepare(t, emu)
				}
				took := writeDurations(t, emu, row.id, row.body)
				near := func(got, want float64) bool { return got >= 0.8*want-0.1 && got <= 1.2*want+0.1 }
				if p50, p90, limit := took[100], took[180], took[199]; !near(p50, row.median) || !near(p90, row.p90) || limit > 1.1*row.max+0.1 {
					t.Errorf("half take %.1f s, nine of ten %.1f s, all %.1f s; want %.1f, %.1f, %.1f", p50, p90, limit, row.median, row.p90, row.max)
				}
			})
		})
	}
}

func TestRetryAfterByType(t *testing.T) {
	for _, row := range []struct{ method, id, body, want string }{
		{http.MethodPut, poolID, poolBody("10.0.0.1"), "10"},
		{http.MethodPut, pips + "a", lb("Standard", static), "1"},
		{http.MethodPut, vnetID + "2", `{"location":"eastus"}`, "3"},
		{http.MethodPut, vnetID + "/subnets/more", `{"properties":{"addressPrefix":"10.1.0.0/16"}}`, "3"},
		{http.MethodPut, group + "/networkSecurityGroups/g", `{"location":"eastus"}`, "3"},
		{http.MethodPut, otherLB, withMember(withFrontends(privateFrontend("fe", nodesID, ""))), "3"},
		{http.MethodPut, lbID, lbBody(`{"name":"web"}`), ""},
		{http.MethodPut, nics + "nic", nic(poolID), ""},
		{http.MethodDelete, lbID, "", "10"},
	} {
		emu := newCloud(t, armemu.Options{LatencyScale: 1, Behavior: worlds.BatchedWrites()})
		a := sendRequest(t, emu, row.method, row.id, row.body)
		if got := a.header.Get("Retry-After"); a.status >= 300 || got != row.want {
			t.Errorf("%s %s: %d, Retry-After %q, want %q", row.method, row.id, a.status, got, row.want)
		}
		if at := a.header.Get("Azure-AsyncOperation"); at != "" && row.want != "" {
			if got := sendRequest(t, emu, http.MethodGet, at, "").header.Get("Retry-After"); got != row.want {
				t.Errorf("a poll of %s %s: Retry-After %q, want %q", row.method, row.id, got, row.want)
			}
		}
	}
}
