// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/lab/armemu"
)

// In pool order.
func newFlowAddresses(emu *armemu.Emulator) string {
	var addresses []string
	for _, rule := range emu.Flows(time.Time{}, time.Now()) {
		for _, a := range rule.Addresses {
			if a.TakesNewFlows {
				addresses = append(addresses, a.IP)
			}
		}
	}
	return strings.Join(addresses, " ")
}

func TestNewFlowsToScaleSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Manual", 2)
		putResource(t, s.emu, lbID, lb("Standard", `"backendAddressPools":[{"name":"web"}],"probes":[{"name":"p","properties":{"intervalInSeconds":5,"probeThreshold":2}}],
			"loadBalancingRules":[{"name":"r","properties":{"backendAddressPool":{"id":"`+poolID+`"},"probe":{"id":"`+lbID+`/probes/p"}}}]`))
		s.emu.SetAlive(netip.MustParseAddr("10.9.9.9"), false) // starts the history
		sees := func(want string) {
			t.Helper()
			if got := newFlowAddresses(s.emu); got != want {
				t.Errorf("%q take new flows, want %q", got, want)
			}
		}
		sees("")
		s.sendStep(200, http.MethodPut, setID, setBody("Manual", 2, poolID))
		time.Sleep(time.Minute)
		s.sendStep(202, http.MethodPost, setID+"/manualupgrade", `{"instanceIds":["*"]}`)
		sees("")
		time.Sleep(time.Minute)
		sees("10.0.0.4 10.0.0.5")
		s.emu.SetAlive(netip.MustParseAddr("10.0.0.5"), false)
		time.Sleep(time.Minute)
		sees("10.0.0.4")
		s.sendStep(200, http.MethodPut, instanceID("0"), instanceInPools())
		time.Sleep(time.Minute)
		sees("")
		s.sendStep(202, http.MethodDelete, setID, "")
		time.Sleep(time.Minute)
		if flows := s.emu.Flows(time.Now(), time.Now()); len(flows[0].Addresses) != 0 {
			t.Errorf("the rule has %v", flows[0].Addresses)
		}
	})
}

func TestNewFlowsFollowARollingUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScaleSetScenario(t, "Rolling", 2)
		putResource(t, s.emu, lbID, lb("Standard", `"backendAddressPools":[{"name":"web"}],
			"loadBalancingRules":[{"name":"r","properties":{"backendAddressPool":{"id":"`+poolID+`"}}}]`))
		s.emu.SetAlive(netip.MustParseAddr("10.9.9.9"), false)
		s.sendStep(200, http.MethodPut, setID, setBody("Rolling", 2, poolID))
		time.Sleep(44 * time.Second)
		if got := newFlowAddresses(s.emu); got != "10.0.0.4" {
			t.Errorf("%q take new flows after the first batch", got)
		}
		time.Sleep(time.Hour)
		if got := newFlowAddresses(s.emu); got != "10.0.0.4 10.0.0.5" {
			t.Errorf("%q take new flows after the last batch", got)
		}
	})
}
