// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/rehearse"
)

// OfAll returns a cluster's plan, without Notes and Stops.
func OfAll(o rehearse.Outcome) Plan {
	p := Of(o.Differences, o.Owners)
	p.Limits = o.Limits
	for _, r := range o.Results {
		p.Convert(r.Emptying)
	}
	for _, l := range o.Left {
		p.Pools = append(p.Pools, Pool{BackendPool: l.BackendPool, Why: l.Why})
	}
	for _, u := range o.Unasked {
		s := Service{Service: u.Service, Refused: u.Refused, Note: u.Held, Kept: u.Kept}
		if u.Refused == "" {
			s.NoEffect = o.NoEffect[u.Service]
		}
		p.Serve(s, nil, nil)
	}
	for _, r := range o.Results {
		s := Service{Service: r.Service, Note: noteOf(r), NoEffect: o.NoEffect[r.Service]}
		if r.Desired != nil {
			s.LoadBalancer = r.On.Name
			if r.Err == nil {
				p.Lose(r.Service, r.Shown, r.Addresses)
			}
		}
		switch unplanned := rehearse.Unplanned(r); {
		case unplanned != nil:
			s.Failed = unplanned.Error()
		case r.Err != nil:
			s.Refused = r.Err.Error()
		}
		p.Serve(s, r.Addresses, maps.Clone(o.Differences.Given))
	}
	return p
}

func noteOf(r balancer.Result) string {
	notes := slices.DeleteFunc([]string{r.Note}, func(n string) bool { return n == "" })
	if r.Desired != nil {
		for _, f := range r.Desired.Flaws {
			notes = append(notes, f.Error())
		}
	}
	for _, k := range r.Kept {
		notes = append(notes, k.String())
	}
	for _, ip := range r.Unused {
		notes = append(notes, ip.String())
	}
	for _, text := range rehearse.LinkNotes(r) {
		notes = append(notes, "private link service: "+text)
	}
	for _, e := range r.Emptying {
		if e.Interim != "" {
			notes = append(notes, e.String())
		}
	}
	return strings.Join(notes, "; ")
}

// writesOfConversion is for a temporary pool and the pool itself.
const writesOfConversion = 2

// Convert adds pools that would change their kind of members.
func (p *Plan) Convert(pools []plan.Emptying) {
	for _, e := range pools {
		if e.Interim == "" {
			continue
		}
		id := e.Pool.LoadBalancer.String()
		at := slices.IndexFunc(p.Resources, func(r Resource) bool { return r.ID == id })
		if at < 0 {
			at = slices.IndexFunc(append(slices.Clone(p.Resources), Resource{}), func(r Resource) bool { return r.Kind != LoadBalancer || r.ID > id })
			p.Resources = slices.Insert(p.Resources, at, Resource{
				Kind: LoadBalancer, Name: e.Pool.LoadBalancer.Name, ResourceGroup: e.Pool.LoadBalancer.ResourceGroup, ID: id, Action: plan.Alter,
			})
			p.Changes++
		}
		from, to := e.Becomes()
		part := Part{Kind: string(plan.Pool), Name: e.Pool.Name, Action: plan.Alter, Fields: []Field{{Name: "members", Was: &from, Is: &to}}}
		r := &p.Resources[at]
		if !slices.ContainsFunc(r.Parts, func(o Part) bool {
			return o.Name == part.Name && slices.ContainsFunc(o.Fields, func(f Field) bool { return f.Name == "members" })
		}) {
			r.Parts, p.PoolWrites = append(r.Parts, part), p.PoolWrites+writesOfConversion
		}
	}
}
