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

// addStartupMigration migrates the cluster's Basic load balancers to Standard before any other write, if azure.json
// requests it or a migration has begun.
//
// The returned function runs while this process leads: it ends leadership when a user requests a migration.
func addStartupMigration(o Options, cfg config.Config, client *azure.Client, cluster *kube.Cluster, locker poolupdate.Lease, r recordStore, giveUp context.CancelCauseFunc) func(context.Context) {
	if !cluster.Services.HasLoadBalancers() {
		return func(context.Context) {}
	}
	c := migrationConfig(o, cfg, client, cluster.Services)
	on := record.Migration{Reader: r.api, Writer: r.api, Namespace: r.namespace}
	c.Store, c.SaveProgress, c.Claims, c.Log = on, on.SaveReport, r.owedAddresses, o.Log
	if locker != nil {
		c.Lease = locker
	}
	c.RecordEvent = func(service string, warning bool, reason, text string) {
		services.RecordMigrationEvent(cluster.Services, service, warning, reason, text)
	}
	c.UpdateStatus = func(ctx context.Context, service, text string) error {
		return services.SetMigrationProgress(ctx, cluster.Services, service, text)
	}
	c.EndLead = func() { giveUp(errMigrationRequested) }
	m := migration.New(c)
	cluster.SetFirst(m.Run)
	return m.WatchRequests
}

// errMigrationRequested ends leadership without a failure.
var errMigrationRequested = errors.New("a migration was asked for")

// migrationConfig configures a migration without its store. A SKU in azure.json applies to all load balancers of
// the cluster.
func migrationConfig(o Options, cfg config.Config, client *azure.Client, of *services.Reconciler) migration.Config {
	return migration.Config{
		Azure: migrationClient{client, machines.New(client), privatelinks.New(client)}, LoadBalancers: services.LoadBalancers(of),
		Services: func() []migrate.Service { return services.MigratedServices(of) },
		Home:     lb.ResourceID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.ResourceGroup},
		Location: cfg.Location, AutoStart: cfg.ShouldMigrate(), AcceptRequests: cfg.LoadBalancerSKU != "",
		Options: migrate.Options{
			NodePools:            of.Options().Settings.SharedPools(),
			IsManaged:            func(ip lb.PublicIP) bool { return publicip.ManagedOwner(ip, o.ClusterName) != "" },
			UpgradeUserPublicIPs: true, SecurityGroup: cfg.SecurityGroup().Name,
		},
	}
}

// PlanMigration returns the migration that the controller would run if it started now. It writes nothing.
func PlanMigration(ctx context.Context, o PlanOptions) (migration.Plan, error) {
	p, err := newPlanner(o)
	if err != nil {
		return migration.Plan{}, err
	}
	if err := p.readObjects(ctx); err != nil {
		return migration.Plan{}, err
	}
	c, err := p.offlineMigrationConfig()
	if err != nil {
		return migration.Plan{}, err
	}
	c.Store = readOnlyStore{p.record}
	plan, err := migration.BuildPlan(ctx, c)
	if err != nil {
		return migration.Plan{}, fmt.Errorf("no plan: %w", err)
	}
	return plan, nil
}

func (p *planner) offlineMigrationConfig() (migration.Config, error) {
	cluster := offline.New(kube.Options{SubscriptionID: p.cfg.SubscriptionID, ResourceGroup: p.cfg.BackendResourceGroup()})
	rehearsal := rehearse.New(balancer.Config{Settings: p.settings, Cluster: cluster.LoadBalancers(), Behavior: p.knownBehavior}, p.client)
	cluster.Controllers.EnableLoadBalancers(rehearsal, serviceOptions(p.Options, p.cfg, p.settings, p.client, systemNamespace))
	if err := cluster.AddObjects(p.objects); err != nil {
		return migration.Config{}, err
	}
	return migrationConfig(p.Options, p.cfg, p.client, cluster.Controllers.Services), nil
}

// readOnlyStore is a read-only migration.Store.
type readOnlyStore struct{ record.Record }

func (r readOnlyStore) Load(context.Context) (migrate.Journal, migrate.UserRequests, error) {
	j, err := r.MigrationJournal()
	return j, r.MigrationRequests(), err
}

func (readOnlyStore) SaveJournal(context.Context, migrate.Journal) error { return errReadOnly }

func (readOnlyStore) SaveFinalJournal(context.Context, migrate.Journal, migrate.Journal) (bool, error) {
	return false, errReadOnly
}

func (readOnlyStore) CompleteUndo(context.Context, migrate.Journal) (bool, error) {
	return false, errReadOnly
}

func (readOnlyStore) ClearStartRequest(context.Context) error { return errReadOnly }

var errReadOnly = errors.New("who only looks writes nothing")

// migrationClient implements migration.Azure.
type migrationClient struct {
	armClient
	machineAPI
	subnetAPI
}

// Aliases: the embedded types are all named Client.
type (
	armClient  = *azure.Client
	machineAPI = *machines.Client
	subnetAPI  = *privatelinks.Client
)

// ListLoadBalancers implements migration.Azure. Members of Basic pools are reported in every form Azure
// returns: such pools are read and deleted, never written.
func (a migrationClient) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	all, err := a.armClient.ListLoadBalancers(ctx, subscription, resourceGroup)
	for _, b := range all {
		for at, p := range b.Pools {
			if b.SKU == lb.Basic {
				b.Pools[at].Addresses = codec.PoolMembers(p)
			}
		}
	}
	return all, err
}

func (a migrationClient) UpgradeInstances(ctx context.Context, scaleSet lb.ResourceID, instances []string) error {
	return a.machineAPI.UpgradeInstances(ctx, scaleSet, instances)
}

func (a migrationClient) Usages(ctx context.Context, subscription, location string) ([]migrate.Usage, error) {
	return usages.ListUsages(ctx, a.armClient, subscription, location)
}

func (a migrationClient) Missing(ctx context.Context, scope string, actions []string) ([]string, error) {
	return rights.ListMissing(ctx, a.armClient, scope, actions)
}
