// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/loadbalancer"
)

// With security rules that name nodes, a new node triggers a request, which carries the addresses
// in the status.
func TestSecurityRulesFollowTheNodes(t *testing.T) {
	s := newTestEnv(t)
	s.createLoadBalanced("plain")
	s.createLoadBalanced("web", annotated("azure-disable-load-balancer-floating-ip", "true"))
	s.waitForAddresses("plain", 1)
	svc := s.waitForAddresses("web", 1)
	before := len(s.requestsOf("web"))
	s.createNode(1)
	s.waitUntil(func() string {
		if len(s.requestsOf("web")) == before {
			return "web is not asked for again"
		}
		return ""
	})
	requests := s.requestsOf("web")
	if shown := requests[len(requests)-1].StatusAddresses; len(shown) != 1 || shown[0] != netip.MustParseAddr(svc.Status.LoadBalancer.Ingress[0].IP) {
		t.Errorf("shown %v, want %v", shown, svc.Status.LoadBalancer.Ingress)
	}
	s.waitForRequests("plain", 1)
}

func (env *testEnv) requestsOf(name string) []loadbalancer.Request {
	return deployer.requests(env.ns + "/" + name)
}

// A note in a result is reported once.
func TestNoteIsReported(t *testing.T) {
	s := newTestEnv(t)
	deployer.setResult(s.ns+"/web", func(req loadbalancer.Request) loadbalancer.Result {
		r := deployer.successResult(req)
		r.Message = "security group nsg is on no subnet"
		return r
	})
	s.createLoadBalanced("web")
	s.waitForAddresses("web", 1)
	s.waitForEvent("Service", "web", services.EventNotGuarded, 1)
	s.editService("web", annotated("azure-load-balancer-tcp-idle-timeout", "10"))
	s.waitForRequests("web", 2)
	s.waitForEvent("Service", "web", services.EventEnsured, 2)
	s.waitForEvent("Service", "web", services.EventNotGuarded, 1)
}
