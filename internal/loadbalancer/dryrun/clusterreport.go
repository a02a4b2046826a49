// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
)

// NewClusterReport returns a cluster's plan, without Notes and Stops.
func NewClusterReport(o PlanResult) Report {
	p := NewReport(o.Changes, o.Owners)
	p.Limits = o.Limits
	for _, r := range o.Results {
		p.AddConversions(r.DrainingPools)
	}
	for _, l := range o.SkippedPools {
		p.Pools = append(p.Pools, PoolReport{BackendPool: l.BackendPool, Why: l.Reason})
	}
	for _, u := range o.SkippedServices {
		s := ServiceReport{Service: u.Service, Refused: u.RejectedReason, Note: u.BlockedReason, Kept: u.RetainedReason}
		if u.RejectedReason == "" {
			s.NoEffect = o.NoEffect[u.Service]
		}
		p.AddService(s, nil, nil)
	}
	for _, r := range o.Results {
		s := ServiceReport{Service: r.Service, Note: joinNotes(r), NoEffect: o.NoEffect[r.Service]}
		if r.Desired != nil {
			s.LoadBalancer = r.On.Name
			if r.Err == nil {
				p.AddLosses(r.Service, r.StatusAddresses, r.Addresses)
			}
		}
		switch unplanned := UnknownReason(r); {
		case unplanned != nil:
			s.Failed = unplanned.Error()
		case r.Err != nil:
			s.Refused = r.Err.Error()
		}
		p.AddService(s, r.Addresses, maps.Clone(o.Changes.Placeholders))
	}
	return p
}

func joinNotes(r loadbalancer.Result) string {
	notes := slices.DeleteFunc([]string{r.Message}, func(n string) bool { return n == "" })
	if r.Desired != nil {
		for _, f := range r.Desired.Flaws {
			notes = append(notes, f.Error())
		}
	}
	for _, k := range r.Retained {
		notes = append(notes, k.String())
	}
	for _, ip := range r.Unused {
		notes = append(notes, ip.String())
	}
	for _, text := range ListLinkNotes(r) {
		notes = append(notes, "private link service: "+text)
	}
	for _, e := range r.DrainingPools {
		if e.Interim != "" {
			notes = append(notes, e.String())
		}
	}
	return strings.Join(notes, "; ")
}

// conversionWrites is for a temporary pool and the pool itself.
const conversionWrites = 2

// AddConversions adds pools that would change their kind of members.
func (report *Report) AddConversions(pools []plan.DrainingPool) {
	for _, e := range pools {
		if e.Interim == "" {
			continue
		}
		id := e.Pool.LoadBalancer.String()
		at := slices.IndexFunc(report.Resources, func(r ResourceReport) bool { return r.ID == id })
		if at < 0 {
			at = slices.IndexFunc(append(slices.Clone(report.Resources), ResourceReport{}), func(r ResourceReport) bool { return r.Kind != ReportLoadBalancer || r.ID > id })
			report.Resources = slices.Insert(report.Resources, at, ResourceReport{
				Kind: ReportLoadBalancer, Name: e.Pool.LoadBalancer.Name, ResourceGroup: e.Pool.LoadBalancer.ResourceGroup, ID: id, Action: lb.ActionModify,
			})
			report.Changes++
		}
		from, to := e.ConversionKinds()
		part := PartReport{Kind: string(lb.KindPool), Name: e.Pool.Name, Action: lb.ActionModify, Fields: []FieldReport{{Name: "members", Was: &from, Is: &to}}}
		r := &report.Resources[at]
		if !slices.ContainsFunc(r.Parts, func(o PartReport) bool {
			return o.Name == part.Name && slices.ContainsFunc(o.Fields, func(f FieldReport) bool { return f.Name == "members" })
		}) {
			r.Parts, report.PoolWrites = append(r.Parts, part), report.PoolWrites+conversionWrites
		}
	}
}
