// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Azure rejects the deletion of a load balancer with network interfaces in its pools. Everything else is
// removed first, the node BackendPools remove the interfaces, and then the last Service is requeued.

// remainingInterfaces counts the network interfaces that must leave the shared pools before the load balancer can be
// deleted, by lower-case pool name. A remaining BackendPool counts too, because it also updates scale set
// models. Members without a BackendPool are added to foreign. It returns nil without calling Azure unless the
// last Services leave.
func (l *loadBalancer) remainingInterfaces(ctx context.Context, observed lb.LoadBalancer, jobs []*job, interfaces bool, foreign map[string][]string) (map[string]int, error) {
	if !interfaces && !l.cfg.ConvertsPools || !isLastLeaving(observed, jobs) {
		return nil, nil //nolint:nilnil // nobody has looked
	}
	counts := map[string]int{}
	for _, p := range observed.Pools {
		p.ID.LoadBalancer = l.id
		converts, _ := l.cfg.Cluster.ConversionState(p.ID)
		named := interfaces || p.NIC || converts
		if !containsFold(l.cfg.SharedPools(), p.ID.Name) || !named || !p.NIC && len(p.Addresses) > 0 {
			continue
		}
		shown, err := l.cfg.Azure.ResolveMachines(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("machines of pool %s: %w", p.ID.Name, err)
		}
		foreignMembers, err := l.cfg.Cluster.ForeignMembers(ctx, shown)
		if err != nil {
			return nil, err
		}
		name, managed := strings.ToLower(p.ID.Name), len(p.Addresses)-len(foreignMembers)
		switch {
		case !l.cfg.SkipDrain && (managed > 0 || l.cfg.Cluster.HasManagedPool(p.ID)):
			counts[name] = managed
		case len(foreignMembers) > 0:
			foreign[name] = foreignMembers
		}
	}
	return counts, nil
}

// isLastLeaving reports whether all rules of the load balancer belong to leaving jobs.
func isLastLeaving(observed lb.LoadBalancer, jobs []*job) bool {
	leaving := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return !j.isLeaving() })
	return (len(leaving) > 0 || len(jobs) == 0) && !slices.ContainsFunc(observed.Rules, func(r lb.Rule) bool {
		return !slices.ContainsFunc(leaving, func(j *job) bool { return hasPrefixFold(r.Name, j.Owner) })
	})
}
