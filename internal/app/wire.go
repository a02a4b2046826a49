// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

// LeaseName is the Lease of the leader; config/rbac names it too.
const LeaseName = "weir-controller"

// stopWithin bounds a clean stop. It is below the 30 s that a pod is given.
const stopWithin = 20 * time.Second

// silentFor is how long the API server may take at a start until people hear of it.
const silentFor = 4 * time.Second

// tracesEndWithin bounds how long the last spans may take, once all else has stopped.
const tracesEndWithin = 2 * time.Second

// Run runs the controller until the context is done, or until it loses the lead.
// A *UsageError means that the caller has to correct something.
func Run(ctx context.Context, o Options) error {
	if err := o.validate(); err != nil {
		return err
	}
	cfg, ignored, err := config.Load(o.ConfigFile)
	if err != nil {
		return &UsageError{fmt.Errorf("--config: %w", err)}
	}
	known, err := behaviourOf(o)
	if err != nil {
		return err
	}
	saveMemory()
	spans := tracing.Start(ctx, Version, o.Log)
	defer spans.End(tracesEndWithin)
	ways, err := azureOptions(o, cfg)
	if err != nil {
		return err
	}
	ways.TracerProvider = spans.Provider
	rc, inCluster, err := clusterConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	if warning := ignored.Warning(); warning != "" {
		o.Log.Warn(warning, "config", o.ConfigFile)
	}
	log := logr.FromSlogHandler(quiet{o.Log.Handler()})
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	return RunIn(ctx, o, Surroundings{
		Config: cfg, Behaviour: known, API: rc, InCluster: inCluster, Azure: ways, Metrics: ctrlmetrics.Registry,
	})
}

// Surroundings are what a controller finds in its process. Nothing else that is shared there
// is changed by RunIn, so that several controllers may follow each other, or run side by side.
type Surroundings struct {
	// Config is azure.json.
	Config config.Config
	// Behaviour is what is known of Azure; empty where nothing is.
	Behaviour behaviour.Behaviour
	// API is how the API server is reached, InCluster whether this is a pod of its cluster.
	API       *rest.Config
	InCluster bool
	// Azure is how Azure is reached: the endpoint, the credential and the transport of it.
	Azure azure.Options
	// Metrics gets the series.
	Metrics prometheus.Registerer
}

// RunIn is Run in surroundings that are there: no file is read, and no variable.
func RunIn(ctx context.Context, o Options, in Surroundings) error {
	if err := o.validate(); err != nil {
		return err
	}
	cfg := in.Config
	o.known = in.Behaviour
	told := ctx // by who runs it, to stop
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	fence := newFence(o)
	writes := pace.New(cfg.WriteShare(), cfg.Interval())
	asked := calls.New(callsKept)
	client, err := connect(o, cfg, in.Azure, observe(in.Metrics, asked), fence, writes)
	if err != nil {
		return err
	}
	reach := apiserver.NewReach(ctx, o.Log)
	rc, namespace := asWeir(reach, in.API), o.leaseNamespace(in.InCluster)
	record, err := newRecord(o, cfg, rc, namespace, fence)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, cfg, rc, namespace, fence, record.kept(giveUp))
	if told.Err() != nil {
		o.Log.Info("weir has stopped before it began")
		return nil
	}
	if err != nil {
		return err
	}
	if err := serveOperator(ctx, o, mgr, asked); err != nil {
		return err
	}
	if err := record.atStart(ctx, o.LeaderElect); err != nil {
		return err
	}
	cluster, err := newCluster(ctx, o, in, mgr, reach, fence)
	if err != nil {
		return err
	}
	locker, err := newLease(o, cfg, mgr, fence, in.Metrics)
	if err != nil {
		return err
	}
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
	if err := newBalancers(o, in, client, cluster, lanes, locker, overtaken(updates, members.Yield), writes, namespace); err != nil {
		return err
	}
	listen := migrateFirst(o, cfg, client, cluster, locker, record, giveUp)
	register(in.Metrics, cfg, cluster, lanes, writes)
	metrics.RegisterMachines(in.Metrics, members.Machines)
	if err := cluster.Setup(lanes, members.Run, listen); err != nil {
		return err
	}
	o.Log.Info("weir starts", "version", Version, "cluster", o.ClusterName, "azure", cfg)
	if err := leading(ctx, fence, giveUp, mgr.Start); err != nil {
		return err
	}
	o.Log.Info("weir has stopped")
	return nil
}

// home is where azure.json has the load balancers.
func home(cfg config.Config) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.BackendResourceGroup()}
}

// register has the metrics ask the rooms when somebody looks.
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
	if cluster.Provisions != nil {
		metrics.RegisterProvisions(reg, cluster.Provisions)
	}
}

func newManager(ctx context.Context, o Options, cfg config.Config, rc *rest.Config, leaseNamespace string, fence *lead.Fence, first func(context.Context) error) (ctrl.Manager, error) {
	lock, err := newLock(ctx, o, rc, leaseNamespace, fence, first)
	if err != nil {
		return nil, err
	}
	silent := time.AfterFunc(silentFor, func() {
		o.Log.Warn("the API server has not answered yet, and Weir cannot start without it: see whether it runs, and the way to it, e.g. with kubectl version", "host", rc.Host)
	})
	defer silent.Stop()
	opts := ctrl.Options{
		Logger:                              logr.FromSlogHandler(quiet{calmStop{o.Log.Handler(), ctx}}),
		Controller:                          ctrlconfig.Controller{SkipNameValidation: new(true)}, // another may have run in this process
		Scheme:                              view.Scheme(),
		Cache:                               view.CacheOptions(cfg.Signals()),
		NewCache:                            newCache(ctx),
		Metrics:                             metricsOptions(o),
		HealthProbeBindAddress:              o.HealthAddress,
		LeaderElection:                      o.LeaderElect,
		LeaderElectionID:                    LeaseName,
		LeaderElectionNamespace:             leaseNamespace,
		LeaderElectionReleaseOnCancel:       true, // the lanes have stopped by then
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       &o.Election.LeaseDuration,
		RenewDeadline:                       &o.Election.RenewDeadline,
		RetryPeriod:                         &o.Election.RetryPeriod,
		GracefulShutdownTimeout:             new(stopWithin),
	}
	mgr, err := unlessStopped(ctx, func() (ctrl.Manager, error) { return ctrl.NewManager(leases.Fenced(rc, fence), opts) })
	if _, unknown := errors.AsType[*meta.NoKindMatchError](err); unknown {
		return nil, fmt.Errorf("the cluster does not know BackendPools: apply config/crd first (kubectl apply --server-side -k config/crd): %w", err)
	}
	if at, listens := errors.AsType[*net.OpError](err); listens && at.Op == "listen" {
		return nil, fmt.Errorf("--health-probe-bind-address %s: %w", o.HealthAddress, at)
	}
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return mgr, nil
}

// unlessStopped returns what is made, or why the process ends before that: the API server is asked without a
// context, and one that says nothing is waited for for minutes.
func unlessStopped(ctx context.Context, makes func() (ctrl.Manager, error)) (ctrl.Manager, error) {
	type made struct {
		ctrl.Manager

		err error
	}
	end := make(chan made, 1)
	go func() {
		mgr, err := makes()
		end <- made{mgr, err}
	}()
	select {
	case is := <-end:
		return is.Manager, is.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// place is the resource group of the load balancers, as an ARM id.
func place(cfg config.Config) string {
	return "/subscriptions/" + cfg.SubscriptionID + "/resourceGroups/" + cfg.BackendResourceGroup()
}

// metricsOptions say how metrics are served. A certificate that the server makes for itself is
// enough: it is the reader who has to show who they are.
func metricsOptions(o Options) metricsserver.Options {
	if !o.MetricsSecure {
		return metricsserver.Options{BindAddress: o.MetricsAddress}
	}
	return metricsserver.Options{
		BindAddress: o.MetricsAddress, SecureServing: true, FilterProvider: apiserver.MetricsAccess,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"} }},
	}
}

func newCluster(ctx context.Context, o Options, in Surroundings, mgr ctrl.Manager, reach *apiserver.Reach, fence *lead.Fence) (*kube.Cluster, error) {
	cfg := in.Config
	cluster, err := kube.New(ctx, mgr, kube.Options{
		SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.BackendResourceGroup(),
		ExcludeControlPlane: cfg.ExcludesMaster(), Draining: cfg.Signals(), Requeue: o.Requeue, Reach: reach, Log: o.Log,
		Provisioning: o.Provisioning, Fence: fence, Spans: in.Azure.TracerProvider,
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("healthz: %w", err)
	}
	if err := mgr.AddReadyzCheck("caches", cluster.Synced); err != nil {
		return nil, fmt.Errorf("readyz: %w", err)
	}
	return cluster, nil
}

// newLease returns the lock that other controllers of the load balancers take, or nil,
// which sends no request for it, if azure.json does not ask for it.
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

// measured measures every attempt that it reports.
type measured struct {
	poolupdate.Reporter
	updates *metrics.PoolUpdates
	// yield has machines wait that may have overtaken a write.
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

// overtaken measures what was written a second time, and has machines wait for a load balancer whose second
// write they may have overtaken, too.
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
