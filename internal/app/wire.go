// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lead"
	"weir.dev/weir/internal/lease"
	"weir.dev/weir/internal/metrics"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/tracing"
)

// leaseName is the Lease of the leader; config/rbac names it too.
const leaseName = "weir-controller"

// stopWithin bounds a clean stop. It is below the 30 s that a pod is given.
const stopWithin = 20 * time.Second

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
	if o.known, err = behaviourOf(o); err != nil {
		return err
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	fence := newFence(o)
	arm := metrics.NewARM(ctrlmetrics.Registry)
	spans := tracing.Start(ctx, Version, o.Log)
	defer spans.End(tracesEndWithin)
	client, err := newAzure(o, cfg, arm, fence, spans.Provider)
	if err != nil {
		return err
	}
	reach := kube.NewReach(ctx, o.Log)
	rc, inCluster, err := o.restConfig(reach)
	if err != nil {
		return err
	}
	if warning := ignored.Warning(); warning != "" {
		o.Log.Warn(warning, "config", o.ConfigFile)
	}
	log := logr.FromSlogHandler(calmStop{o.Log.Handler(), ctx})
	ctrl.SetLogger(log)
	klog.SetLogger(log)

	record, err := newRecord(o, cfg, rc, o.leaseNamespace(inCluster), fence)
	if err != nil {
		return err
	}
	mgr, err := newManager(ctx, o, cfg, rc, o.leaseNamespace(inCluster), fence, record.kept(giveUp))
	if err != nil {
		return err
	}
	if err := record.atStart(ctx, o.LeaderElect); err != nil {
		return err
	}
	cluster, err := newCluster(ctx, o, cfg, mgr, reach)
	if err != nil {
		return err
	}
	locker, err := newLease(o, cfg, mgr, fence)
	if err != nil {
		return err
	}
	place := lb.LoadBalancerID{SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.BackendResourceGroup()}
	updates := metrics.NewPoolUpdates(ctrlmetrics.Registry, place)
	lanes := poolupdate.New(poolupdate.Config{
		Whole: client, WholeWrites: cfg.WholeWrites(), Behaviour: o.known, Verdicts: record.wholeWrites(o), Version: Version,
		AdminState: cfg.SetsAdminState(),
		Lease:      locker, Interval: cfg.Interval(), MaxRetries: cfg.Retries(), DriftPeriod: cfg.DriftPeriod(),
		Azure: client, Cluster: cluster.BackendPools(), Ledger: cluster.BackendPools(),
		Reporter: measured{cluster.BackendPools(), updates}, Log: o.Log,
	})
	metrics.RegisterLanes(ctrlmetrics.Registry, lanes)
	metrics.RegisterWholeWrites(ctrlmetrics.Registry, func() map[[2]string]int { return lanes.WholeWrites(cfg.SubscriptionID) })
	metrics.RegisterStates(ctrlmetrics.Registry, cluster.States)
	metrics.RegisterServices(ctrlmetrics.Registry, cluster.ServiceStates)
	metrics.RegisterContested(ctrlmetrics.Registry, cluster.Contested)
	metrics.RegisterLeftovers(ctrlmetrics.Registry, cluster.Leftovers)
	metrics.RegisterDraining(ctrlmetrics.Registry, cluster.NodesDraining)
	if err := newBalancers(o, cfg, client, cluster, lanes, locker, updates.Overtaken, o.leaseNamespace(inCluster)); err != nil {
		return err
	}
	if err := cluster.Setup(lanes); err != nil {
		return err
	}
	o.Log.Info("weir starts", "version", Version, "cluster", o.ClusterName, "azure", cfg)
	if err := leading(ctx, fence, giveUp, mgr.Start); err != nil {
		return err
	}
	o.Log.Info("weir has stopped")
	return nil
}

func newManager(ctx context.Context, o Options, cfg config.Config, rc *rest.Config, leaseNamespace string, fence *lead.Fence, first func(context.Context) error) (ctrl.Manager, error) {
	lock, err := newLock(ctx, o, rc, leaseNamespace, fence, first)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(kube.Fenced(rc, fence), ctrl.Options{
		Scheme:                              kube.Scheme(),
		Cache:                               kube.CacheOptions(cfg.Signals()),
		Metrics:                             metricsOptions(o),
		HealthProbeBindAddress:              o.HealthAddress,
		LeaderElection:                      o.LeaderElect,
		LeaderElectionID:                    leaseName,
		LeaderElectionNamespace:             leaseNamespace,
		LeaderElectionReleaseOnCancel:       true, // the lanes have stopped by then
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       &o.Election.LeaseDuration,
		RenewDeadline:                       &o.Election.RenewDeadline,
		RetryPeriod:                         &o.Election.RetryPeriod,
		GracefulShutdownTimeout:             new(stopWithin),
	})
	if _, unknown := errors.AsType[*meta.NoKindMatchError](err); unknown {
		return nil, fmt.Errorf("the cluster does not know BackendPools: apply config/crd first (kubectl apply --server-side -k config/crd): %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", rc.Host, err)
	}
	return mgr, nil
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
		BindAddress: o.MetricsAddress, SecureServing: true, FilterProvider: kube.MetricsAccess,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.NextProtos = tls.VersionTLS12, []string{"http/1.1"} }},
	}
}

func newCluster(ctx context.Context, o Options, cfg config.Config, mgr ctrl.Manager, reach *kube.Reach) (*kube.Cluster, error) {
	cluster, err := kube.New(ctx, mgr, kube.Options{
		SubscriptionID: cfg.SubscriptionID, ResourceGroup: cfg.BackendResourceGroup(),
		ExcludeControlPlane: cfg.ExcludesMaster(), Draining: cfg.Signals(), Requeue: o.Requeue, Reach: reach, Log: o.Log,
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
func newLease(o Options, cfg config.Config, mgr ctrl.Manager, fence *lead.Fence) (poolupdate.Lease, error) {
	if !cfg.TakesResourceLease() {
		return nil, nil
	}
	holder, err := kube.NewResourceLease(mgr.GetConfig(), mgr.GetHTTPClient(), fence)
	if err != nil {
		return nil, err
	}
	shared := lease.NewShared(holder, kube.ResourceLeaseTerm, o.Log)
	metrics.RegisterLease(ctrlmetrics.Registry, shared)
	return shared, nil
}

// measured measures every attempt that it reports.
type measured struct {
	poolupdate.Reporter
	updates *metrics.PoolUpdates
}

// Report implements poolupdate.Reporter.
func (m measured) Report(ctx context.Context, r poolupdate.Report) {
	m.updates.Report(r)
	m.Reporter.Report(ctx, r)
}

// Wait implements poolupdate.Reporter.
func (m measured) Wait(w poolupdate.Waiting) {
	m.updates.Wait(w)
	m.Reporter.Wait(w)
}
