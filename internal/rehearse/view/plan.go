// SPDX-License-Identifier: Apache-2.0

// Package view shows people and machines what would change in Azure. It is pure: what
// was rehearsed goes in, and text comes out.
//
//	plan.go      what is shown, and the names that machines read
//	outcome.go   the plan of a whole cluster
//	compare.go   one resource before and after
//	fields.go    what is shown of each part
//	links.go     Private Link Services and subnets
//	losses.go    addresses that would be taken away
//	limits.go    use of Azure's limits
//	text.go      for people
package view

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/rehearse"
)

// Plan is what would change in Azure.
type Plan struct {
	// Changes counts the resources that would change.
	Changes int `json:"changes"`
	// Resources are those that would, in the order of their kinds and ids.
	Resources []Resource `json:"resources"`
	// PoolWrites counts the pools of which members would be written: each takes a write of its
	// own, beside those of the resources.
	PoolWrites int `json:"poolWrites"`
	// Services are those that were planned, by name.
	Services []Service `json:"services"`
	// Pools are the BackendPools whose pool stays as it is, whatever its members should be.
	Pools []Pool `json:"backendPoolsLeft,omitempty"`
	// Notes say what the plan does not know.
	Notes []string `json:"notes,omitempty"`
	// Limits are how much of Azure's limits the load balancers and security groups use before and after.
	Limits []rehearse.Limit `json:"limits,omitempty"`
	// Losses are the addresses that would be taken away.
	Losses []Loss `json:"losses,omitempty"`
	// Stops say why the controller would not start, or not do all this by itself.
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

// Resource is a resource of Azure that would change.
type Resource struct {
	Kind          string      `json:"kind"`
	Name          string      `json:"name"`
	ResourceGroup string      `json:"resourceGroup"`
	ID            string      `json:"id"`
	Action        plan.Action `json:"action"`
	// Service is whose it is, as far as its name tells.
	Service string  `json:"service,omitempty"`
	Fields  []Field `json:"fields,omitempty"`
	Parts   []Part  `json:"parts,omitempty"`
}

// Part is a part of a resource: a frontend, pool, probe, rule or securityRule.
type Part struct {
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	Action  plan.Action `json:"action"`
	Service string      `json:"service,omitempty"`
	Fields  []Field     `json:"fields,omitempty"`
	// Members are those of a pool that would change.
	Members []Member `json:"members,omitempty"`
}

// Field is a field that would change: from Was to Is, which are nil where there is nothing,
// or, of a list, by what is Added and Removed.
type Field struct {
	Name    string   `json:"name"`
	Was     *string  `json:"was,omitempty"`
	Is      *string  `json:"is,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// Member is an entry of a pool that would change.
type Member struct {
	Action plan.Action `json:"action"`
	// Address is empty for an entry that is a network interface, or a frontend of another
	// load balancer.
	Address string `json:"address,omitempty"`
	Name    string `json:"name,omitempty"`
	// AdminState is what it would be; WasAdminState what it is, where that differs.
	AdminState    string `json:"adminState,omitempty"`
	WasAdminState string `json:"wasAdminState,omitempty"`
}

// Service is a Service that was planned.
type Service struct {
	// Service is its namespace and name, with a slash.
	Service string `json:"service"`
	// LoadBalancer is where it belongs; empty if it leaves.
	LoadBalancer string   `json:"loadBalancer,omitempty"`
	Addresses    []string `json:"addresses,omitempty"`
	// Refused says why Azure would not hold what it wants.
	Refused string `json:"refused,omitempty"`
	// NoEffect names restrictions that keep nobody out, and says why.
	NoEffect string `json:"restrictionsWithoutEffect,omitempty"`
	// Failed says what kept the rest of it from being planned.
	Failed string `json:"failed,omitempty"`
	Note   string `json:"note,omitempty"`
	// Kept says why all that it has stays as it is, though it is not served.
	Kept string `json:"kept,omitempty"`
}

// Pool is a BackendPool whose pool stays as it is.
type Pool struct {
	BackendPool string `json:"backendPool"`
	Why         string `json:"why"`
}

// Of makes a plan of what was rehearsed. owners are the Services by the first part of the
// names of what is theirs.
func Of(d rehearse.Differences, owners map[string]string) Plan {
	v := speller{owners: owners, given: d.Given}
	p := Plan{Resources: []Resource{}, Services: []Service{}, PoolWrites: d.Pools}
	for _, c := range d.Balancers {
		p.add(v.balancer(c))
	}
	for _, c := range d.PublicIPs {
		p.add(v.publicIP(c))
	}
	p.loses(v, d.PublicIPs)
	for _, c := range d.Groups {
		p.add(v.securityGroup(c))
	}
	for _, c := range d.Links {
		p.add(link(c))
	}
	for _, c := range d.Subnets {
		p.add(subnet(c))
	}
	return p
}

func (p *Plan) add(r Resource) {
	if r.Action != "" {
		p.Resources = append(p.Resources, r)
		p.Changes++
	}
}

// Serve adds a Service, with its addresses, some of which Azure has yet to choose.
func (p *Plan) Serve(s Service, addresses []netip.Addr, given map[netip.Addr]string) {
	v := speller{given: given}
	for _, a := range addresses {
		if a.IsValid() {
			s.Addresses = append(s.Addresses, v.address(a.String()))
		}
	}
	p.Services = append(p.Services, s)
	slices.SortFunc(p.Services, func(a, b Service) int { return strings.Compare(a.Service, b.Service) })
}

// Refused counts the Services that are refused.
func (p Plan) Refused() int {
	n := 0
	for _, s := range p.Services {
		if s.Refused != "" {
			n++
		}
	}
	return n
}

// JSON is the plan for machines. People may look at it, too: what would steer their terminal
// is escaped, of which encoding/json does the half.
func (p Plan) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	safe := make([]byte, 0, len(text)+1)
	for _, r := range string(text) {
		if r != '\n' && hidden(r) {
			safe = fmt.Appendf(safe, `\u%04x`, r)
			continue
		}
		safe = utf8.AppendRune(safe, r)
	}
	return append(safe, '\n'), err
}
