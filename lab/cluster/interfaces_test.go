// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/config"
)

// ofInterfaces configures pools of network interfaces.
func ofInterfaces(c *config.Config) { c.BackendPoolType = "nodeIPConfiguration" }

// Services of both policies use the pool of all nodes, virtual machines and scale set instances.
// Nodes come and go; the pool and load balancer are deleted with the last Service.
func TestServicesOfNetworkInterfaces(t *testing.T) {
	stage(t, Options{Configure: ofInterfaces}, func(s *Stage) {
		for n := range 4 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.AddService("shop/api", func(svc *corev1.Service) { setPolicy(svc, corev1.ServiceExternalTrafficPolicyLocal) }))
		must(s.Endpoints("shop/api", map[int]bool{1: true}))
		must(s.Settles(10 * time.Minute))
		for n := 4; n < 7; n++ {
			must(s.AddNode(n))
		}
		must(s.Settles(10 * time.Minute))
		must(s.DeleteNode(4))
		must(s.ChangeNode(3, func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} }))
		must(s.Settles(10 * time.Minute))
		must(s.DeleteService("shop/web"))
		must(s.Settles(10 * time.Minute))
		must(s.DeleteService("shop/api"))
		must(s.Settles(10 * time.Minute))
		s.Pass(settled)
		must(s.Rests(400))
	})
}

// A deleted node is Down in the pool of network interfaces while its machine exists.
func TestAMachineIsDown(t *testing.T) {
	signals := func(c *config.Config) { ofInterfaces(c); c.EnableNodeAdminState = new(true) }
	stage(t, Options{Configure: signals}, func(s *Stage) {
		for n := range 4 {
			must(s.AddNode(n))
		}
		s.Start()
		must(s.AddService("shop/web", nil))
		must(s.Settles(10 * time.Minute))
		for n := range 4 {
			must(s.ChangeNode(n, func(node *corev1.Node) {
				node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}}
			}))
			must(s.Settles(5 * time.Minute))
			must(s.ChangeNode(n, func(node *corev1.Node) { node.Spec.Taints = nil }))
			must(s.Settles(5 * time.Minute))
		}
	})
}
