// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// A Service is published in its own cluster; its resources are deleted in order.
func TestTheFourthActAgainstRealProcesses(t *testing.T) {
	opts, out, lines := realOptions(t, actSteps("Fourth act")...)
	if err := Run(t.Context(), opts); err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	s := summaryOf(t, out)
	if p := s.PrivateLink; !s.OK || p == nil || p.Seconds <= 0 || p.Removed <= 0 || len(p.Order) != 3 || s.ARM.Writes != 0 || s.Steps[0].Writes == 0 || s.Steps[0].Early > 0 {
		t.Fatalf("%+v %+v", s, p)
	}
	reported := strings.Join(strings.Fields(lines.String()), " ")
	for _, want := range []string{
		"private link service portal of resource group rg publishes frontend", ".eastus.azure.privatelinkservice: no connections", "connects by the alias: Approved",
		"PrivateEndpointDisconnected service/portal", "PrivateLinkServiceDeleted service/portal", "DeletedLoadBalancer service/portal",
	} {
		if !strings.Contains(reported, want) {
			t.Errorf("nothing says %q:\n%s", want, lines)
		}
	}
	checkLines(t, lines)
	if files := leftoverFiles(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// A premature deletion is detected; a rejected one does not count.
func TestOrderOfRemovals(t *testing.T) {
	t.Parallel()
	call := func(method, about string, status int) armemu.Call {
		return armemu.Call{Method: method, Resource: provider + about, Status: status}
	}
	got := deletedResources([]armemu.Call{
		call("GET", "privateLinkServices/p", 200), call("PUT", "loadBalancers/b", 400), call("DELETE", "privateLinkServices/p", 202),
		call("DELETE", "privateLinkServices/p/privateEndpointConnections/c", 202), call("PUT", "networkInterfaces/n", 200), call("PUT", "loadBalancers/b", 200), call("DELETE", "loadBalancers/b", 202),
	})
	if want := []string{"private link service", "connection", "load balancer"}; !slices.Equal(got, want) {
		t.Errorf("removed were %q, want %q", got, want)
	}
}
