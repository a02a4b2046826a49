// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
)

// foreign returns the addresses that others have put into the pools which a plan for these
// jobs could take away, by the pools' names in lower case.
func (w *worker) foreign(ctx context.Context, observed lb.LoadBalancer, jobs []*job) (map[string][]netip.Addr, error) {
	found := map[string][]netip.Addr{}
	for _, p := range observed.Pools {
		goes := containsFold(w.cfg.SharedPools(), p.ID.Name) ||
			slices.ContainsFunc(jobs, func(j *job) bool { return containsFold(j.OwnPools, p.ID.Name) })
		if !goes || len(p.Addresses) == 0 {
			continue
		}
		p.ID.LoadBalancer = w.id
		others, err := w.cfg.Cluster.Foreign(ctx, p)
		if err != nil {
			return nil, err
		}
		if len(others) > 0 {
			found[strings.ToLower(p.ID.Name)] = others
		}
	}
	return found, nil
}

// keeps notes the pools that stay for the addresses of others: a Service's own, and of one that
// leaves those that keep the load balancer.
func (j *job) keeps(all []plan.Kept) {
	for _, k := range all {
		its := k.Owner == j.Owner || k.Owner == "" && j.steps[0].leaves
		if its && !slices.ContainsFunc(j.kept, func(o plan.Kept) bool { return reflect.DeepEqual(o, k) }) {
			j.kept = append(j.kept, k)
		}
	}
}
