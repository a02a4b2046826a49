// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
)

// What Services ask for while no process runs: the addresses that their status shows, and
// those of the nodes, are closed all the same.
func TestWhatChangedWhileNobodyRanIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(func(set *balancer.Settings) {
			set.SecurityGroup = lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resources, Type: lb.TypeSecurityGroup, Name: "nsg"}
		})
		defer func() { s.close() }()
		s.put("networkSecurityGroups/nsg", `{location: eastus, properties: {securityRules: []}}`)
		s.put("publicIPAddresses/mine", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
		s.applyAll(`
shop/goes: {ports: 80}
shop/moves: {ports: 81}
shop/direct: {ports: 82, azure-disable-load-balancer-floating-ip: "true"}`)
		s.settle(time.Hour)
		s.stop()
		s.remove("shop/goes")
		s.applyAll(`
shop/moves: {ports: 81, azure-pip-name: mine}
shop/direct: {ports: 82, azure-load-balancer-internal: "true"}`)
		s.launch()
		s.kickAll()
		s.settle(time.Hour)
		_, group, _ := strings.Cut(s.cloud().spell(), "networkSecurityGroups/nsg\n")
		if want := "Allow Tcp from Internet to 198.18.0.1 at 81\n"; !strings.HasSuffix(group, want) || strings.Count(group, "\n") != 1 {
			t.Errorf("left\n%s\nwant\n%s", group, want)
		}
	})
}
