// SPDX-License-Identifier: Apache-2.0

// Package report formats the changes that a rehearsal found, as text and JSON. It is pure.
package report

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/loadbalancer/plan"
)

// Plan is what would change in Azure.
type Plan struct {
	// Changes counts resources.
	Changes int `json:"changes"`
	// Resources are sorted by kind and ID.
	Resources []Resource `json:"resources"`
	// PoolWrites counts pools with changed members, which need a write each.
	PoolWrites int `json:"poolWrites"`
	// Services are sorted by name.
	Services []Service `json:"services"`
	// Pools are left unchanged.
	Pools []Pool `json:"backendPoolsLeft,omitempty"`
	// Notes state what the plan does not know.
	Notes []string `json:"notes,omitempty"`
	// Limits show the use of Azure's limits before and after.
	Limits []plan.LimitUsage `json:"limits,omitempty"`
	Losses []Loss            `json:"losses,omitempty"`
	// Stops are why the controller would not start, or not do all of this.
	Stops []string `json:"stops,omitempty"`
}

// The kinds of resources.
const (
	LoadBalancer  = "loadBalancer"
	PublicIP      = "publicIP"
	SecurityGroup = "securityGroup"

	PrivateLinkService = "privateLinkService"
	Subnet             = "subnet"
)

// Resource is an Azure resource to change.
type Resource struct {
	Kind          string    `json:"kind"`
	Name          string    `json:"name"`
	ResourceGroup string    `json:"resourceGroup"`
	ID            string    `json:"id"`
	Action        lb.Action `json:"action"`
	// Service is known by the resource's name.
	Service string  `json:"service,omitempty"`
	Fields  []Field `json:"fields,omitempty"`
	Parts   []Part  `json:"parts,omitempty"`
}

// Part is a part of a resource: a frontend, pool, probe, rule or securityRuleFields.
type Part struct {
	Kind    string    `json:"kind"`
	Name    string    `json:"name"`
	Action  lb.Action `json:"action"`
	Service string    `json:"service,omitempty"`
	Fields  []Field   `json:"fields,omitempty"`
	Members []Member  `json:"members,omitempty"`
}

// Field is a changed field. Was and Is may be nil; lists use Added and Removed.
type Field struct {
	Name    string   `json:"name"`
	Was     *string  `json:"was,omitempty"`
	Is      *string  `json:"is,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// Member is a changed entry.
type Member struct {
	Action lb.Action `json:"action"`
	// Address is empty for network interfaces and other load balancers' frontends.
	Address string `json:"address,omitempty"`
	Name    string `json:"name,omitempty"`
	// WasAdminState is set if it changes.
	AdminState    string `json:"adminState,omitempty"`
	WasAdminState string `json:"wasAdminState,omitempty"`
}

// Service is a planned Service.
type Service struct {
	// Service is namespace/name.
	Service string `json:"service"`
	// LoadBalancer is empty if it is removed.
	LoadBalancer string   `json:"loadBalancer,omitempty"`
	Addresses    []string `json:"addresses,omitempty"`
	// Refused is why Azure would reject it.
	Refused string `json:"refused,omitempty"`
	// NoEffect describes source restrictions without effect.
	NoEffect string `json:"restrictionsWithoutEffect,omitempty"`
	// Failed is why the plan is incomplete.
	Failed string `json:"failed,omitempty"`
	Note   string `json:"note,omitempty"`
	// Kept is why resources of an unserved Service are kept.
	Kept string `json:"kept,omitempty"`
}

// Pool is a BackendPool with a pool that is left unchanged.
type Pool struct {
	BackendPool string `json:"backendPool"`
	Why         string `json:"why"`
}

// NewPlan returns the plan of d. owners maps resource name prefixes to Services.
func NewPlan(d dryrun.Changes, owners map[string]string) Plan {
	v := formatter{owners: owners, placeholders: d.Placeholders}
	p := Plan{Resources: []Resource{}, Services: []Service{}, PoolWrites: d.PoolWrites}
	for _, c := range d.LoadBalancers {
		p.addResource(v.loadBalancerChange(c))
	}
	for _, c := range d.PublicIPs {
		p.addResource(v.publicIPChange(c))
	}
	p.addDeletedIPs(v, d.PublicIPs)
	for _, c := range d.Groups {
		p.addResource(v.securityGroupChange(c))
	}
	for _, c := range d.Links {
		p.addResource(linkChange(c))
	}
	for _, c := range d.Subnets {
		p.addResource(subnetChange(c))
	}
	return p
}

func (p *Plan) addResource(r Resource) {
	if r.Action != "" {
		p.Resources = append(p.Resources, r)
		p.Changes++
	}
}

// AddService adds a Service; given describes placeholders.
func (p *Plan) AddService(s Service, addresses []netip.Addr, given map[netip.Addr]string) {
	v := formatter{placeholders: given}
	for _, a := range addresses {
		if a.IsValid() {
			s.Addresses = append(s.Addresses, v.formatAddress(a.String()))
		}
	}
	p.Services = append(p.Services, s)
	slices.SortFunc(p.Services, func(a, b Service) int { return strings.Compare(a.Service, b.Service) })
}

// CountRejected counts rejected Services.
func (p Plan) CountRejected() int {
	n := 0
	for _, s := range p.Services {
		if s.Refused != "" {
			n++
		}
	}
	return n
}

// FormatJSON also escapes terminal control characters that encoding/json leaves.
func (p Plan) FormatJSON() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	safe := make([]byte, 0, len(text)+1)
	for _, r := range string(text) {
		if r != '\n' && isHidden(r) {
			safe = fmt.Appendf(safe, `\u%04x`, r)
			continue
		}
		safe = utf8.AppendRune(safe, r)
	}
	return append(safe, '\n'), err
}
