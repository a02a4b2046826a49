// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"errors"
	"net/netip"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/referencepage"
)

const applications = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v/subnets/apps"

// published returns a frontend's Private Link Service with owner tags.
func published(name, owner string) lb.PrivateLinkService {
	return lb.PrivateLinkService{
		ID:   lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypePrivateLinkService, Name: name},
		Etag: "1", Location: "eastus", Provisioning: lb.Succeeded, Frontends: []string{"/subscriptions/s/frontendIPConfigurations/" + name},
		NAT:        []lb.NATAddress{{Name: "a", Subnet: applications, Primary: true}, {Name: "b", Subnet: applications}, {Name: "c", Subnet: applications}},
		Visibility: []string{"*"}, Tags: map[string]string{service.TagLinkOwner: owner, service.TagCluster: "kubernetes"},
	}
}

// publishing has Private Link Services to create, change, delete with a connection, and only read,
// and the subnet opened for them; and Services with a request that is rejected, waits, or keeps its
// Private Link Service.
func publishing() PlanResult {
	comes, changes, goes, same := published("pls-a1", "shop/new"), published("pls-a2", "shop/web"), published("pls-a3", "shop/old"), published("pls-a4", "shop/same")
	goes.Connections = []lb.PrivateEndpointConnection{{Name: "pe.1", Endpoint: "/subscriptions/c/privateEndpoints/pe"}}
	next := published("pls-a2", "shop/web")
	next.NAT = []lb.NATAddress{{Name: "a", Subnet: applications, Address: netip.MustParseAddr("10.0.0.9"), Static: true, Primary: true}}
	next.FQDNs, next.ProxyProtocol, next.Visibility, next.AutoApproval = []string{"web.example"}, true, []string{"one"}, []string{"one"}
	subnet := lb.Subnet{Network: lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Type: lb.TypeVirtualNetwork, Name: "v"}, Name: "apps"}
	closed := subnet
	closed.LinkPolicies = true
	result := func(name, reason, text string) loadbalancer.Result {
		r := loadbalancer.Result{Request: loadbalancer.Request{Service: name, On: lb.LoadBalancerID{Name: "kubernetes"}, Desired: &service.Spec{}}}
		r.Link.State = &privatelink.State{Reason: reason, Text: text}
		if reason == privatelink.ReasonRejected {
			r.Link.Warnings = []privatelink.Event{{Reason: reason, Text: text}, {Reason: privatelink.ReasonWarning, Text: "flows do not arrive"}}
		}
		if reason == privatelink.ReasonFailed || reason == privatelink.ReasonWaiting {
			code := map[string]string{privatelink.ReasonWaiting: privatelink.CodeUpdating}[reason]
			r.Link.Err = &armerror.Fault{Class: armerror.Retriable, Code: code, Err: errors.New(text)}
		}
		return r
	}
	return PlanResult{
		Changes: Changes{
			Links: []ResourceChange[lb.PrivateLinkService]{
				{Before: lb.PrivateLinkService{ID: comes.ID}, After: comes}, {Before: changes, After: next},
				{Before: goes, After: lb.PrivateLinkService{ID: goes.ID}}, {Before: same, After: same},
			},
			Subnets: []ResourceChange[lb.Subnet]{{Before: closed, After: subnet}},
		},
		Results: []loadbalancer.Result{
			result("shop/new", privatelink.ReasonPublished, "published"),
			result("shop/eight", privatelink.ReasonRejected, "load balancer kubernetes has 8 private link services already"),
			result("shop/kept", privatelink.ReasonFrozen, "it remains unchanged, because of Service shop/typo, which owns it"),
			result("shop/waits", privatelink.ReasonWaiting, "Azure is at work on private link service pls-a5 (Updating)"),
			result("shop/unread", privatelink.ReasonFailed, "list private link services of links: 403 AuthorizationFailed"),
		},
	}
}

// Private Link Services are formatted like parts of a load balancer.
func TestThePlanOfPrivateLinkServices(t *testing.T) {
	referencepage.ExpectFile(t, "testdata/links.txt", NewClusterReport(publishing()).FormatText(false))
}

// A plan is incomplete if Private Link Services cannot be read, but not if Azure is updating one.
func TestAPlanWithoutAnAnswerOfPrivateLinkServices(t *testing.T) {
	o := publishing()
	const want = "the plan is not complete: Service shop/unread: list private link services of links: 403 AuthorizationFailed"
	if err := o.CheckComplete(); err == nil || err.Error() != want {
		t.Errorf("it says %v, want %s", err, want)
	}
	o.Results = o.Results[:len(o.Results)-1]
	if err := o.CheckComplete(); err != nil {
		t.Errorf("it says %v", err)
	}
}
