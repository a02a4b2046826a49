// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"slices"
	"strings"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
)

// request returns what has to be asked of these Balancers for a Service, and the load balancers that
// may hold parts of it then: none if Azure holds nothing of one that leaves.
func (r *Reconciler) request(ctx context.Context, by Locator, s Service, recorded Record, d Desired) (balancer.Request, []string, error) {
	on, leave, err := by.Locate(ctx, balancer.Placing{
		Service: s.Name, Owner: service.Owner(s.UID), Labels: s.Object.Labels, NamespaceLabels: d.NamespaceLabels,
		Desired: d.Spec, Recorded: recorded.Places,
	})
	if err != nil || on == "" && len(leave) == 0 {
		return balancer.Request{}, nil, err
	}
	for _, group := range d.Groups {
		if !slices.Contains(recorded.Groups, group) { // on record it would have to be read to the end
			if err := by.Reads(ctx, group); err != nil {
				return balancer.Request{}, nil, err
			}
		}
	}
	req := balancer.Request{
		Service: s.Name, Owner: service.Owner(s.UID), OwnPools: d.OwnPools, Desired: d.Spec,
		Shown: s.Shown, Groups: union(union(recorded.Groups, d.Groups), d.Inherited), Again: s.WriteAgain,
	}
	places := leave
	if on != "" {
		places = append([]string{on}, leave...)
		req.On = by.ID(on)
	}
	for _, name := range leave {
		req.Leave = append(req.Leave, by.ID(name))
	}
	req.HeldPools, req.MadePools = r.cfg.Cluster.HeldPools(s, d.OwnPools, append(slices.Clone(req.Leave), req.On))
	return req, places, nil
}

// union returns the names of both, each once, in their order.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, name := range b {
		if !slices.ContainsFunc(all, func(n string) bool { return strings.EqualFold(n, name) }) {
			all = append(all, name)
		}
	}
	return all
}

// mostFormer bounds the names of a record.
const mostFormer = 8

// withFormer adds to the load balancers that may hold parts of a Service those that are on record
// and not the cluster's any more: they stay there until all is where it belongs. Whoever may edit
// a Service may edit its record, so they are few.
func withFormer(places, recorded []string) []string {
	all := union(places, recorded)
	return all[:min(len(all), max(len(places), mostFormer))]
}
