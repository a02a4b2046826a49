// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"fmt"
	"strings"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
)

// before is read once per process, before a migration starts.
type before struct {
	subnets map[string]migrate.Subnet // by id in lower case
	asked   bool                      // found and usages are set
	usages  []migrate.Usage
	found   []migrate.Finding
}

func newBefore() before { return before{subnets: map[string]migrate.Subnet{}} }

// preflight includes permissions.
func (b *before) preflight(ctx context.Context, cfg Config, j migrate.Journal, snapshot migrate.Seen, services []migrate.Service) ([]migrate.Finding, error) {
	err := bounded(ctx, func(ctx context.Context) error { return b.readSubnets(ctx, cfg.Azure, migrate.Bare(j, snapshot)) })
	if err != nil {
		return nil, err
	}
	if !b.asked {
		b.found = lacking(ctx, cfg.Azure, j, snapshot)
		b.readUsages(ctx, cfg, j)
		b.asked = true
	}
	snapshot.Subnets, snapshot.Usages = b.subnets, b.usages
	return append(migrate.Preflight(j, snapshot, services, cfg.Terms), b.found...), nil
}

// readSubnets marks a forbidden subnet as Hidden.
func (b *before) readSubnets(ctx context.Context, of Azure, ids []string) error {
	for _, id := range ids {
		key := strings.ToLower(id)
		if _, known := b.subnets[key]; known {
			continue
		}
		network, name, ok := subnetOf(id)
		if !ok {
			continue // reported by Preflight
		}
		shown, err := of.GetSubnet(ctx, network, name)
		f := fault.From(err)
		hidden := f != nil && f.Code == "AuthorizationFailed"
		if f != nil && !hidden && f.Class != fault.Stale {
			return fmt.Errorf("subnet %s: %w", id, err)
		}
		b.subnets[key] = migrate.Subnet{SecurityGroup: shown.SecurityGroup, Hidden: hidden, Missing: f != nil && f.Class == fault.Stale}
	}
	return nil
}

func subnetOf(id string) (network lb.ResourceID, name string, ok bool) {
	at := strings.LastIndex(strings.ToLower(id), "/subnets/")
	if at < 0 {
		return network, "", false
	}
	network, err := lb.ParseResourceID(id[:at], lb.TypeVirtualNetwork)
	return network, id[at+len("/subnets/"):], err == nil
}

// readUsages turns a failure into a finding.
func (b *before) readUsages(ctx context.Context, cfg Config, j migrate.Journal) {
	subscriptions := map[string]bool{}
	add := func(id string) {
		if subscriptions[strings.ToLower(id)] {
			return
		}
		subscriptions[strings.ToLower(id)] = true
		err := bounded(ctx, func(ctx context.Context) error {
			used, err := cfg.Azure.Usages(ctx, id, cfg.Location)
			b.usages = append(b.usages, used...)
			return err
		})
		if err != nil {
			b.found = append(b.found, migrate.Finding{Reason: migrate.LimitsUnknown, What: fmt.Sprintf(
				"how many load balancers and public IPs subscription %s may still have in %s is not known: %v; az network list-usages --location %s shows it", id, cfg.Location, err, cfg.Location)})
		}
	}
	for _, of := range j.Balancers {
		add(of.ID.SubscriptionID)
		for _, a := range of.Addresses {
			if id, err := lb.ParseResourceID(a.PublicIP, lb.TypePublicIP); err == nil {
				add(id.SubscriptionID)
			}
		}
	}
}
