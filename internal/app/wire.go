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

	"weir.dev/weir/internal/app/monitoring"
	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/leases"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lead"
	"weir.dev/weir/internal/lease"
	"weir.dev/weir/internal/metrics"
	"weir.dev/weir/internal/nicupdate"
	"weir.dev/weir/internal/pace"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/tracing"
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
	known, err := behaviourOf(o)
	if err != nil {
		return err
	}
	process.SaveMemory()
	spans := tracing.Start(ctx, "weir", Version, o.Log)
	defer spans.End(process.TracesTimeout)
	ways, err := azureOptions(o, cfg)
	if err != nil {
		return err
	}
	ways.TracerProvider = spans.Provider
	rc, inCluster, err := process.ClusterConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	if warning := ignored.Warning(); warning != "" {
		o.Log.Warn(warning, "config", o.ConfigFile)
	}
	process.SetLogger(o.process())
	return RunIn(ctx, o, Surroundings{
		Config: cfg, Behaviour: known, API: rc, InCluster: inCluster, Azure: ways, Metrics: ctrlmetrics.Registry,
	})
}

// Surroundings are the dependencies of a controller. RunIn changes no other global state, so several
// controllers can run in one process.
type Surroundings struct {
	Config    config.Config
	Behaviour behaviour.Behaviour
	// API is the API server; InCluster reports whether this process is a pod of its cluster.
	API       *rest.Config
	InCluster bool
	Azure     azure.Options
	Metrics   prometheus.Registerer
}

// RunIn is Run with explicit dependencies: it reads no file or environment variable.
func RunIn(ctx context.Context, o Options, in Surroundings) error {
	if err := o.validate(); err != nil {
		return err
	}
	cfg := in.Config
	o.known = in.Behaviour
	parent := ctx // done when the process should stop
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	fence := process.NewFence(o.process())
	writes := pace.New(cfg.WriteShare(), cfg.Interval())
	callLog := calls.New(callsKept)
	client, err := connect(o, cfg, in.Azure, observe(in.Metrics, callLog), fence, writes)
	if err != nil {
		return err
	}
	reach := apiserver.NewReach(ctx, o.Log)
	rc, namespace := process.WithReach(reach, in.API, "weir"), o.process().LeaseNamespace(in.InCluster)
	record, err := newRecord(o, cfg, rc, namespace, fence)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, cfg, rc, namespace, fence, record.kept(giveUp))
	if parent.Err() != nil {
		o.Log.Info("weir has stopped before it began")
		return nil
	}
	if err != nil {
		return err
	}
	if err := serveOperator(ctx, o, mgr, callLog); err != nil {
		return err
	}
	var cluster *kube.Cluster
	if err := monitoring.AddServers(ctx, mgr, monitoring.Options{
		HealthAddress: o.HealthAddress, MetricsAddress: o.MetricsAddress, MetricsSecure: o.MetricsSecure,
		Check: "caches", Ready: func(r *http.Request) error { return cluster.Synced(r) }, // the servers start with the manager
	}); err != nil {
		return err
	}
	if err := record.atStart(ctx, o.LeaderElect); err != nil {
		return err
	}
	cluster, err = newCluster(ctx, o, in, mgr, reach)
	if err != nil {
		return err
	}
	locker, err := newLease(o, cfg, mgr, fence, in.Metrics)
	if err != nil {
		return err
	}
	lanes, members, updates := newLanes(o, in, client, cluster, locker, writes, record)
	if err := newBalancers(o, in, client, cluster, lanes, locker, overtaken(updates, members.Yield), writes, record); err != nil {
		return err
	}
	listen := migrateFirst(o, cfg, client, cluster, locker, record, giveUp)
	register(in.Metrics, cfg, cluster, lanes, writes)
	metrics.RegisterMachines(in.Metrics, members.Machines)
	if err := cluster.Setup(lanes, members.Run, listen); err != nil {
		return err
	}
	o.Log.Info("weir starts", "version", Version, "cluster", o.ClusterName, "azure", cfg)
	if err := process.Lead(ctx, fence, giveUp, mgr.Start); err != nil {
		return err
	}
	o.Log.Info("weir has stopped")
	return nil
}

func newLanes(o Options, in Surroundings, client *azure.Client, cluster *kube.Cluster, locker poolupdate.Lease, writes *pace.Budgets, record recorded) (*poolupdate.Lanes, *nicupdate.Updater, *metrics.PoolUpdates) {
	cfg := in.Config
	updates := metrics.NewPoolUpdates(in.Metrics, home(cfg))
	var lanes *poolupdate.Lanes
	machines := machineLanes(o, cfg, client, cluster, locker)
	machines.Meter = metrics.NewMachines(in.Metrics)
	machines.Settled = func(pool lb.PoolID) { lanes.Settled(pool) }
	members := nicupdate.New(machines)
	lanes = poolupdate.New(poolupdate.Config{
		Whole: client, WholeWrites: cfg.WholeWrites(), Pipeline: client, Pipelined: cfg.Strategy().OfOverlapping(), Behaviour: o.known, Verdicts: record.wholeWrites(o), Version: Version,
		AdminState: cfg.SetsAdminState(),
		Lease:      locker, Writes: writes, Interval: cfg.Interval(), MaxRetries: cfg.Retries(), DriftPeriod: cfg.DriftPeriod(),
		Members: members,
		Azure:   client, Cluster: cluster.Pools.Controller, Ledger: cluster.Pools.Controller,
		Reporter: measured{cluster.Pools.Controller, updates, members.Yield}, Log: o.Log,
	})
	return lanes, members, updates
}

func home(cfg config.Config) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.BackendResourceGroup()}
}

func register(reg prometheus.Registerer, cfg config.Config, cluster *kube.Cluster, lanes *poolupdate.Lanes, writes *pace.Budgets) {
	metrics.RegisterWrites(reg, home(cfg), writes.Figures)
	metrics.RegisterLanes(reg, lanes)
	metrics.RegisterWholeWrites(reg, func() map[[2]string]int { return lanes.WholeWrites(cfg.SubscriptionID) })
	metrics.RegisterBuild(reg, Version)
	metrics.RegisterStates(reg, states(cluster.Own.Statuses))
	metrics.RegisterNotLevel(reg, notLevel(cluster.Own.Statuses))
	metrics.RegisterServices(reg, cluster.Services.States)
	metrics.RegisterPrivateLinks(reg, cluster.Services.Connections)
	metrics.RegisterContested(reg, cluster.Contested)
	metrics.RegisterLeftovers(reg, cluster.Services.Leftovers)
	metrics.RegisterDraining(reg, cluster.Draining.Count)
	metrics.RegisterHeldMembers(reg, cluster.Pools.Keeper.Held)
}

func newManager(ctx context.Context, o Options, cfg config.Config, rc *rest.Config, leaseNamespace string, fence *lead.Fence, first func(context.Context) error) (ctrl.Manager, error) {
	return process.NewManager(ctx, process.Manager{
		Options: o.process(), LeaseName: LeaseName, LeaseNamespace: leaseNamespace, API: rc,
		Scheme: view.Scheme(), Cache: view.CacheOptions(cfg.Signals()), Fence: fence, First: first,
	})
}

func place(cfg config.Config) string {
	return "/subscriptions/" + cfg.SubscriptionID + "/resourceGroups/" + cfg.BackendResourceGroup()
}

func newCluster(ctx context.Context, o Options, in Surroundings, mgr ctrl.Manager, reach *apiserver.Reach) (*kube.Cluster, error) {
	cfg := in.Config
	return kube.New(ctx, mgr, kube.Options{
		SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.BackendResourceGroup(),
		ExcludeControlPlane: cfg.ExcludesMaster(), Draining: cfg.Signals(), Requeue: o.Requeue, Reach: reach, Log: o.Log,
	})
}

// newLease returns the lock shared with other controllers of the load balancers, or nil if azure.json does
// not enable it.
func newLease(o Options, cfg config.Config, mgr ctrl.Manager, fence *lead.Fence, reg prometheus.Registerer) (poolupdate.Lease, error) {
	if !cfg.TakesResourceLease() {
		return nil, nil
	}
	holder, err := leases.NewResource(mgr.GetConfig(), mgr.GetHTTPClient(), fence)
	if err != nil {
		return nil, err
	}
	shared := lease.NewShared(holder, leases.ResourceTerm, o.Log)
	metrics.RegisterLease(reg, shared)
	return shared, nil
}

type measured struct {
	poolupdate.Reporter
	updates *metrics.PoolUpdates
	// yield pauses machine writes that may have conflicted with a pool write.
	yield func()
}

// Report implements poolupdate.Reporter.
func (m measured) Report(ctx context.Context, r poolupdate.Report) {
	if r.Overtaken && r.Outcome == poolwrite.Retriable {
		m.yield()
	}
	m.updates.Report(r)
	m.Reporter.Report(ctx, r)
}

// overtaken counts writes that had to be repeated. If a repeated load balancer write failed too, it pauses
// machine writes, which may have conflicted.
func overtaken(updates *metrics.PoolUpdates, yield func()) func(resource string, settled bool) {
	return func(resource string, settled bool) {
		updates.Overtaken(resource, settled)
		if resource == balancer.ResourceLoadBalancer && !settled {
			yield()
		}
	}
}

// Wait implements poolupdate.Reporter.
func (m measured) Wait(w poolupdate.Waiting) {
	m.updates.Wait(w)
	m.Reporter.Wait(w)
}
