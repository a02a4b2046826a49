// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"strings"
)

// recorded is the source of Azure's responses to bad requests.
const recorded = "recordings of Azure/azure-xplat-cli"

// Tag is how certain a statement about Azure is.
type Tag string

// The degrees of certainty.
const (
	Documented Tag = "documented" // by Azure's documentation or API specification
	Observed   Tag = "observed"   // in a published response of Azure
	Assumed    Tag = "assumed"    // no public source; a choice of this emulator
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

// Rule is one entry of the validation table. A violation returns status 400 and changes nothing.
type Rule struct {
	Name     string
	On       Kind // KindPut or KindDelete
	Scopes   []Scope
	Requires string // the requirement, in one sentence
	Code     string // of the ARM error
	Under    string // ARM error with Code in its details; empty if Code is the error itself
	CodeTag  Tag    // how certain the code is
	Tag      Tag    // how certain the rule is
	Source   string
	// check returns the violation, or "".
	check func(*subject) string
}

// proposal is the state requested by a write, before validation.
type proposal struct {
	e      *Emulator
	id     resourceID
	on     Kind
	action *action // if on is KindAction
	before fields  // current root body; nil if none
	root   fields  // proposed root body
	// sent is the stored form of the request body alone.
	sent fields
	// lists reports whether a pool's body has a list of addresses, even if empty.
	lists bool
	// repeats reports whether the request changes nothing.
	repeats bool
}

// subject is one resource of a proposal, as validated by a rule.
type subject struct {
	*proposal
	self  resourceID
	scope Scope
	body  fields
}

// Rules returns the validation table in order of evaluation.
func Rules() []Rule {
	rules := nameRules()
	for _, more := range [][]Rule{
		poolRules(), memberRules(), loadBalancerRules(), frontendRules(), privateIPRules(), balancingRules(), probeRules(),
		nicLimitRules(), publicIPRules(), publicIPFixedRules(), publicIPPrefixRules(), networkInterfaceRules(), basicRules(), networkRules(), privateLinkRules(), securityGroupRules(), deleteRules(), privateLinkStays(),
	} {
		rules = append(rules, more...)
	}
	return rules
}

// table caches Rules.
var table = Rules()

func validate(p *proposal) *Problem {
	subjects := p.subjects()
	for i := range table {
		rule := &table[i]
		for _, s := range subjects {
			if !rule.looksAt(s) {
				continue
			}
			if wrong := rule.check(s); wrong != "" {
				return rule.problem(wrong)
			}
		}
	}
	return nil
}

func (r *Rule) problem(wrong string) *Problem {
	if r.Under == "" {
		return &Problem{Status: http.StatusBadRequest, Code: r.Code, Message: wrong}
	}
	return &Problem{
		Status: http.StatusBadRequest, Code: r.Under, Message: "Cannot parse the request.",
		Details: []Detail{{Code: r.Code, Message: wrong}},
	}
}

func (r *Rule) looksAt(s *subject) bool {
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
func (p *proposal) subjects() []*subject {
	if p.id.child != nil {
		return []*subject{{proposal: p, self: p.id, scope: p.id.child.scope, body: findChild(p.root, p.id)}}
	}
	out := []*subject{{proposal: p, self: p.id, scope: p.id.root.scope, body: p.root}}
	if p.on == KindDelete {
		return out
	}
	for _, k := range p.id.root.children {
		if !k.addressable {
			continue
		}
		for _, c := range objects(properties(p.root), k.collection) {
			out = append(out, &subject{proposal: p, self: p.id.withChild(k, text(c, "name")), scope: k.scope, body: c})
		}
	}
	return out
}

func (s *subject) addresses() []fields { return objects(properties(s.body), addresses) }

// exists reports whether the emulator has a resource with this ID.
func (e *Emulator) exists(id string) bool {
	parsed, err := parseID(id)
	if err != nil {
		return false
	}
	agg := e.aggregates[parsed.rootKey()]
	return agg != nil && agg.has(parsed)
}

func sku(root fields) string {
	if name := text(object(root, "sku"), "name"); name != "" {
		return name
	}
	return "Basic"
}

func isNIC(addr fields) bool {
	return text(object(properties(addr), "networkInterfaceIPConfiguration"), "id") != ""
}

func isFrontend(addr fields) bool {
	return text(object(properties(addr), "loadBalancerFrontendIPConfiguration"), "id") != ""
}

// RulesMarkdown renders the validation table for the reference documentation.
func RulesMarkdown() string {
	var b strings.Builder
	b.WriteString("| Rule | On | Requires | Rule is | Error code | Code is | Source |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for _, r := range Rules() {
		var scopes []string
		for _, s := range r.Scopes {
			scopes = append(scopes, string(s))
		}
		fmt.Fprintf(&b, "| `%s` | %s of %s | %s | %s | `%s` | %s | %s |\n", r.Name,
			strings.ToUpper(string(r.On)), strings.Join(scopes, ", "), r.Requires, r.Tag, r.Code, r.CodeTag, r.Source)
	}
	return b.String()
}
