// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/lab/armemu"
)

func TestForwardingRules(t *testing.T) {
	emu := newCloud(t, armemu.Options{})
	putResource(t, emu, group+"/publicIPAddresses/ip", `{"location":"eastus","properties":{"publicIPAllocationMethod":"Static","ipAddress":"198.18.0.9"}}`)
	body := strings.NewReplacer(
		`{"name":"fe"}`, `{"name":"fe","properties":{"publicIPAddress":{"id":"`+group+`/publicIPAddresses/ip"}}},{"name":"own","properties":{"privateIPAllocationMethod":"Static","privateIPAddress":"10.0.9.9"}},{"name":"none"}`,
		`{"name":"p"}`, `{"name":"p","properties":{"protocol":"Http","port":31000,"requestPath":"/healthz","intervalInSeconds":5,"probeThreshold":2,"noHealthyBackendsBehavior":"AllProbedUp"}}`,
		`"loadBalancingRules":[`, `"loadBalancingRules":[
			{"name":"q","properties":{"protocol":"Udp","frontendPort":53,"backendPort":53,"enableFloatingIP":true,"loadDistribution":"SourceIP",
				"frontendIPConfiguration":{"id":"`+strings.ToUpper(lbID)+`/frontendIPConfigurations/OWN"},"backendAddressPool":{"id":"`+poolID+`"}}},
			{"name":"z","properties":{"protocol":"Tcp","frontendPort":80,"frontendIPConfiguration":{"id":"`+lbID+`/frontendIPConfigurations/none"}}},`,
		`"frontendPort":80,
			"front`, `"frontendPort":80,"backendPort":30080,"front`,
	).Replace(lbBody(`{"name":"web"}`))
	putResource(t, emu, lbID, body)
	if a := sendRequest(t, emu, http.MethodPut, poolID, strings.Replace(poolBody("10.0.0.1", "10.0.0.2"), `"ipAddress":"10.0.0.1"`, `"adminState":"Down","ipAddress":"10.0.0.1"`, 1)); a.status >= 300 {
		t.Fatal(a.raw)
	}
	var report struct{ Rules []armemu.ForwardingRule }
	if err := json.Unmarshal(sendAdmin(emu, http.MethodGet, "/_emu/forwarding", "").Body.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	members := []armemu.ForwardingMember{{Name: "n-10.0.0.1", IP: netip.MustParseAddr("10.0.0.1"), AdminState: "Down"}, {Name: "n-10.0.0.2", IP: netip.MustParseAddr("10.0.0.2")}}
	want := []armemu.ForwardingRule{
		{
			Rule: lbID + "/loadBalancingRules/q", Frontend: netip.MustParseAddr("10.0.9.9"), Protocol: "Udp", Port: 53, BackendPort: 53, FloatingIP: true,
			LoadBalance: "SourceIP", Members: members,
		},
		{
			Rule: lbID + "/loadBalancingRules/r", Frontend: netip.MustParseAddr("198.18.0.9"), Protocol: "Tcp", Port: 80, BackendPort: 30080, Members: members,
			Probe: &armemu.ForwardingProbe{
				ID: lbID + "/probes/p", Protocol: "Http", Port: 31000, Path: "/healthz", Interval: 5 * time.Second, Threshold: 2, AllUp: true,
			},
		},
	}
	equalIP := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	if diff := cmp.Diff(want, report.Rules, equalIP); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(report.Rules, emu.ForwardingRules(), equalIP); diff != "" {
		t.Error(diff)
	}
}
