// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/nic/nicupdate"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/observe/tracing"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

// LeaseName is the leader's Lease; keep in sync with config/rbac.
const LeaseName = "weir-controller"

// Run runs the controller until ctx is done or leadership is lost. A *UsageError means that the caller must
// correct something.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	cfg, ignored, err := config.Load(o.ConfigFile)
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--config: %w", err)}
	}
	known, err := loadBehavior(o)
	if err != nil {
		return err
	}
	process.SetGCPercent()
	spans := tracing.Start(ctx, "weir", Version, o.Log)
	defer spans.Shutdown(process.TracesTimeout)
	azureOpts, err := azureOptions(o, cfg)
	if err != nil {
		return err
	}
	azureOpts.TracerProvider = spans.Provider
	rc, inCluster, err := process.ClusterConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	if warning := ignored.WarningText(); warning != "" {
		o.Log.Warn(warning, "config", o.ConfigFile)
	}
	if text := ignored.DifferenceText(); text != "" {
		o.Log.Info(text, "config", o.ConfigFile)
	}
	process.SetLogger(o.processOptions())
	return RunWith(ctx, o, Dependencies{
		Config: cfg, Behaviour: known, API: rc, InCluster: inCluster, Azure: azureOpts, Metrics: ctrlmetrics.Registry,
	})
}

// Dependencies are the dependencies of a controller. RunWith changes no other global state, so several
// controllers can run in one process.
type Dependencies struct {
	Config    config.Config
	Behaviour behavior.Behavior
	// API is the API server; InCluster reports whether this process is a pod of its cluster.
	API       *rest.Config
	InCluster bool
	Azure     azure.Options
	Metrics   prometheus.Registerer
}

// RunWith is Run with explicit dependencies: it reads no file or environment variable.
func RunWith(ctx context.Context, o Options, in Dependencies) error {
	if err := o.validate(); err != nil {
		return err
	}
	cfg := in.Config
	o.knownBehavior = in.Behaviour
	parent := ctx // done when the process should stop
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fence := process.NewFence(o.processOptions())
	writes := ratelimit.New(cfg.WriteShare(), cfg.UpdateInterval())
	callLog := requestlog.New(maxCallLogBytes)
	client, err := newObservedClient(o, cfg, in.Azure, newObserver(in.Metrics, callLog), fence, writes)
	if err != nil {
		return err
	}
	o.zones = newRegions(o, cfg, client)
	reach := k8s.NewConnection(ctx, o.Log)
	rc, namespace := process.WithReachability(reach, in.API, "weir"), o.processOptions().LeaseNamespace(in.InCluster)
	record, err := newRecord(o, cfg, rc, namespace, fence)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, cfg, rc, namespace, fence, record.saveOnLeading(cancel))
	if parent.Err() != nil {
		o.Log.Info("weir has stopped before it began")
		return nil
	}
	if err != nil {
		return err
	}
	var cluster *controllers.Cluster
	health := newHealthReader(client, writes, func() *controllers.Cluster { return cluster }) // the server starts with the manager
	var balancers *loadbalancer.LoadBalancers
	quotas := newRegionQuotas(o, cfg, client, func() []string { return balancers.ListRegions() })
	limits := func() []plan.LimitUsage { return append(balancers.ListUsages(), quotas.ListUsages()...) }
	if err := addOperatorServer(ctx, o, mgr, callLog, writes, health, limits); err != nil {
		return err
	}
	if err := addMonitoring(ctx, o, mgr, func(r *http.Request) error { return cluster.Synced(r) }); err != nil { // as above
		return err
	}
	if err := record.checkAtStart(ctx, o.LeaderElect); err != nil {
		return err
	}
	cluster, err = newCluster(ctx, o, in, mgr, reach)
	if err != nil {
		return err
	}
	lease, err := newLease(o, cfg, mgr, fence, in.Metrics)
	if err != nil {
		return err
	}
	workers, members, updates := newUpdaters(o, in, client, cluster, lease, writes, record)
	balancers, err = addLoadBalancers(o, in, client, cluster, workers, lease, countConflicts(updates, members.PauseWrites), writes, record)
	if err != nil {
		return err
	}
	gateways, delays, err := addOptionalControllers(o, in, rc, cluster, mgr, fence)
	if err != nil {
		return err
	}
	listen := addStartupMigration(o, cfg, client, cluster, lease, record, cancel)
	registerMetrics(in.Metrics, cfg, cluster, workers, members, writes, limits)
	if err := cluster.Setup(workers, members.Run, listen, gateways, delays, quotas.Run); err != nil {
		return err
	}
	o.Log.Info("weir starts", "version", Version, "cluster", o.ClusterName, "azure", cfg)
	if err := process.RunAsLeader(ctx, fence, cancel, mgr.Start); err != nil {
		return err
	}
	o.Log.Info("weir has stopped")
	return nil
}

// addOptionalControllers adds the controllers that flags turn on. It returns what the leader runs for Gateway API and for
// delays of node deletions.
func addOptionalControllers(o Options, in Dependencies, rc *rest.Config, cluster *controllers.Cluster, mgr ctrl.Manager, fence *leader.Fence) (gateways, delays func(context.Context), err error) {
	if err := addReadinessGates(o, in, rc, cluster, mgr, fence); err != nil {
		return nil, nil, err
	}
	if delays, err = newDeletionDelays(o, in.Config, cluster, mgr); err != nil {
		return nil, nil, err
	}
	return addGateways(o, cluster, mgr), delays, nil
}

// addMonitoring adds the servers of health and metrics.
func addMonitoring(ctx context.Context, o Options, mgr ctrl.Manager, ready func(*http.Request) error) error {
	return process.AddMonitoring(ctx, mgr, process.MonitoringOptions{
		HealthAddress: o.HealthAddress, MetricsAddress: o.MetricsAddress, MetricsSecure: o.MetricsSecure, ReadyName: "caches", Ready: ready,
	})
}

func newUpdaters(o Options, in Dependencies, client *azure.Client, cluster *controllers.Cluster, lease updater.Lease, writes *ratelimit.Budgets, record recordStore) (*updater.Workers, *nicupdate.Updater, *metrics.PoolUpdates) {
	cfg := in.Config
	updates := metrics.NewPoolUpdates(in.Metrics, loadBalancerScope(cfg))
	var workers *updater.Workers
	machines := machineUpdaterConfig(o, cfg, client, cluster, lease)
	machines.Metrics = metrics.NewMachines(in.Metrics)
	machines.OnPoolIdle = func(pool lb.PoolID) { workers.NotifyMachinesDone(pool) }
	members := nicupdate.New(machines)
	workers = updater.New(updater.Config{
		LoadBalancers: client, Pipeline: client, Serial: cfg.UpdateStrategy() == config.SerialStrategy, Behaviour: o.knownBehavior,
		AdminState: cfg.SetsAdminState(),
		Lease:      lease, Writes: writes, Interval: cfg.UpdateInterval(), MaxRetries: cfg.RetryCount(), ResyncPeriod: cfg.DriftPeriod(),
		Members: members,
		Azure:   client, Cluster: cluster.Pools.Controller, StatusStore: cluster.Pools.Controller,
		Reporter: measuredReporter{cluster.Pools.Controller, updates, members.PauseWrites}, Log: o.Log,
	})
	return workers, members, updates
}

func loadBalancerScope(cfg config.Config) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: cfg.NetworkSubscriptionID(), ResourceGroup: cfg.BackendResourceGroup()}
}

func registerMetrics(reg prometheus.Registerer, cfg config.Config, cluster *controllers.Cluster, workers *updater.Workers, members *nicupdate.Updater, writes *ratelimit.Budgets, limits func() []plan.LimitUsage) {
	metrics.RegisterLimits(reg, limitRatios(limits))
	metrics.RegisterMachines(reg, members.MachineCounts)
	metrics.RegisterWrites(reg, loadBalancerScope(cfg), writes.ListUsage)
	metrics.RegisterWorkers(reg, workers)
	metrics.RegisterSerialUpdates(reg, workers.CountSerial)
	metrics.RegisterBuild(reg, Version)
	metrics.RegisterStates(reg, countStates(cluster.Ownership.Statuses))
	metrics.RegisterOutOfSync(reg, listOutOfSync(cluster.Ownership.Statuses))
	metrics.RegisterServices(reg, cluster.Services.CountStates)
	metrics.RegisterPrivateLinks(reg, cluster.Services.CountConnections)
	metrics.RegisterConflicts(reg, cluster.Contested)
	metrics.RegisterLeftovers(reg, cluster.Services.CountOrphans)
	metrics.RegisterDraining(reg, cluster.Draining.CountByReason)
	metrics.RegisterRetainedMembers(reg, cluster.Pools.Retention.CountHeld)
}

func newManager(ctx context.Context, o Options, cfg config.Config, rc *rest.Config, leaseNamespace string, fence *leader.Fence, first func(context.Context) error) (ctrl.Manager, error) {
	cached := cache.Options(cfg.Signals())
	if o.ReadinessGates {
		cached = cache.KeepSelectors(cached)
	}
	return process.NewManager(ctx, process.Manager{
		Options: o.processOptions(), LeaseName: LeaseName, LeaseNamespace: leaseNamespace, API: rc,
		LeaseAnnotations: map[string]string{k8s.ClassAnnotation: o.LoadBalancerClass},
		Scheme:           metadata.Scheme(), Cache: cached, Fence: fence, First: first,
	})
}

func resourceGroupID(cfg config.Config) string {
	return "/subscriptions/" + cfg.NetworkSubscriptionID() + "/resourceGroups/" + cfg.BackendResourceGroup()
}

func newCluster(ctx context.Context, o Options, in Dependencies, mgr ctrl.Manager, reach *k8s.Connection) (*controllers.Cluster, error) {
	cfg := in.Config
	return controllers.New(ctx, mgr, controllers.Options{
		SubscriptionID: cfg.NetworkSubscriptionID(), ResourceGroup: cfg.BackendResourceGroup(),
		ExcludeControlPlane: cfg.ShouldExcludeControlPlane(), Draining: cfg.Signals(), Requeue: o.Requeue, Connection: reach, Log: o.Log,
	})
}

// newLease returns the lock shared with other controllers of the load balancers, or nil if azure.json does
// not enable it.
func newLease(o Options, cfg config.Config, mgr ctrl.Manager, fence *leader.Fence, reg prometheus.Registerer) (updater.Lease, error) {
	if !cfg.IsResourceLeaseEnabled() {
		return nil, nil
	}
	holder, err := k8s.NewResourceLease(mgr.GetConfig(), mgr.GetHTTPClient(), fence)
	if err != nil {
		return nil, err
	}
	shared := leader.NewSharedLease(holder, k8s.ResourceTerm, o.Log)
	metrics.RegisterLease(reg, shared)
	return shared, nil
}

type measuredReporter struct {
	updater.Reporter
	metrics *metrics.PoolUpdates
	// pauseMachines pauses machine writes that may have conflicted with a pool write.
	pauseMachines func()
}

// Report implements updater.Reporter.
func (m measuredReporter) Report(ctx context.Context, r updater.Report) {
	if r.HadConflict && r.Outcome == diff.Retriable {
		m.pauseMachines()
	}
	m.metrics.Report(r)
	m.Reporter.Report(ctx, r)
}

// countConflicts counts writes that had to be repeated. If a repeated load balancer write failed too, it pauses
// machine writes, which may have conflicted.
func countConflicts(updates *metrics.PoolUpdates, yield func()) func(resource string, settled bool) {
	return func(resource string, settled bool) {
		updates.CountConflict(resource, settled)
		if resource == loadbalancer.ResourceLoadBalancer && !settled {
			yield()
		}
	}
}

// ReportWait implements updater.Reporter.
func (m measuredReporter) ReportWait(w updater.Waiting) {
	m.metrics.ReportWait(w)
	m.Reporter.ReportWait(w)
}
