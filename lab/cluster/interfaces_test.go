// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
)

// useInterfaces configures pools of network interfaces.
func useInterfaces(c *config.Config) { c.BackendPoolType = "nodeIPConfiguration" }

// Services of both policies use the pool of all nodes, virtual machines and scale set instances.
// Nodes come and go; the pool and load balancer are deleted with the last Service.
func TestServicesOfNetworkInterfaces(t *testing.T) {
	runStage(t, Options{Configure: useInterfaces}, func(s *Stage) {
		for n := range 4 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.AddService("shop/api", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		failOn(s.SetEndpoints("shop/api", map[int]bool{1: true}))
		failOn(s.WaitInSync(10 * time.Minute))
		for n := 4; n < 7; n++ {
			failOn(s.AddNode(n))
		}
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.DeleteNode(4))
		failOn(s.ChangeNode(3, func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} }))
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.DeleteService("shop/web"))
		failOn(s.WaitInSync(10 * time.Minute))
		failOn(s.DeleteService("shop/api"))
		failOn(s.WaitInSync(10 * time.Minute))
		s.Sleep(settleTime)
		failOn(s.CheckIdleHour(400))
	})
}

// A deleted node is Down in the pool of network interfaces while its machine exists.
func TestAMachineIsDown(t *testing.T) {
	signals := func(c *config.Config) { useInterfaces(c); c.EnableNodeAdminState = new(true) }
	runStage(t, Options{Configure: signals}, func(s *Stage) {
		for n := range 4 {
			failOn(s.AddNode(n))
		}
		s.Start()
		failOn(s.AddService("shop/web", nil))
		failOn(s.WaitInSync(10 * time.Minute))
		for n := range 4 {
			failOn(s.ChangeNode(n, func(node *corev1.Node) {
				node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
			}))
			failOn(s.WaitInSync(5 * time.Minute))
			failOn(s.ChangeNode(n, func(node *corev1.Node) { node.Spec.Taints = nil }))
			failOn(s.WaitInSync(5 * time.Minute))
		}
	})
}
