// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/offline"
)

// readRecord reads Weir's record. Errors are ignored: users may lack permission, and the plan is useful
// without it.
func readRecord(ctx context.Context, reader client.Reader, objects offline.Objects) store.Record {
	r, err := store.Read(ctx, reader, offline.NamespaceOfNodePools(objects.Pools, installNamespace))
	if err == nil {
		return r
	}
	return store.Record{}
}

// listBlockers returns why the controller would not start, or would wait for approval.
func (p *planner) listBlockers(o dryrun.PlanResult) []string {
	var blockers []string
	if err := p.record.CheckConflict(p.ClusterName, resourceGroupID(p.cfg)); err != nil {
		blockers = append(blockers, "the controller would not start: "+err.Error())
	}
	if taken, addressed := o.CountLosses(), p.cluster.CountAddresses(); servicelb.ExceedsRemovalLimit(taken, addressed) {
		blockers = append(blockers, fmt.Sprintf("the controller would wait before it takes addresses from %d of %d Services, because no user has requested it: each waits for its annotation %s, or all for --allow-removal",
			taken, addressed, cache.AllowRemovalAnnotation))
	}
	return blockers
}

func (p *planner) countServices() int {
	n := 0
	for i := range p.objects.Services {
		if s := &p.objects.Services[i]; s.Spec.Type == corev1.ServiceTypeLoadBalancer && p.planScope().HasService(s.Namespace, s.Name) {
			n++
		}
	}
	return n
}

// listHints returns hints about incomplete input, and about a plan that selects no Service.
func (p *planner) listHints(o dryrun.PlanResult) []string {
	var notes []string
	if others := p.countServices(); o.IsEmpty() && len(p.objects.Pools) == 0 && others > 0 {
		which := fmt.Sprintf("those of class %q are planned; --load-balancer-class=\"\" plans those without a class", p.LoadBalancerClass)
		if p.LoadBalancerClass == "" {
			which = `those without a class are planned, by --load-balancer-class=""`
		}
		notes = append(notes, fmt.Sprintf("%s of type LoadBalancer passed over: %s", formatCount(others, "Service"), which))
	}
	if err := p.zones.Err(); err != nil && !p.cfg.ZoneChoice().IsSet {
		notes = append(notes, fmt.Sprintf("the availability zones of %s are not known, so new public IPs and private frontends get none unless an annotation names them: %v", p.cfg.Location, err))
	}
	if text := countPoolMoves(o.Changes).costText(); text != "" {
		notes = append(notes, text)
	}
	if p.noGateways {
		notes = append(notes, "Gateways are not planned: you may not list the objects of Gateway API")
	}
	if len(p.Files) == 0 {
		return notes
	}
	notes = append(notes, p.warnings[:min(len(p.warnings), maxReportedErrors)]...)
	if more := len(p.warnings) - maxReportedErrors; more > 0 {
		notes = append(notes, fmt.Sprintf("and %s more", formatCount(more, "such object")))
	}
	switch {
	case len(p.objects.Nodes) == 0:
		notes = append(notes, "the files have no Nodes: no pool's members are planned")
	case len(p.objects.Slices) == 0:
		notes = append(notes, "the files have no EndpointSlices: the members of the Services' own pools are not planned")
	}
	for i := range p.objects.Services {
		if s := &p.objects.Services[i]; cache.NotCreated(s) && p.planScope().HasService(s.Namespace, s.Name) {
			notes = append(notes, fmt.Sprintf("Service %s/%s has no UID yet: its names in Azure and its node ports are stand-ins", s.Namespace, s.Name))
		}
	}
	if len(p.objects.Gateways) > 0 {
		notes = append(notes, "UIDs of Gateways and node ports that the files do not have are stand-ins, and so are the node ports of copies of Services")
	}
	return notes
}

// listRegionLimits returns the quotas that would be near or exceeded, and notes of those that could not be read.
func (p *planner) listRegionLimits(ctx context.Context, d dryrun.Changes) (usages []plan.LimitUsage, notes []string) {
	for _, region := range d.ListCreatedRegions() {
		reported, err := listRegionUsages(ctx, p.client, p.cfg, region)
		if err != nil {
			notes = append(notes, fmt.Sprintf("the quotas of region %s are not known; if Azure refuses to show them, permit %s on the subscription: %v", region, UsagesAction, err))
			continue
		}
		usages = append(usages, dryrun.RegionLimitsOf(d, region, reported)...)
	}
	return usages, notes
}
