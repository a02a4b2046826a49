// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"path"
	"strings"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// target is what a request is about.
type target struct {
	// id has no name if the request is about all of its type in the resource group.
	id lb.ResourceID
	// pool is a pool of the load balancer; empty for the load balancer itself.
	pool string
	// child is what the request is about below the resource, such as virtualMachines/3.
	child string
}

func ofBalancer(id lb.LoadBalancerID) target {
	return target{id: lb.ResourceID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Type: lb.TypeLoadBalancer, Name: id.Name}}
}

func ofPool(id lb.PoolID) target {
	t := ofBalancer(id.LoadBalancer)
	t.pool = id.Name
	return t
}

func ofAll(kind, subscription, resourceGroup string) target {
	return target{id: lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: kind}}
}

// loadBalancer returns the one load balancer that a request is about; false if it is
// about none, or about many: no lock on one holds it up.
func (t target) loadBalancer() (lb.LoadBalancerID, bool) {
	id := lb.LoadBalancerID{SubscriptionID: t.id.SubscriptionID, ResourceGroup: t.id.ResourceGroup, Name: t.id.Name}
	return id, t.id.Type == lb.TypeLoadBalancer && t.id.Name != ""
}

// resource is the ARM id of what a request is about.
func (t target) resource() string {
	id := Resource{ID: t.id, Child: t.child}.path()
	if t.pool != "" {
		id += "/backendAddressPools/" + t.pool
	}
	return id
}

// nouns are what people call the types.
var nouns = map[string]string{
	lb.TypeLoadBalancer: "load balancer", lb.TypePublicIP: "public IP", lb.TypeSecurityGroup: "security group",
	lb.TypeVirtualMachine: "virtual machine", lb.TypeNetworkInterface: "network interface",
	lb.TypeScaleSet: "scale set", typeResourceGroup: "resource group", lb.TypeVirtualNetwork: "virtual network",
	lb.TypePrivateLinkService: "private link service", children: "instance", "subnets": "subnet", "privateEndpointConnections": "connection",
}

// String is for messages.
func (t target) String() string {
	switch {
	case t.pool != "":
		return "pool " + t.id.Name + "/" + t.pool
	case t.child == children:
		return "instances of scale set " + t.id.Name
	case t.child != "":
		return nouns[path.Dir(t.child)] + " " + path.Base(t.child) + " of " + nouns[t.id.Type] + " " + t.id.Name
	case t.id.Name == "":
		return nouns[t.id.Type] + "s of resource group " + t.id.ResourceGroup
	}
	return nouns[t.id.Type] + " " + t.id.Name
}

// shows reports whether an answer is about a resource. Its id may be spelled with other
// capitals than the request.
func shows(id string, shownID, shownName *string) bool {
	if shownID != nil {
		return strings.EqualFold(*shownID, id)
	}
	return shownName != nil && strings.EqualFold(*shownName, path.Base(id))
}

// notThat is the fault of an answer that is not what was asked for.
func notThat(t target) error {
	return fault.Classify(fault.Answer{OutcomeUnknown: true}, fmt.Errorf("%s: Azure, or a proxy before it, answered 200 with something else", t))
}

// checkID refuses an id that Azure would not take, before it becomes part of a URL.
func checkID(id interface{ Validate() error }) error {
	if err := id.Validate(); err != nil {
		return refusal(codeInvalidID, err)
	}
	return nil
}

// checkType refuses an id of something else, too: it would be written as what it is not.
func checkType(want string, id lb.ResourceID) error {
	if !strings.EqualFold(id.Type, want) {
		return refusal(codeInvalidID, fmt.Errorf("%s is no %s", id, nouns[want]))
	}
	return checkID(id)
}
