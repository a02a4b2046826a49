// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"strings"
	"testing"

	"weir.dev/weir/internal/service"
)

// A Service requests nothing with a gateway load balancer that its namespace may not use, and waits while that is unknown.
func TestGatewayLoadBalancerNeedsAGrant(t *testing.T) {
	for gateway, want := range map[string]string{
		"allowed": "", "denied": "an administrator can add s/hub/denied to annotation weir.dev/allowed-gateway-load-balancers of Namespace shop",
		"unknown": "Namespace shop has not been seen yet",
	} {
		w := newWorld(t)
		w.s.Object.Annotations[service.GatewayLoadBalancer] = "/subscriptions/s/resourceGroups/hub/providers/Microsoft.Network/loadBalancers/" + gateway + "/frontendIPConfigurations/in"
		w.looks()
		if output := strings.Join(w.log, "\n"); (w.asked != nil) != (want == "") || !strings.Contains(output, want) {
			t.Errorf("%s: requests %v, %s", gateway, w.asked, output)
		}
	}
}
