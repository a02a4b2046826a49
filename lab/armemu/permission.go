// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"
)

type permission struct{ action, scope string }

// LinkedCheck is a linked access check: a write also requires an action on each referenced resource.
type LinkedCheck struct {
	Scope Scope
	// Property is the path of the reference below properties.
	Property  string
	Action    string
	Certainty Certainty // how certain it is
	Source    string
}

const (
	joinPublicIP      = network + "/publicIPAddresses/join/action"
	joinPrefix        = network + "/publicIPPrefixes/join/action"
	joinSubnet        = network + "/virtualNetworks/subnets/join/action"
	joinFrontend      = network + "/loadBalancers/frontendIPConfigurations/join/action"
	joinGroup         = network + "/applicationSecurityGroups/joinNetworkSecurityRule/action"
	joinPlan          = network + "/ddosProtectionPlans/join/action"
	joinPool          = network + "/loadBalancers/backendAddressPools/join/action"
	joinNatRule       = network + "/loadBalancers/inboundNatRules/join/action"
	joinInterface     = network + "/networkInterfaces/join/action"
	joinSecurityGroup = network + "/networkSecurityGroups/join/action"
	poolNetwork       = network + "/virtualNetworks/joinLoadBalancer/action"
	poolSubnet        = network + "/virtualNetworks/subnets/joinLoadBalancer/action"
)

// LinkedChecks returns the linked access checks.
func LinkedChecks() []LinkedCheck {
	list := []LinkedCheck{
		{ScopeLoadBalancer, frontends + "/publicIPAddress", joinPublicIP, Observed, "an answer in Microsoft Q&A, question 49223"},
		{ScopeLoadBalancer, frontends + "/publicIPPrefix", joinPrefix, Documented, "AKS service principal page, on outbound addresses"},
		{ScopeLoadBalancer, frontends + "/subnet", joinSubnet, Observed, "public notes"},
		{ScopeLoadBalancer, frontends + "/gatewayLoadBalancer", joinFrontend, Observed, "Azure/azure-cli#28705"},
		{ScopePublicIP, "publicIPPrefix", joinPrefix, Observed, "kubernetes-sigs/cloud-provider-azure#7500"},
		{ScopePublicIP, "ddosSettings/ddosProtectionPlan", joinPlan, Assumed, "by analogy with virtual networks"},
		{ScopeSecurityGroup, securityRules + "/sourceApplicationSecurityGroups", joinGroup, Documented, "network security group management page"},
		{ScopeSecurityGroup, securityRules + "/destinationApplicationSecurityGroups", joinGroup, Documented, "network security group management page"},
	}
	list = append(list, poolLinkedChecks()...)
	list = append(list,
		LinkedCheck{ScopePrivateLinkService, privateLinkFrontends, joinFrontend, Assumed, "the action's description"},
		LinkedCheck{ScopePrivateLinkService, linkConfigKind.collection + "/subnet", joinSubnet, Assumed, "by analogy with network interfaces"})
	return append(list, backendLinkedChecks()...)
}

// backendLinkedChecks: Weir does not write these.
func backendLinkedChecks() []LinkedCheck {
	const page, like = "network interface page, permissions", "by analogy with network interfaces"
	list := []LinkedCheck{
		{ScopeVirtualMachine, "networkProfile/networkInterfaces", joinInterface, Documented, page},
	}
	for _, j := range []struct{ property, action string }{
		{"subnet", joinSubnet},
		{nicPools, joinPool},
		{"loadBalancerInboundNatRules", joinNatRule},
		{"publicIPAddress", joinPublicIP},
	} {
		list = append(list, LinkedCheck{ScopeNetworkInterface, ipConfigKind.collection + "/" + j.property, j.action, Documented, page})
	}
	list = append(list, LinkedCheck{ScopeNetworkInterface, securityGroupKey, joinSecurityGroup, Documented, page})
	for _, of := range []struct {
		scope   Scope
		profile string
	}{{ScopeScaleSet, machineProfile + "/networkProfile"}, {ScopeScaleSetVM, instanceProfile}} {
		nics := of.profile + "/" + profileNICs
		list = append(list,
			LinkedCheck{of.scope, nics + "/" + ipConfigKind.collection + "/subnet", joinSubnet, Assumed, like},
			LinkedCheck{of.scope, nics + "/" + ipConfigKind.collection + "/" + nicPools, joinPool, Assumed, like},
			LinkedCheck{of.scope, nics + "/" + securityGroupKey, joinSecurityGroup, Assumed, like},
		)
	}
	return list
}

func poolLinkedChecks() []LinkedCheck {
	var list []LinkedCheck
	for _, j := range []LinkedCheck{
		{Property: "virtualNetwork", Action: poolNetwork, Certainty: Observed, Source: "public notes; AKS identity page"},
		{Property: addresses + "/virtualNetwork", Action: poolNetwork, Certainty: Assumed, Source: "by analogy with the pool's network"},
		{Property: addresses + "/subnet", Action: poolSubnet, Certainty: Assumed, Source: "the action's description"},
		{Property: addresses + "/loadBalancerFrontendIPConfiguration", Action: joinFrontend, Certainty: Assumed, Source: "the action's description"},
	} {
		j.Scope = ScopePool
		list = append(list, j)
		j.Scope, j.Property = ScopeLoadBalancer, pools+"/"+j.Property
		if j.Certainty == Observed {
			j.Certainty, j.Source = Assumed, "by analogy with a write of the pool alone"
		}
		list = append(list, j)
	}
	return list
}

var linkedChecksByScope = func() map[Scope][]LinkedCheck {
	by := map[Scope][]LinkedCheck{}
	for _, j := range LinkedChecks() {
		by[j.Scope] = append(by[j.Scope], j)
	}
	return by
}()

func (x *exchange) requiredPermissions() []permission {
	r := x.route
	if r.problem != nil {
		return nil
	}
	if r.target != targetResource {
		return []permission{r.groupPermission()}
	}
	if r.interfaces {
		return []permission{{r.id.typeName() + "/" + interfacesSegment + "/read", r.id.String()}}
	}
	if r.location != "" {
		return []permission{{r.namespace + "/locations/" + usagesSegment + "/read", "/subscriptions/" + r.subscription}}
	}
	switch r.kind {
	case KindPoll:
		kind := "operations"
		if r.result {
			kind = "operationResults"
		}
		return []permission{{r.namespace + "/locations/" + kind + "/read", x.req.URL.Path}}
	case KindList:
		return []permission{r.listPermission()}
	case KindGet:
		return []permission{{r.id.typeName() + "/read", r.id.String()}}
	case KindDelete:
		return []permission{{r.id.typeName() + "/delete", r.id.String()}}
	case KindAction:
		return []permission{{r.id.typeName() + "/" + r.action.permission + "/action", r.id.String()}}
	case KindPut, KindPatch:
		own := permission{r.id.typeName() + "/write", r.id.String()}
		return append([]permission{own}, x.linkedPermissions()...)
	}
	return nil
}

func (r route) listPermission() permission {
	if r.list != nil {
		return permission{r.id.withChild(r.list, "").typeName() + "/read", r.id.String()}
	}
	if parent, below := r.id.parentID(); below {
		return permission{r.id.typeName() + "/read", parent.String()}
	}
	scope := "/subscriptions/" + r.subscription
	if r.id.group != "" {
		scope += "/resourceGroups/" + r.id.group
	}
	return permission{r.id.typeName() + "/read", scope + "/providers/" + r.namespace}
}

func (x *exchange) linkedPermissions() []permission {
	body, err := x.decodeObject()
	if err != nil {
		return nil
	}
	scope := x.route.id.root.scope
	if child := x.route.id.child; child != nil {
		scope = child.scope
	}
	var list []permission
	for _, j := range linkedChecksByScope[scope] {
		for _, to := range objectsAt(body, strings.Split(j.Property, "/")) {
			if ref := stringField(to, "id"); ref != "" {
				list = append(list, permission{j.Action, ref})
			}
		}
	}
	return list
}

func objectsAt(from fields, path []string) []fields {
	if len(path) == 0 {
		return []fields{from}
	}
	if props := propertyFields(from); props != nil {
		from = props
	}
	next := objectList(from, path[0])
	if o := objectField(from, path[0]); o != nil {
		next = []fields{o}
	}
	var list []fields
	for _, o := range next {
		list = append(list, objectsAt(o, path[1:])...)
	}
	return list
}

// LinkedChecksMarkdown renders the checks for the documentation.
func LinkedChecksMarkdown() string {
	var b strings.Builder
	b.WriteString("| PUT of | that names | requires | Is | Source |\n|---|---|---|---|---|\n")
	for _, j := range LinkedChecks() {
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | %s | %s |\n", j.Scope.markdown(), j.Property, j.Action, j.Certainty, j.Source)
	}
	return b.String()
}
