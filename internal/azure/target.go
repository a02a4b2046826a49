// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"path"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

type target struct {
	// id has no name for a list of the resource group.
	id lb.ResourceID
	// pool is a pool of the load balancer; empty for the load balancer itself.
	pool string
	// child is the path below the resource, e.g. virtualMachines/3.
	child string
	// list is a list of the resource, or of the subscription without a resource; path is its path.
	list, path string
}

func loadBalancerTarget(id lb.LoadBalancerID) target {
	return target{id: lb.ResourceID{SubscriptionID: id.SubscriptionID, ResourceGroup: id.ResourceGroup, Type: lb.TypeLoadBalancer, Name: id.Name}}
}

func poolTarget(id lb.PoolID) target {
	t := loadBalancerTarget(id.LoadBalancer)
	t.pool = id.Name
	return t
}

func listTarget(kind, subscription, resourceGroup string) target {
	return target{id: lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: kind}}
}

// loadBalancer returns false for a list, which a lock on one load balancer does not block.
func (t target) loadBalancer() (lb.LoadBalancerID, bool) {
	id := lb.LoadBalancerID{SubscriptionID: t.id.SubscriptionID, ResourceGroup: t.id.ResourceGroup, Name: t.id.Name}
	return id, t.id.Type == lb.TypeLoadBalancer && t.id.Name != ""
}

func (t target) armID() string {
	if t.path != "" {
		return t.path
	}
	id := Resource{ID: t.id, Child: t.child}.armPath()
	if t.pool != "" {
		id += "/backendAddressPools/" + t.pool
	}
	return id
}

var typeNames = map[string]string{
	lb.TypeLoadBalancer: "load balancer", lb.TypePublicIP: "public IP", lb.TypeSecurityGroup: "security group",
	lb.TypeVirtualMachine: "virtual machine", lb.TypeNetworkInterface: "network interface",
	lb.TypeScaleSet: "scale set", typeResourceGroup: "resource group", lb.TypeVirtualNetwork: "virtual network",
	lb.TypePrivateLinkService: "private link service", rulesChild: "rule", instancesChild: "instance", "subnets": "subnet", "privateEndpointConnections": "connection",
}

// String is used in messages.
func (t target) String() string {
	switch {
	case t.list != "" && t.id.Name == "":
		return t.list + " of subscription " + t.id.SubscriptionID
	case t.list != "":
		of := t
		of.list = ""
		return t.list + " of " + of.String()
	case t.pool != "":
		return "pool " + t.id.Name + "/" + t.pool
	case t.child == instancesChild:
		return "instances of scale set " + t.id.Name
	case t.child != "":
		return typeNames[path.Dir(t.child)] + " " + path.Base(t.child) + " of " + typeNames[t.id.Type] + " " + t.id.Name
	case t.id.Name == "":
		return typeNames[t.id.Type] + "s of resource group " + t.id.ResourceGroup
	}
	return typeNames[t.id.Type] + " " + t.id.Name
}

func isSameResource(id string, shownID, shownName *string) bool {
	if shownID != nil {
		return strings.EqualFold(*shownID, id)
	}
	return shownName != nil && strings.EqualFold(*shownName, path.Base(id))
}

func unexpectedResponse(t target) error {
	return armerror.Classify(armerror.Failure{ResultUnknown: true}, fmt.Errorf("%s: Azure, or a proxy before it, returned 200 with unexpected content", t))
}

func checkID(id interface{ Validate() error }) error {
	if err := id.Validate(); err != nil {
		return rejectRequest(codeInvalidID, err)
	}
	return nil
}

func checkType(want string, id lb.ResourceID) error {
	if !strings.EqualFold(id.Type, want) {
		return rejectRequest(codeInvalidID, fmt.Errorf("%s is no %s", id, typeNames[want]))
	}
	return checkID(id)
}
