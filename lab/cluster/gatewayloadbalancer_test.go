// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/shipped"
)

// createGateway creates a load balancer of SKU Gateway in the resource group hub and returns the ID of its frontend.
func (s *Stage) createGateway(name string) string {
	id := strings.Replace(network, "/"+group+"/", "/hub/", 1) + "loadBalancers/" + name
	failOn(s.emulator.Put(id, []byte(`{"location":"eastus","sku":{"name":"Gateway"},"properties":{"frontendIPConfigurations":[{"name":"in","properties":{"subnet":{"id":"`+vnetID+`/subnets/nodes"}}}]}}`)))
	return id + "/frontendIPConfigurations/in"
}

// allowGateways sets the gateway load balancers of namespace shop.
func (s *Stage) allowGateways(list string) {
	failOn(s.ChangeNamespace("shop", func(ns *corev1.Namespace) {
		ns.Annotations = map[string]string{service.GatewayLoadBalancersAnnotation: list}
	}))
	s.Sleep(time.Minute)
}

func (s *Stage) requestGateway(key, id string) {
	failOn(s.ChangeService(key, func(svc *corev1.Service) { setAnnotation(svc, service.GatewayLoadBalancer, id) }))
	s.Sleep(10 * time.Minute)
}

// expectGateways fails unless the cluster's frontends have these gateway load balancers, none as "".
func (s *Stage) expectGateways(when string, want ...string) {
	c, err := s.readAzure()
	failOn(err)
	got := []string{}
	for _, b := range c.balancers {
		for _, f := range b.Properties.Frontends {
			if got = append(got, ""); f.Properties.Gateway != nil {
				got[len(got)-1] = f.Properties.Gateway.ID
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") || len(got) != len(want) {
		failOn(fmt.Errorf("%s: gateway load balancers %q, want %q", when, got, want))
	}
}

// A Service chains its frontend to a gateway load balancer that its Namespace allows. Nothing but a valid request changes or
// removes it.
func TestGatewayLoadBalancerByAnnotation(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		first, second := s.createGateway("inspect"), s.createGateway("other")
		failOn(s.AddService("shop/web", func(svc *corev1.Service) { setAnnotation(svc, service.GatewayLoadBalancer, first) }))
		s.Sleep(5 * time.Minute)
		s.expectGateways("new, without a grant")
		s.refused("shop/web", service.GatewayLoadBalancersAnnotation+" of Namespace shop")
		s.allowGateways("hub/inspect")
		failOn(s.WaitInSync(5 * time.Minute))
		s.expectGateways("allowed", first)

		s.requestGateway("shop/web", second)
		s.expectGateways("another one, without a grant", first)
		s.requestGateway("shop/web", "inspect")
		s.expectGateways("an invalid value", first)
		s.KillProcess(0)
		s.Sleep(5 * time.Minute)
		s.expectGateways("an invalid value, after a restart", first)
		s.allowGateways("hub/inspect, " + subscription + "/HUB/other")
		s.requestGateway("shop/web", second)
		s.expectGateways("changed", second)

		s.allowGateways("hub/inspect")
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
		s.Sleep(5 * time.Minute)
		s.KillProcess(0)
		s.Sleep(5 * time.Minute)
		s.expectGateways("revoked", second)
		s.refused("shop/web", "/other to annotation "+service.GatewayLoadBalancersAnnotation)
		s.allowGateways("*")
		failOn(s.WaitInSync(5 * time.Minute))
		s.expectGateways("allowed again", second)

		writes := len(s.loadBalancerWrites())
		s.requestGateway("shop/web", strings.ToUpper(second))
		if n := len(s.loadBalancerWrites()) - writes; n > 0 {
			failOn(fmt.Errorf("%d writes for another case", n))
		}
		s.KillProcess(0)
		s.requestGateway("shop/web", "")
		failOn(s.WaitInSync(5 * time.Minute))
		s.expectGateways("removed", "")

		id := network + "loadBalancers/" + clusterName
		body, _ := s.emulator.Get(id)
		failOn(s.emulator.Put(id, []byte(strings.Replace(string(body), `"publicIPAddress"`, `"gatewayLoadBalancer":{"id":"`+first+`"},"publicIPAddress"`, 1))))
		failOn(s.ChangeService("shop/web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8081 }))
		s.Sleep(2 * time.Minute)
		failOn(s.WaitInSync(5 * time.Minute))
		s.expectGateways("set by another client", first)
	})
}

// Services that share a frontend agree on its gateway load balancer, in any order of their changes, also if a process that
// knows none of them continues.
func TestGatewayLoadBalancerOfASharedFrontend(t *testing.T) {
	runStage(t, Options{}, func(s *Stage) {
		failOn(s.AddNode(0))
		failOn(s.CreatePublicIP("vip"))
		s.Start()
		gateway := s.createGateway("inspect")
		s.allowGateways("*")
		share := func(key string, port int32) {
			failOn(s.AddService(key, func(svc *corev1.Service) {
				svc.Spec.Ports[0].Port = port
				setAnnotation(svc, annotation+"azure-pip-name", "vip")
			}))
			failOn(s.WaitInSync(5 * time.Minute))
		}
		share("shop/a", 80)
		share("shop/b", 81)
		s.requestGateway("shop/b", gateway)
		s.expectGateways("one requests it", "")
		s.refused("shop/b", "rule a")
		s.requestGateway("shop/a", gateway)
		failOn(s.WaitInSync(10 * time.Minute))
		s.expectGateways("both request it", gateway)

		s.requestGateway("shop/a", "")
		s.expectGateways("one requests none", gateway)
		s.KillProcess(0)
		s.Sleep(10 * time.Minute)
		s.expectGateways("one requests none, after a restart", gateway)
		s.requestGateway("shop/b", "nonsense")
		s.expectGateways("the other is invalid", gateway)
		s.requestGateway("shop/b", "")
		failOn(s.WaitInSync(10 * time.Minute))
		s.expectGateways("both request none", "")
	})
}

// Without the permission to join the gateway load balancer, or without that load balancer, only the Service that requests it is
// not written.
func TestGatewayLoadBalancerThatAzureRejects(t *testing.T) {
	runStage(t, Options{Role: shipped.AzureRole()}, func(s *Stage) {
		failOn(s.AddNode(0))
		s.Start()
		gateway := s.createGateway("inspect")
		s.allowGateways("*")
		for name, id := range map[string]string{"denied": gateway, "missing": strings.Replace(gateway, "inspect", "no-such", 1)} {
			failOn(s.AddService("shop/"+name, func(svc *corev1.Service) { setAnnotation(svc, service.GatewayLoadBalancer, id) }))
		}
		failOn(s.AddService("blog/web", nil))
		s.Sleep(2 * time.Minute)
		failOn(s.ChangeService("blog/web", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
		s.Sleep(2 * time.Minute)
		s.expectGateways("only the other Service", "")
		body, _ := s.emulator.Get(network + "loadBalancers/" + clusterName)
		if !strings.Contains(string(body), `"frontendPort":8080`) {
			failOn(fmt.Errorf("the other Service does not change: %s", body))
		}
		s.refused("shop/denied", "frontendIPConfigurations/join/action")
	})
}
