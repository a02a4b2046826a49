// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/offline"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/skumigration"
	"weir.dev/weir/internal/skumigration/phase"
)

// addStartupMigration migrates the cluster's Basic load balancers to Standard before any other write, if azure.json
// requests it or a migration has begun.
//
// The returned function runs while this process leads: it ends leadership when a user requests a migration.
func addStartupMigration(o Options, cfg config.Config, client *azure.Client, cluster *controllers.Cluster, lease updater.Lease, r recordStore, cancel context.CancelCauseFunc) func(context.Context) {
	if !cluster.Services.HasLoadBalancers() {
		return func(context.Context) {}
	}
	c := migrationConfig(o, cfg, client, cluster.Services)
	on := store.Migration{Reader: r.api, Writer: r.api, Namespace: r.namespace}
	c.Store, c.SaveProgress, c.Claims, c.Log = on, on.SaveReport, r.owedAddresses, o.Log
	if lease != nil {
		c.Lease = lease
	}
	c.RecordEvent = func(service string, warning bool, reason, text string) {
		services.RecordMigrationEvent(cluster.Services, service, warning, reason, text)
	}
	c.UpdateStatus = func(ctx context.Context, service, text string) error {
		return services.SetMigrationProgress(ctx, cluster.Services, service, text)
	}
	c.EndLead = func() { cancel(errMigrationRequested) }
	m := skumigration.New(c)
	cluster.SetFirst(m.Run)
	return m.WatchRequests
}

// errMigrationRequested ends leadership without a failure.
var errMigrationRequested = errors.New("a migration was requested")

// migrationConfig configures a migration without its store. A SKU in azure.json applies to all load balancers of
// the cluster.
func migrationConfig(o Options, cfg config.Config, client *azure.Client, of *services.Reconciler) skumigration.Config {
	return skumigration.Config{
		Azure: migrationClient{client, azure.NewMachineClient(client), azure.NewPrivateLinkClient(client)}, LoadBalancers: services.LoadBalancers(of),
		Services: func() []phase.Service { return services.MigratedServices(of) },
		Home:     lb.ResourceID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.ResourceGroup}, PublicIPs: of.Options().Settings.PublicIPs,
		Location: cfg.Location, Zones: migrationZones(cfg, o.zones), AutoStart: cfg.ShouldMigrate(), AcceptRequests: cfg.LoadBalancerSKU != "",
		Options: phase.Options{
			NodePools:            of.Options().Settings.SharedPools(),
			IsManaged:            func(ip lb.PublicIP) bool { return publicip.ManagedOwner(ip, o.ClusterName) != "" },
			UpgradeUserPublicIPs: true, SecurityGroup: cfg.SecurityGroup().Name,
		},
	}
}

// PlanMigration returns the migration that the controller would run if it started now. It writes nothing.
func PlanMigration(ctx context.Context, o PlanOptions) (skumigration.Plan, error) {
	p, err := newPlanner(o)
	if err != nil {
		return skumigration.Plan{}, err
	}
	if err := p.readObjects(ctx); err != nil {
		return skumigration.Plan{}, err
	}
	c, err := p.offlineMigrationConfig()
	if err != nil {
		return skumigration.Plan{}, err
	}
	c.Store = readOnlyStore{p.record}
	plan, err := skumigration.BuildPlan(ctx, c)
	if err != nil {
		return skumigration.Plan{}, fmt.Errorf("no plan: %w", err)
	}
	return plan, nil
}

func (p *planner) offlineMigrationConfig() (skumigration.Config, error) {
	cluster := offline.New(controllers.Options{SubscriptionID: p.cfg.NetworkSubscriptionID(), ResourceGroup: p.cfg.BackendResourceGroup()})
	simulator := dryrun.New(loadbalancer.Config{Settings: p.settings, Cluster: cluster.LoadBalancers()}, p.client)
	cluster.Controllers.EnableLoadBalancers(simulator, serviceOptions(p.Options, p.cfg, p.settings, p.client, systemNamespace))
	if err := cluster.AddObjects(p.objects); err != nil {
		return skumigration.Config{}, err
	}
	return migrationConfig(p.Options, p.cfg, p.client, cluster.Controllers.Services), nil
}

// readOnlyStore is a read-only skumigration.Store.
type readOnlyStore struct{ store.Record }

func (r readOnlyStore) Load(context.Context) (phase.Journal, phase.UserRequests, error) {
	j, err := r.MigrationJournal()
	return j, r.MigrationRequests(), err
}

func (readOnlyStore) SaveJournal(context.Context, phase.Journal) error { return errReadOnly }

func (readOnlyStore) SaveFinalJournal(context.Context, phase.Journal, phase.Journal) (bool, error) {
	return false, errReadOnly
}

func (readOnlyStore) CompleteUndo(context.Context, phase.Journal) (bool, error) {
	return false, errReadOnly
}

func (readOnlyStore) ClearStartRequest(context.Context) error { return errReadOnly }

var errReadOnly = errors.New("who only looks writes nothing")

// migrationClient implements skumigration.Azure.
type migrationClient struct {
	armClient
	machineAPI
	subnetAPI
}

// Aliases: the embedded types are all named Client.
type (
	armClient  = *azure.Client
	machineAPI = *azure.MachineClient
	subnetAPI  = *azure.PrivateLinkClient
)

// ListLoadBalancers implements skumigration.Azure. Members of Basic pools are reported in every form Azure
// returns: such pools are read and deleted, never written.
func (m migrationClient) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	loadBalancers, err := m.armClient.ListLoadBalancers(ctx, subscription, resourceGroup)
	for _, b := range loadBalancers {
		for at, p := range b.Pools {
			if b.SKU == lb.Basic {
				b.Pools[at].Addresses = codec.PoolMembers(p)
			}
		}
	}
	return loadBalancers, err
}

func (m migrationClient) UpgradeInstances(ctx context.Context, scaleSet lb.ResourceID, instances []string) error {
	return m.machineAPI.UpgradeInstances(ctx, scaleSet, instances)
}

func (m migrationClient) Usages(ctx context.Context, subscription, location string) ([]phase.Usage, error) {
	return azure.ListUsages(ctx, m.armClient, subscription, location)
}

func (m migrationClient) Missing(ctx context.Context, scope string, actions []string) ([]string, error) {
	return azure.ListMissingRights(ctx, m.armClient, scope, actions)
}
