// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/rehearse"
)

// OfAll makes a plan of what was rehearsed for a whole cluster. Notes and Stops are the caller's
// to add.
func OfAll(o rehearse.Outcome) Plan {
	p := Of(o.Differences, o.Owners)
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
		switch {
		case rehearse.OfAzure(r):
			s.Failed = r.Err.Error()
		case r.Err != nil:
			s.Refused = r.Err.Error()
		}
		p.Serve(s, r.Addresses, maps.Clone(o.Differences.Given))
	}
	return p
}

// noteOf is what people should know of a result although all goes well.
func noteOf(r balancer.Result) string {
	notes := slices.DeleteFunc([]string{r.Note}, func(n string) bool { return n == "" })
	for _, k := range r.Kept {
		notes = append(notes, k.String())
	}
	return strings.Join(notes, "; ")
}
