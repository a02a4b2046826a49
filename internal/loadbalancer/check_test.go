// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
)

// busyAzure shows load balancers that lose a rule right after each write.
type busyAzure struct {
	loadbalancer.Azure
	rule string
}

func (a busyAzure) PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	shown, err := a.Azure.PutLoadBalancer(ctx, b)
	shown.Rules = slices.DeleteFunc(shown.Rules, func(r lb.Rule) bool { return r.Name == a.rule })
	return shown, err
}

// The check after a write covers only the Services in it: a rejected Service may fit by now.
func TestCheckAfterWriteCoversWrittenServices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.stop()
		s.wrap = func(a loadbalancer.Azure) loadbalancer.Azure { return busyAzure{a, "ssh"} }
		s.launch()
		defer func() { s.close() }()
		s.put("publicIPAddresses/theirs", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
		s.put("loadBalancers/kubernetes", `{location: eastus, sku: {name: Standard}, properties: {
			frontendIPConfigurations: [{name: theirs, properties: {publicIPAddress: {id: ~/publicIPAddresses/theirs}}}],
			backendAddressPools: [{name: vms}],
			loadBalancingRules: [{name: ssh, properties: {protocol: Tcp, frontendPort: 22, backendPort: 22,
				frontendIPConfiguration: {id: ~/loadBalancers/kubernetes/frontendIPConfigurations/theirs},
				backendAddressPool: {id: ~/loadBalancers/kubernetes/backendAddressPools/vms}}}]}}`)
		s.applyAll(`
shop/a: {ports: 22, azure-pip-name: theirs}
shop/b: {ports: 80}`)
		s.settle(35 * time.Second)
		output := s.harvest(false)
		if !strings.Contains(output, "shop/b has 198.18.0.") || !strings.Contains(output, "shop/a: the address is shared, and the port is taken") ||
			strings.Contains(output, "otherwise than written") {
			t.Errorf("said\n%s", output)
		}
	})
}
