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
func (b *preflightCache) check(ctx context.Context, cfg Config, j phase.Journal, snapshot phase.Snapshot, services []phase.Service) ([]phase.Finding, error) {
	err := withTimeout(ctx, func(ctx context.Context) error {
		return b.readSubnets(ctx, cfg.Azure, phase.SubnetsWithoutGroup(j, snapshot))
	})
	if err != nil {
		return nil, err
	}
	if !b.loaded {
		b.findings = missingPermissions(ctx, cfg.Azure, j, snapshot)
		b.readUsages(ctx, cfg, j)
		b.loaded = true
	}
	snapshot.Subnets, snapshot.Usages = b.subnets, b.usages
	return append(phase.RunPreflight(j, snapshot, services, cfg.Options), b.findings...), nil
}

// readSubnets marks a forbidden subnet as Hidden.
func (b *preflightCache) readSubnets(ctx context.Context, of Azure, ids []string) error {
	for _, id := range ids {
		key := strings.ToLower(id)
		if _, known := b.subnets[key]; known {
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
		b.subnets[key] = phase.Subnet{SecurityGroup: shown.SecurityGroup, Hidden: hidden, Missing: f != nil && f.Class == armerror.Stale}
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
func (b *preflightCache) readUsages(ctx context.Context, cfg Config, j phase.Journal) {
	subscriptions := map[string]bool{}
	add := func(id string) {
		if subscriptions[strings.ToLower(id)] {
			return
		}
		subscriptions[strings.ToLower(id)] = true
		err := withTimeout(ctx, func(ctx context.Context) error {
			used, err := cfg.Azure.Usages(ctx, id, cfg.Location)
			b.usages = append(b.usages, used...)
			return err
		})
		if err != nil {
			b.findings = append(b.findings, phase.Finding{Reason: phase.ReasonLimitsUnknown, Message: fmt.Sprintf(
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
