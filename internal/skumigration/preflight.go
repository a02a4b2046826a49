// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"fmt"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// preflightCache is read once per process, before a migration starts.
type preflightCache struct {
	subnets  map[string]phase.Subnet // by id in lower case
	loaded   bool                    // found and usages are set
	usages   []phase.Usage
	findings []phase.Finding
}

func newPreflightCache() preflightCache { return preflightCache{subnets: map[string]phase.Subnet{}} }

// check includes permissions.
func (p *preflightCache) check(ctx context.Context, cfg Config, j phase.Journal, snapshot phase.Snapshot, services []phase.Service) ([]phase.Finding, error) {
	err := withTimeout(ctx, func(ctx context.Context) error {
		return p.readSubnets(ctx, cfg.Azure, phase.SubnetsWithoutGroup(j, snapshot))
	})
	if err != nil {
		return nil, err
	}
	if !p.loaded {
		p.findings = missingPermissions(ctx, cfg.Azure, j, snapshot)
		p.readUsages(ctx, cfg, j)
		p.loaded = true
	}
	snapshot.Subnets, snapshot.Usages = p.subnets, p.usages
	return append(phase.RunPreflight(j, snapshot, services, cfg.Options), p.findings...), nil
}

// readSubnets marks a forbidden subnet as Hidden.
func (p *preflightCache) readSubnets(ctx context.Context, of Azure, ids []string) error {
	for _, id := range ids {
		key := strings.ToLower(id)
		if _, known := p.subnets[key]; known {
			continue
		}
		network, name, ok := parseSubnetID(id)
		if !ok {
			continue // reported by Preflight
		}
		shown, err := of.GetSubnet(ctx, network, name)
		f := armerror.FromError(err)
		hidden := f != nil && f.Code == "AuthorizationFailed"
		if f != nil && !hidden && f.Class != armerror.Stale {
			return fmt.Errorf("subnet %s: %w", id, err)
		}
		p.subnets[key] = phase.Subnet{SecurityGroup: shown.SecurityGroup, Hidden: hidden, Missing: f != nil && f.Class == armerror.Stale}
	}
	return nil
}

func parseSubnetID(id string) (network lb.ResourceID, name string, ok bool) {
	at := strings.LastIndex(strings.ToLower(id), "/subnets/")
	if at < 0 {
		return network, "", false
	}
	network, err := lb.ParseResourceID(id[:at], lb.TypeVirtualNetwork)
	return network, id[at+len("/subnets/"):], err == nil
}

// readUsages turns a failure into a finding.
func (p *preflightCache) readUsages(ctx context.Context, cfg Config, j phase.Journal) {
	subscriptions := map[string]bool{}
	add := func(id string) {
		if subscriptions[strings.ToLower(id)] {
			return
		}
		subscriptions[strings.ToLower(id)] = true
		err := withTimeout(ctx, func(ctx context.Context) error {
			used, err := cfg.Azure.Usages(ctx, id, cfg.Location)
			p.usages = append(p.usages, used...)
			return err
		})
		if err != nil {
			p.findings = append(p.findings, phase.Finding{Reason: phase.ReasonLimitsUnknown, Message: fmt.Sprintf(
				"how many load balancers and public IPs subscription %s may still have in %s is not known: %v; az network list-usages --location %s shows it", id, cfg.Location, err, cfg.Location)})
		}
	}
	for _, of := range j.LoadBalancers {
		add(of.ID.SubscriptionID)
		for _, a := range of.Addresses {
			if id, err := lb.ParseResourceID(a.PublicIP, lb.TypePublicIP); err == nil {
				add(id.SubscriptionID)
			}
		}
	}
}
