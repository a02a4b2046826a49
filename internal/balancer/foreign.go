// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// foreign returns the addresses that others have put into the pools which a plan for these
// jobs could take away, by the pools' names in lower case.
func (l *loadBalancer) foreign(ctx context.Context, observed lb.LoadBalancer, jobs []*job) (map[string][]netip.Addr, error) {
	found := map[string][]netip.Addr{}
	for _, p := range observed.Pools {
		goes := containsFold(l.cfg.SharedPools(), p.ID.Name) ||
			slices.ContainsFunc(jobs, func(j *job) bool { return containsFold(j.OwnPools, p.ID.Name) })
		if !goes || len(p.Addresses) == 0 {
			continue
		}
		p.ID.LoadBalancer = l.id
		others, err := l.cfg.Cluster.Foreign(ctx, p)
		if err != nil {
			return nil, err
		}
		if len(others) > 0 {
			found[strings.ToLower(p.ID.Name)] = others
		}
	}
	return found, nil
}
