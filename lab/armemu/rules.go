// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strings"
)

const recordedSource = "azure-xplat-cli recordings"

// Certainty is how certain a statement about Azure is.
type Certainty string

// The degrees of certainty.
const (
	Documented Certainty = "documented" // by Azure's documentation or API specification
	Observed   Certainty = "observed"   // in a published response of Azure
	Assumed    Certainty = "assumed"    // no public source; a choice of this emulator
)

// Scope is the resource type that a rule applies to.
type Scope string

// The scopes.
const (
	ScopeLoadBalancer       Scope = "load balancer"
	ScopePool               Scope = "backend pool"
	ScopeVirtualNetwork     Scope = "virtual network"
	ScopeSubnet             Scope = "subnet"
	ScopePublicIP           Scope = "public IP address"
	ScopePublicIPPrefix     Scope = "public IP prefix"
	ScopeNetworkInterface   Scope = "network interface"
	ScopeSecurityGroup      Scope = "network security group"
	ScopePrivateLinkService Scope = "private link service"
	ScopeConnection         Scope = "private endpoint connection"
	ScopeVirtualMachine     Scope = "virtual machine"
	ScopeScaleSet           Scope = "scale set"
	ScopeScaleSetVM         Scope = "scale set's virtual machine"
)

// Rule is one entry of the validation table. A violation returns status 400.
type Rule struct {
	Name          string
	On            Kind // KindPut or KindDelete
	Scopes        []Scope
	Requires      string    // the requirement, in one sentence
	Code          string    // of the ARM error
	Under         string    // set if Code is only in the details
	CodeCertainty Certainty // how certain the code is
	Certainty     Certainty // how certain the rule is
	Source        string
	// check returns the violation, or "".
	check func(*validationTarget) string
}

// proposal is the state requested by a write.
type proposal struct {
	e      *Emulator
	id     resourceID
	on     Kind
	action *action // if on is KindAction
	before fields  // current root body; nil if none
	root   fields  // proposed root body
	// requestBody is the request body alone.
	requestBody fields
	// hasAddressList: the body has a list of addresses, even if empty.
	hasAddressList bool
	isUnchanged    bool
}

// validationTarget is a resource to validate.
type validationTarget struct {
	*proposal
	self  resourceID
	scope Scope
	body  fields
}

// Rules returns the validation table in order.
func Rules() []Rule {
	rules := nameRules()
	for _, more := range [][]Rule{
		poolRules(), memberRules(), loadBalancerRules(), frontendRules(), privateIPRules(), balancingRules(), probeRules(),
		nicLimitRules(), backendPortRules(), healthProbeRules(), globalRules(), publicIPRules(), publicIPChangeRules(), publicIPPrefixRules(), zoneRules(), edgeZoneRules(), networkInterfaceRules(), basicRules(), availabilitySetRules(), networkRules(), privateLinkRules(), securityGroupRules(), deleteRules(), privateLinkUseRules(),
	} {
		rules = append(rules, more...)
	}
	return rules
}

var ruleTable = Rules()

func validate(p *proposal) *Problem {
	subjects := p.subjects()
	for i := range ruleTable {
		rule := &ruleTable[i]
		for _, s := range subjects {
			if !rule.appliesTo(s) {
				continue
			}
			if wrong := rule.check(s); wrong != "" {
				return rule.toProblem(wrong)
			}
		}
	}
	return nil
}

func (r *Rule) toProblem(wrong string) *Problem {
	if r.Under == "" {
		return &Problem{Status: http.StatusBadRequest, Code: r.Code, Message: wrong}
	}
	return &Problem{
		Status: http.StatusBadRequest, Code: r.Under, Message: "Cannot parse the request.",
		Details: []Detail{{Code: r.Code, Message: wrong}},
	}
}

func (r *Rule) appliesTo(s *validationTarget) bool {
	if r.On != s.on {
		return false
	}
	for _, scope := range r.Scopes {
		if scope == s.scope {
			return true
		}
	}
	return false
}

// subjects: a write of a root also writes its addressable children.
func (p *proposal) subjects() []*validationTarget {
	if p.id.child != nil {
		return []*validationTarget{{proposal: p, self: p.id, scope: p.id.child.scope, body: findChild(p.root, p.id)}}
	}
	out := []*validationTarget{{proposal: p, self: p.id, scope: p.id.root.scope, body: p.root}}
	if p.on == KindDelete {
		return out
	}
	for _, k := range p.id.root.children {
		if !k.addressable {
			continue
		}
		for _, c := range objectList(propertyFields(p.root), k.collection) {
			out = append(out, &validationTarget{proposal: p, self: p.id.withChild(k, stringField(c, "name")), scope: k.scope, body: c})
		}
	}
	return out
}

func (v *validationTarget) addresses() []fields { return objectList(propertyFields(v.body), addresses) }

func (e *Emulator) resourceExists(id string) bool {
	parsed, err := parseID(id)
	if err != nil {
		return false
	}
	agg := e.aggregates[parsed.rootKey()]
	return agg != nil && agg.hasResource(parsed)
}

func skuName(root fields) string {
	if name := stringField(objectField(root, "sku"), "name"); name != "" {
		return name
	}
	return "Basic"
}

func isBasic(root fields) bool { return sameName(skuName(root), "Basic") }

func isNIC(addr fields) bool {
	return stringField(objectField(propertyFields(addr), "networkInterfaceIPConfiguration"), "id") != ""
}

func isFrontend(addr fields) bool {
	return stringField(objectField(propertyFields(addr), "loadBalancerFrontendIPConfiguration"), "id") != ""
}

// RulesMarkdown renders the table for the documentation.
func RulesMarkdown() string {
	var b strings.Builder
	b.WriteString("| Rule | On | Requires | Rule is | Error code | Code is | Source |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, r := range Rules() {
		on := ""
		if r.On == KindDelete {
			on = "DELETE "
		}
		var scopes []string
		for _, s := range r.Scopes {
			scopes = append(scopes, s.markdown())
		}
		fmt.Fprintf(&b, "| `%s` | %s%s | %s | %s | `%s` | %s | %s |\n", r.Name,
			on, strings.Join(scopes, ", "), r.Requires, r.Certainty, r.Code, r.CodeCertainty, r.Source)
	}
	return b.String()
}

// markdown returns the scope as Azure's resource type, without its provider.
func (s Scope) markdown() string {
	for _, k := range roots {
		if k.scope == s && k.parent != nil {
			return "`" + k.parent.collection + "/" + k.collection + "`"
		}
		if k.scope == s {
			return "`" + k.collection + "`"
		}
		for _, child := range k.children {
			if child.scope == s {
				return "`" + child.collection + "`"
			}
		}
	}
	return string(s)
}
