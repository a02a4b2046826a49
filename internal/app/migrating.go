// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/internal/app/rights"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/azure/machines"
	"weir.dev/weir/internal/azure/privatelinks"
	"weir.dev/weir/internal/azure/usages"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/kube/offline"
	"weir.dev/weir/internal/kube/record"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/migration"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/rehearse"
)

// migrateFirst migrates the cluster's Basic load balancers to Standard before any other write, if azure.json
// requests it or a migration has begun.
//
// The returned function runs while this process leads: it ends leadership when a user requests a migration.
func migrateFirst(o Options, cfg config.Config, client *azure.Client, cluster *kube.Cluster, locker poolupdate.Lease, r recorded, giveUp context.CancelCauseFunc) func(context.Context) {
	if !cluster.Services.Balances() {
		return func(context.Context) {}
	}
	c := migrationOf(o, cfg, client, cluster.Services)
	on := record.Migration{Reader: r.api, Writer: r.api, Namespace: r.namespace}
	c.Store, c.Say, c.Owed, c.Log = on, on.Say, r.owed, o.Log
	if locker != nil {
		c.Lease = locker
	}
	c.Tell = func(service string, warning bool, reason, text string) {
		services.TellMigrated(cluster.Services, service, warning, reason, text)
	}
	c.Show = func(ctx context.Context, service, text string) error {
		return services.ShowMigrating(ctx, cluster.Services, service, text)
	}
	c.Again = func() { giveUp(errAsked) }
	m := migration.New(c)
	cluster.First(m.Run)
	return m.Listen
}

// errAsked ends leadership without a failure.
var errAsked = errors.New("a migration was asked for")

// migrationOf configures a migration without its store. A SKU in azure.json applies to all load balancers of
// the cluster.
func migrationOf(o Options, cfg config.Config, client *azure.Client, of *services.Reconciler) migration.Config {
	return migration.Config{
		Azure: migrationAzure{client, machines.New(client), privatelinks.New(client)}, Balancers: services.LoadBalancers(of),
		Services: func() []migrate.Service { return services.Migrated(of) },
		Home:     lb.ResourceID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.ResourceGroup},
		Location: cfg.Location, Begins: cfg.Migrates(), Hears: cfg.LoadBalancerSKU != "",
		Terms: migrate.Terms{
			Pools:   of.Options().Settings.SharedPools(),
			Made:    func(ip lb.PublicIP) bool { return publicip.MadeFor(ip, o.ClusterName) != "" },
			Brought: true, SecurityGroup: cfg.SecurityGroup().Name,
		},
	}
}

// MigrationPlan returns the migration that the controller would run if it started now. It writes nothing.
func MigrationPlan(ctx context.Context, o PlanOptions) (migration.Plan, error) {
	p, err := newPlanning(o)
	if err != nil {
		return migration.Plan{}, err
	}
	if err := p.gather(ctx); err != nil {
		return migration.Plan{}, err
	}
	c, err := p.migrating()
	if err != nil {
		return migration.Plan{}, err
	}
	c.Store = onRecord{p.record}
	plan, err := migration.Look(ctx, c)
	if err != nil {
		return migration.Plan{}, fmt.Errorf("no plan: %w", err)
	}
	return plan, nil
}

func (p *planning) migrating() (migration.Config, error) {
	cluster := offline.New(kube.Options{SubscriptionID: p.cfg.SubscriptionID, ResourceGroup: p.cfg.BackendResourceGroup()})
	rehearsal := rehearse.New(balancer.Config{Settings: p.settings, Cluster: cluster.LoadBalancers(), Behaviour: p.known}, p.client)
	cluster.Rooms.Balance(rehearsal, balancingOf(p.Options, p.cfg, p.settings, p.client, systemNamespace))
	if err := cluster.Fill(p.objects); err != nil {
		return migration.Config{}, err
	}
	return migrationOf(p.Options, p.cfg, p.client, cluster.Rooms.Services), nil
}

// onRecord is a read-only migration.Store.
type onRecord struct{ record.Record }

func (r onRecord) Read(context.Context) (migrate.Journal, migrate.Asked, error) {
	j, err := r.Migration()
	return j, r.Asked(), err
}

func (onRecord) Keep(context.Context, migrate.Journal) error { return errLooks }

func (onRecord) Seal(context.Context, migrate.Journal, migrate.Journal) (bool, error) {
	return false, errLooks
}

func (onRecord) Undone(context.Context, migrate.Journal) (bool, error) { return false, errLooks }

func (onRecord) Answered(context.Context) error { return errLooks }

var errLooks = errors.New("who only looks writes nothing")

// migrationAzure implements migration.Azure.
type migrationAzure struct {
	arm
	ofMachines
	subnets
}

// Aliases: the embedded types are all named Client.
type (
	arm        = *azure.Client
	ofMachines = *machines.Client
	subnets    = *privatelinks.Client
)

// ListLoadBalancers implements migration.Azure. Members of Basic pools are reported in every form Azure
// returns: such pools are read and deleted, never written.
func (a migrationAzure) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	all, err := a.arm.ListLoadBalancers(ctx, subscription, resourceGroup)
	for _, b := range all {
		for at, p := range b.Pools {
			if b.SKU == lb.Basic {
				b.Pools[at].Addresses = codec.Members(p)
			}
		}
	}
	return all, err
}

func (a migrationAzure) Upgrade(ctx context.Context, scaleSet lb.ResourceID, instances []string) error {
	return a.ofMachines.Upgrade(ctx, scaleSet, instances)
}

func (a migrationAzure) Usages(ctx context.Context, subscription, location string) ([]migrate.Usage, error) {
	return usages.List(ctx, a.arm, subscription, location)
}

func (a migrationAzure) Missing(ctx context.Context, scope string, actions []string) ([]string, error) {
	return rights.Missing(ctx, a.arm, scope, actions)
}
