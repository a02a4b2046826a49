// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// ErrGatewayLoadBalancer means that a Service cannot change the gateway load balancer of its frontend.
var ErrGatewayLoadBalancer = errors.New("the gateway load balancer of the frontend does not change")

// keepGatewayLoadBalancer returns a frontend that replaces the one of its name, with its gateway load balancer unless the
// Service sets one.
func keepGatewayLoadBalancer(observed lb.LoadBalancer, want lb.Frontend) lb.Frontend {
	at := slices.IndexFunc(observed.Frontends, func(f lb.Frontend) bool { return strings.EqualFold(f.Name, want.Name) })
	if want.GatewayLoadBalancer == nil && want.PublicIP != "" && at >= 0 {
		want.GatewayLoadBalancer = observed.Frontends[at].GatewayLoadBalancer
	}
	return want
}

// nextGatewayLoadBalancer returns what to write for a frontend that several Services may share. A Service that requests
// none, or the one that Azure has, changes nothing. Another request replaces it: checkGatewayLoadBalancer has accepted it.
func nextGatewayLoadBalancer(observed lb.LoadBalancer, next, want lb.Frontend) *string {
	if frontend, _ := frontendOf(observed, placeOf(want)); want.GatewayLoadBalancer == nil || strings.EqualFold(frontend.GatewayLoadBalancerID(), *want.GatewayLoadBalancer) {
		return next.GatewayLoadBalancer
	}
	return want.GatewayLoadBalancer
}

func frontendOf(b lb.LoadBalancer, place string) (f lb.Frontend, exists bool) {
	at := slices.IndexFunc(b.Frontends, func(f lb.Frontend) bool { return placeOf(f) == place })
	if at < 0 {
		return lb.Frontend{}, false
	}
	return b.Frontends[at], true
}

// checkGatewayLoadBalancer rejects a Service that would change the gateway load balancer of a frontend while another Service
// there wants a different one, or of a frontend of another client. So no Service bypasses the appliances that it requests,
// and none sends the flows of others through its own.
func (a *admission) checkGatewayLoadBalancer(s ServiceParts, accepted *ruleIndex) error {
	for _, f := range s.Frontends {
		if f.GatewayLoadBalancer == nil {
			continue
		}
		want, at := *f.GatewayLoadBalancer, placeOf(f)
		current, exists := frontendOf(a.Observed, at)
		inSync := strings.EqualFold(current.GatewayLoadBalancerID(), want)
		if inSync && want == "" {
			continue
		}
		for _, name := range accepted.frontends[at] {
			other, _ := a.frontendIn(name, at)
			if other.GatewayLoadBalancer == nil && (inSync || want == "") || other.GatewayLoadBalancer != nil && strings.EqualFold(other.GatewayLoadBalancerID(), want) {
				continue
			}
			return a.gatewayConflict(want, f, "frontend "+name, name)
		}
		if inSync {
			continue
		}
		if exists && indexServices(a.Services).ownerOf(current.Name) == "" && indexOwners(a.Others).ownerOf(current.Name) == "" && (a.IsManaged == nil || !a.IsManaged(current)) {
			return fmt.Errorf("%w: frontend %s is that of another client and has %s, and annotation %s requests %s. Change the annotation or the frontend",
				ErrGatewayLoadBalancer, current.Name, cmp.Or(current.GatewayLoadBalancerID(), "none"), service.GatewayLoadBalancer, cmp.Or(want, "none"))
		}
		for _, r := range a.observedRules[at] {
			if _, ok := a.frontendIn(r.Name, at); hasOwner(s.Owner, r.Name) || !ok {
				continue
			}
			var others []string
			if a.GatewayLoadBalancersOf != nil {
				others = a.GatewayLoadBalancersOf(r.Name)
			}
			if want == "" && len(others) == 0 || want != "" && containsName(others, want) {
				continue
			}
			return a.gatewayConflict(want, f, "rule "+r.Name, r.Name)
		}
	}
	return nil
}

func (a *admission) gatewayConflict(want string, f lb.Frontend, part, name string) error {
	if a.ServiceOf != nil && a.ServiceOf(name) != "" {
		part += " of " + service.DescribeOwner(a.ServiceOf(name))
	}
	return fmt.Errorf("%w: annotation %s requests %s for %s, which %s shares without that request. Set the annotation to the same value on all Services of the address",
		ErrGatewayLoadBalancer, service.GatewayLoadBalancer, cmp.Or(want, "none"), a.placeText(f), part)
}

// frontendIn returns the frontend at a place that the Service of a part wants. A Service outside the plan does not move.
func (a *admission) frontendIn(part, at string) (f lb.Frontend, ok bool) {
	for _, s := range a.Services {
		if hasOwner(s.Owner, part) {
			i := slices.IndexFunc(s.Frontends, func(f lb.Frontend) bool { return placeOf(f) == at })
			if i < 0 {
				return lb.Frontend{}, false
			}
			return s.Frontends[i], true
		}
	}
	return lb.Frontend{}, true
}
