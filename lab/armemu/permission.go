// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"strings"
)

// asked is a required Azure RBAC action and its scope.
type asked struct{ action, scope string }

// Join is a linked access check: a write with a reference to another resource also requires an
// action there, even if the reference is not new.
type Join struct {
	On Scope
	// Property is the path of the reference below properties; arrays match every element.
	Property string
	Action   string
	Tag      Tag // how certain it is
	Source   string
}

const (
	joinPublicIP  = network + "/publicIPAddresses/join/action"
	joinPrefix    = network + "/publicIPPrefixes/join/action"
	joinSubnet    = network + "/virtualNetworks/subnets/join/action"
	joinFrontend  = network + "/loadBalancers/frontendIPConfigurations/join/action"
	joinGroup     = network + "/applicationSecurityGroups/joinNetworkSecurityRule/action"
	joinPlan      = network + "/ddosProtectionPlans/join/action"
	joinPool      = network + "/loadBalancers/backendAddressPools/join/action"
	joinNatRule   = network + "/loadBalancers/inboundNatRules/join/action"
	joinInterface = network + "/networkInterfaces/join/action"
	joinGuard     = network + "/networkSecurityGroups/join/action"
	poolNetwork   = network + "/virtualNetworks/joinLoadBalancer/action"
	poolSubnet    = network + "/virtualNetworks/subnets/joinLoadBalancer/action"
)

// Joins returns the linked access checks.
func Joins() []Join {
	list := []Join{
		{ScopeLoadBalancer, frontends + "/publicIPAddress", joinPublicIP, Observed, "an answer in Microsoft Q&A, question 49223"},
		{ScopeLoadBalancer, frontends + "/publicIPPrefix", joinPrefix, Documented, "AKS service principal page, on outbound addresses"},
		{ScopeLoadBalancer, frontends + "/subnet", joinSubnet, Observed, "error bodies in public notes"},
		{ScopeLoadBalancer, frontends + "/gatewayLoadBalancer", joinFrontend, Observed, "Azure/azure-cli#28705"},
		{ScopePublicIP, "publicIPPrefix", joinPrefix, Observed, "kubernetes-sigs/cloud-provider-azure#7500"},
		{ScopePublicIP, "ddosSettings/ddosProtectionPlan", joinPlan, Assumed, "by analogy with virtual networks"},
		{ScopeSecurityGroup, securityRules + "/sourceApplicationSecurityGroups", joinGroup, Documented, "network security group management page"},
		{ScopeSecurityGroup, securityRules + "/destinationApplicationSecurityGroups", joinGroup, Documented, "network security group management page"},
	}
	list = append(list, poolJoins()...)
	list = append(list,
		Join{ScopePrivateLinkService, publishedFrontends, joinFrontend, Assumed, "the action's description"},
		Join{ScopePrivateLinkService, linkConfigKind.collection + "/subnet", joinSubnet, Assumed, "by analogy with network interfaces"})
	return append(list, memberJoins()...)
}

// memberJoins returns the checks for backend resources, which Weir does not write.
func memberJoins() []Join {
	const page, like = "network interface page, permissions", "by analogy with network interfaces"
	list := []Join{
		{ScopeVirtualMachine, "networkProfile/networkInterfaces", joinInterface, Documented, page},
	}
	for _, j := range []struct{ property, action string }{
		{"subnet", joinSubnet},
		{nicPools, joinPool},
		{"loadBalancerInboundNatRules", joinNatRule},
		{"publicIPAddress", joinPublicIP},
	} {
		list = append(list, Join{ScopeNetworkInterface, ipConfigKind.collection + "/" + j.property, j.action, Documented, page})
	}
	list = append(list, Join{ScopeNetworkInterface, guardedBy, joinGuard, Documented, page})
	for _, of := range []struct {
		scope   Scope
		profile string
	}{{ScopeScaleSet, machineProfile + "/networkProfile"}, {ScopeScaleSetVM, profileOfOne}} {
		nics := of.profile + "/" + nicsOfProfile
		list = append(list,
			Join{of.scope, nics + "/" + ipConfigKind.collection + "/subnet", joinSubnet, Assumed, like},
			Join{of.scope, nics + "/" + ipConfigKind.collection + "/" + nicPools, joinPool, Assumed, like},
			Join{of.scope, nics + "/" + guardedBy, joinGuard, Assumed, like},
		)
	}
	return list
}

// poolJoins returns the checks for a pool, written alone or with its load balancer.
func poolJoins() []Join {
	var list []Join
	for _, j := range []Join{
		{Property: "virtualNetwork", Action: poolNetwork, Tag: Observed, Source: "error bodies in public notes; AKS identity page"},
		{Property: addresses + "/virtualNetwork", Action: poolNetwork, Tag: Assumed, Source: "by analogy with the pool's network"},
		{Property: addresses + "/subnet", Action: poolSubnet, Tag: Assumed, Source: "the action's description"},
		{Property: addresses + "/loadBalancerFrontendIPConfiguration", Action: joinFrontend, Tag: Assumed, Source: "the action's description"},
	} {
		j.On = ScopePool
		list = append(list, j)
		j.On, j.Property = ScopeLoadBalancer, pools+"/"+j.Property
		if j.Tag == Observed {
			j.Tag, j.Source = Assumed, "by analogy with a write of the pool alone"
		}
		list = append(list, j)
	}
	return list
}

// joinsOf indexes the linked access checks by the written resource.
var joinsOf = func() map[Scope][]Join {
	by := map[Scope][]Join{}
	for _, j := range Joins() {
		by[j.On] = append(by[j.On], j)
	}
	return by
}()

// asks returns the permissions that a request requires, its own action first; none for an unknown
// path.
func (x *exchange) asks() []asked {
	r := x.route
	if r.problem != nil {
		return nil
	}
	if r.about != aResource {
		return []asked{r.asksGroup()}
	}
	if r.interfaces {
		return []asked{{r.id.typeName() + "/" + interfacesOfSet + "/read", r.id.String()}}
	}
	if r.location != "" {
		return []asked{{r.namespace + "/locations/" + usagesOf + "/read", "/subscriptions/" + r.subscription}}
	}
	switch r.kind {
	case KindPoll:
		kind := "operations"
		if r.result {
			kind = "operationResults"
		}
		return []asked{{r.namespace + "/locations/" + kind + "/read", x.req.URL.Path}}
	case KindList:
		return []asked{r.asksList()}
	case KindGet:
		return []asked{{r.id.typeName() + "/read", r.id.String()}}
	case KindDelete:
		return []asked{{r.id.typeName() + "/delete", r.id.String()}}
	case KindAction:
		return []asked{{r.id.typeName() + "/" + r.action.permission + "/action", r.id.String()}}
	case KindPut, KindPatch:
		own := asked{r.id.typeName() + "/write", r.id.String()}
		return append([]asked{own}, x.asksJoins()...)
	}
	return nil
}

func (r route) asksList() asked {
	if r.list != nil {
		return asked{r.id.withChild(r.list, "").typeName() + "/read", r.id.String()}
	}
	if parent, below := r.id.above(); below {
		return asked{r.id.typeName() + "/read", parent.String()}
	}
	scope := "/subscriptions/" + r.subscription
	if r.id.group != "" {
		scope += "/resourceGroups/" + r.id.group
	}
	return asked{r.id.typeName() + "/read", scope + "/providers/" + r.namespace}
}

// asksJoins returns the permissions for a body's references.
func (x *exchange) asksJoins() []asked {
	body, err := x.object()
	if err != nil {
		return nil
	}
	scope := x.route.id.root.scope
	if child := x.route.id.child; child != nil {
		scope = child.scope
	}
	var list []asked
	for _, j := range joinsOf[scope] {
		for _, to := range follow(body, strings.Split(j.Property, "/")) {
			if ref := text(to, "id"); ref != "" {
				list = append(list, asked{j.Action, ref})
			}
		}
	}
	return list
}

// follow returns the objects at a path of properties.
func follow(from fields, path []string) []fields {
	if len(path) == 0 {
		return []fields{from}
	}
	if props := properties(from); props != nil {
		from = props
	}
	next := objects(from, path[0])
	if o := object(from, path[0]); o != nil {
		next = []fields{o}
	}
	var list []fields
	for _, o := range next {
		list = append(list, follow(o, path[1:])...)
	}
	return list
}

// JoinsMarkdown renders the linked access checks for the reference documentation.
func JoinsMarkdown() string {
	var b strings.Builder
	b.WriteString("| PUT of | that names | asks for | Is | Source |\n|---|---|---|---|---|\n")
	for _, j := range Joins() {
		fmt.Fprintf(&b, "| %s | `%s` | `%s` | %s | %s |\n", j.On, j.Property, j.Action, j.Tag, j.Source)
	}
	return b.String()
}
