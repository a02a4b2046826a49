// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"net/netip"
	"testing"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/services"
)

// With security rules that name nodes, a new node triggers a request, which carries the addresses
// in the status.
func TestSecurityRulesFollowTheNodes(t *testing.T) {
	s := newScene(t)
	s.wants("plain")
	s.wants("web", annotated("azure-disable-load-balancer-floating-ip", "true"))
	s.balanced("plain", 1)
	svc := s.balanced("web", 1)
	before := len(s.requestsOf("web"))
	s.hasNode(1)
	s.until(func() string {
		if len(s.requestsOf("web")) == before {
			return "web is not asked for again"
		}
		return ""
	})
	all := s.requestsOf("web")
	if shown := all[len(all)-1].Shown; len(shown) != 1 || shown[0] != netip.MustParseAddr(svc.Status.LoadBalancer.Ingress[0].IP) {
		t.Errorf("shown %v, want %v", shown, svc.Status.LoadBalancer.Ingress)
	}
	s.asked("plain", 1)
}

func (s *scene) requestsOf(name string) []balancer.Request {
	return balancers.requests(s.ns + "/" + name)
}

// A note in a result is reported once.
func TestANoteIsTold(t *testing.T) {
	s := newScene(t)
	balancers.answers(s.ns+"/web", func(req balancer.Request) balancer.Result {
		r := balancers.succeeds(req)
		r.Note = "security group nsg is on no subnet"
		return r
	})
	s.wants("web")
	s.balanced("web", 1)
	s.wasTold("Service", "web", services.EventNotGuarded, 1)
	s.edits("web", annotated("azure-load-balancer-tcp-idle-timeout", "10"))
	s.asked("web", 2)
	s.wasTold("Service", "web", services.EventEnsured, 2)
	s.wasTold("Service", "web", services.EventNotGuarded, 1)
}
