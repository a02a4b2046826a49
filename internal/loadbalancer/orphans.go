// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/service"
)

// Orphan is an Azure resource named after a Service that does not exist in the cluster, because its finalizer
// was removed by hand.
type Orphan struct {
	Description string
	// Service is the owner according to Azure, if known.
	Service string
}

var serviceNamePattern = regexp.MustCompile(`(?i)^a[0-9a-f]{31}(-|$)`)

// ListOrphans lists leftovers in Azure. Weir does not delete them: Azure cannot distinguish clusters of the same
// name, nor Weir's resources from those of cloud-provider-azure.
func (b *LoadBalancers) ListOrphans(ctx context.Context) ([]Orphan, error) {
	ctx, cancel := context.WithTimeout(ctx, placementTimeout)
	defer cancel()
	before := b.cfg.Cluster.ExposedServices()
	record, err := b.leftPools.LoadRecord(ctx)
	if err != nil {
		return nil, err
	}
	onRecord := slices.Collect(maps.Keys(record))
	balancers, err := b.listManaged(ctx)
	if err != nil {
		return nil, err
	}
	ips, err := b.publicIPManager.ListAll(ctx)
	if err != nil {
		return nil, err
	}
	if err := b.forgetLeftPools(ctx, onRecord, balancers); err != nil {
		return nil, err
	}
	b.cleanup.recordFindings(b.cfg.Settings, balancers, slices.DeleteFunc(slices.Clone(ips), func(ip lb.PublicIP) bool { return !b.publicIPManager.IsOrphan(ip) }))
	// Include Services known before the list call: one deleted since may still own these resources.
	exists := map[string]bool{}
	for _, r := range append(before, b.cfg.Cluster.ExposedServices()...) {
		exists[strings.ToLower(r.Owner)] = true
	}
	isMissing := func(name string) bool {
		owner, _, _ := strings.Cut(name, "-")
		return serviceNamePattern.MatchString(name) && !exists[strings.ToLower(owner)]
	}
	var orphans []Orphan
	for _, balancer := range balancers {
		used := map[string]bool{}
		for _, r := range balancer.Rules {
			used[strings.ToLower(r.Frontend)] = used[strings.ToLower(r.Frontend)] || !isMissing(r.Name)
			if isMissing(r.Name) {
				orphans = append(orphans, Orphan{Description: "rule " + r.Name + " of load balancer " + balancer.ID.Name})
			}
		}
		for _, f := range balancer.Frontends {
			if _, retained := balancer.RetainedAt(f); retained {
				continue
			}
			if isMissing(f.Name) && !used[strings.ToLower(f.Name)] { // another Service may share the frontend
				orphans = append(orphans, Orphan{Description: "frontend " + f.Name + " of load balancer " + balancer.ID.Name})
			}
		}
	}
	for _, ip := range ips {
		of, tagged := ip.Tags[service.TagService]
		if tagged && of != "" && isMissing(publicip.ManagedOwner(ip, b.cfg.ClusterName)) { // an orphan is deleted with its last user
			text := "public IP " + ip.ID.Name
			if !strings.EqualFold(ip.ID.ResourceGroup, b.cfg.PublicIPs.ResourceGroup) {
				text += " of resource group " + ip.ID.ResourceGroup
			}
			orphans = append(orphans, Orphan{Description: text, Service: of})
		}
	}
	slices.SortFunc(orphans, func(a, b Orphan) int { return strings.Compare(a.Description, b.Description) })
	return orphans, nil
}

// listManaged reads the cluster's load balancers one by one; a list would include foreign ones with all pool members.
func (b *LoadBalancers) listManaged(ctx context.Context) ([]lb.LoadBalancer, error) {
	var loadBalancers []lb.LoadBalancer
	for _, name := range b.cfg.loadBalancerNames() {
		balancer, err := b.cfg.Azure.GetLoadBalancer(ctx, b.ID(name))
		if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
			continue // it does not exist
		}
		if err != nil {
			return nil, fmt.Errorf("load balancer %s: %w", name, err)
		}
		loadBalancers = append(loadBalancers, balancer)
	}
	return loadBalancers, nil
}
