// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
)

// Report is what would change in Azure.
type Report struct {
	// Changes counts resources.
	Changes int `json:"changes"`
	// Resources are sorted by kind and ID.
	Resources []ResourceReport `json:"resources"`
	// PoolWrites counts pools with changed members, which need a write each.
	PoolWrites int `json:"poolWrites"`
	// Services are sorted by name.
	Services []ServiceReport `json:"services"`
	// Pools are left unchanged.
	Pools []PoolReport `json:"backendPoolsLeft,omitempty"`
	// Notes state what the plan does not know.
	Notes []string `json:"notes,omitempty"`
	// Limits show the use of Azure's limits before and after.
	Limits []plan.LimitUsage `json:"limits,omitempty"`
	Losses []LossReport      `json:"losses,omitempty"`
	// Stops are why the controller would not start, or not do all of this.
	Stops []string `json:"stops,omitempty"`
}

// The kinds of resources.
const (
	ReportLoadBalancer  = "loadBalancer"
	ReportPublicIP      = "publicIP"
	ReportSecurityGroup = "securityGroup"

	ReportPrivateLinkService = "privateLinkService"
	ReportSubnet             = "subnet"
)

// ResourceReport is an Azure resource to change.
type ResourceReport struct {
	Kind          string    `json:"kind"`
	Name          string    `json:"name"`
	ResourceGroup string    `json:"resourceGroup"`
	ID            string    `json:"id"`
	Action        lb.Action `json:"action"`
	// Service is known by the resource's name.
	Service string        `json:"service,omitempty"`
	Fields  []FieldReport `json:"fields,omitempty"`
	Parts   []PartReport  `json:"parts,omitempty"`
}

// PartReport is a part of a resource: a frontend, pool, probe, rule or securityRuleFields.
type PartReport struct {
	Kind    string         `json:"kind"`
	Name    string         `json:"name"`
	Action  lb.Action      `json:"action"`
	Service string         `json:"service,omitempty"`
	Fields  []FieldReport  `json:"fields,omitempty"`
	Members []MemberReport `json:"members,omitempty"`
}

// FieldReport is a changed field. Was and Is may be nil; lists use Added and Removed.
type FieldReport struct {
	Name    string   `json:"name"`
	Was     *string  `json:"was,omitempty"`
	Is      *string  `json:"is,omitempty"`
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
}

// MemberReport is a changed entry.
type MemberReport struct {
	Action lb.Action `json:"action"`
	// Address is empty for network interfaces and other load balancers' frontends.
	Address    string `json:"address,omitempty"`
	Name       string `json:"name,omitempty"`
	AdminState string `json:"adminState,omitempty"`
	// WasAdminState is set if it changes.
	WasAdminState string `json:"wasAdminState,omitempty"`
}

// ServiceReport is a planned Service.
type ServiceReport struct {
	// Service is namespace/name.
	Service string `json:"service"`
	// LoadBalancer is empty if the Service is removed.
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

// PoolReport is a BackendPool with a pool that is left unchanged.
type PoolReport struct {
	BackendPool string `json:"backendPool"`
	Why         string `json:"why"`
}

// NewReport returns the plan of d. owners maps resource name prefixes to Services.
func NewReport(d Changes, owners map[string]string) Report {
	v := formatter{owners: owners, placeholders: d.Placeholders}
	p := Report{Resources: []ResourceReport{}, Services: []ServiceReport{}, PoolWrites: d.PoolWrites}
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

func (report *Report) addResource(r ResourceReport) {
	if r.Action != "" {
		report.Resources = append(report.Resources, r)
		report.Changes++
	}
}

// AddService adds a Service. placeholders describes addresses that Azure has not assigned yet.
func (report *Report) AddService(s ServiceReport, addresses []netip.Addr, placeholders map[netip.Addr]string) {
	v := formatter{placeholders: placeholders}
	for _, a := range addresses {
		if a.IsValid() {
			s.Addresses = append(s.Addresses, v.formatAddress(a.String()))
		}
	}
	report.Services = append(report.Services, s)
	slices.SortFunc(report.Services, func(a, b ServiceReport) int { return strings.Compare(a.Service, b.Service) })
}

// CountRejected counts rejected Services.
func (report Report) CountRejected() int {
	n := 0
	for _, s := range report.Services {
		if s.Refused != "" {
			n++
		}
	}
	return n
}

// FormatJSON also escapes terminal control characters that encoding/json leaves.
func (report Report) FormatJSON() ([]byte, error) {
	text, err := json.MarshalIndent(report, "", "  ")
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
