// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/leader"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/observe/tracing"
	"weir.dev/weir/internal/provisioning"
	"weir.dev/weir/internal/provisioning/objects"
)

const programName = "weir-provisioner"

// runManager runs the provisioner until ctx is done or leadership is lost. A *process.UsageError means that the
// caller must correct something.
func runProvisioner(ctx context.Context, o process.Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	process.SetGCPercent()
	spans := tracing.Start(ctx, programName, process.Version, o.Log)
	defer spans.Shutdown(process.TracesTimeout)
	api, inCluster, err := process.ClusterConfig(o.Kubeconfig)
	if err != nil {
		return err
	}
	process.SetLogger(o)
	return runManager(ctx, o, dependencies{api, inCluster, spans.Provider, ctrlmetrics.Registry})
}

type dependencies struct {
	api       *rest.Config
	inCluster bool
	spans     trace.TracerProvider
	metrics   prometheus.Registerer
}

func runManager(ctx context.Context, o process.Options, in dependencies) error {
	stopped := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fence := process.NewFence(o)
	reach := k8s.NewConnection(ctx, o.Log)
	mgr, err := process.NewManager(ctx, process.Manager{
		Options: o, LeaseName: k8s.ProvisionerLease, LeaseNamespace: o.LeaseNamespace(in.inCluster), API: process.WithReachability(reach, in.api, programName),
		Scheme: metadata.Scheme(), Cache: objects.ProvisionerCacheOptions(), Fence: fence,
	})
	if stopped.Err() != nil {
		o.Log.Info("weir-provisioner has stopped before it began")
		return nil
	}
	if err != nil {
		return err
	}
	reconciler, err := newReconciler(ctx, o, mgr, fence, in.spans)
	if err != nil {
		return err
	}
	reach.SetCallbacks(func() {}, func() { reconciler.Retry(time.Now()) })
	metrics.RegisterProvisionerBuild(in.metrics, process.Version)
	metrics.RegisterProvisions(in.metrics, reconciler)
	o.Log.Info("weir-provisioner starts", "version", process.Version)
	if err := process.RunAsLeader(ctx, fence, cancel, mgr.Start); err != nil {
		return err
	}
	o.Log.Info("weir-provisioner has stopped")
	return nil
}

// newReconciler adds the Provision reconciler and the servers to the manager.
func newReconciler(ctx context.Context, o process.Options, mgr ctrl.Manager, fence *leader.Fence, spans trace.TracerProvider) (*provisioning.Reconciler, error) {
	if err := provisioning.CheckInstalled(ctx, mgr.GetAPIReader()); err != nil {
		return nil, fmt.Errorf("cannot read what it works on: %w", err)
	}
	core, err := typedcorev1.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("client for events: %w", err)
	}
	queue := k8s.NewEventQueue(mgr.GetScheme(), core.Events(""), o.Log)
	reconciler := provisioning.New(provisioning.Config{
		API: mgr.GetConfig(), Tokens: core, Cached: mgr.GetCache(), Live: mgr.GetAPIReader(), Writer: mgr.GetClient(), Events: queue,
		Fence: fence, Spans: spans, Log: o.Log,
	})
	synced, err := startInformers(ctx, mgr.GetCache())
	return reconciler, errors.Join(err,
		reconciler.Setup(mgr, o.Requeue),
		mgr.Add(k8s.EventRunnable{Runs: []func(context.Context){reconciler.Run}, Last: func() {}, Events: queue}),
		process.AddMonitoring(ctx, mgr, process.MonitoringOptions{
			HealthAddress: o.HealthAddress, MetricsAddress: o.MetricsAddress, MetricsSecure: o.MetricsSecure, ReadyName: "caches", Ready: synced,
		}),
	)
}

// startInformers starts the informers, so that a standby has warm caches.
func startInformers(ctx context.Context, from cache.Cache) (healthz.Checker, error) {
	var informers []cache.Informer
	for _, kind := range []client.Object{&v1alpha1.Provision{}, &v1alpha1.Partner{}, &v1alpha1.ProvisioningPolicy{}, &corev1.Namespace{}} {
		informer, err := from.GetInformer(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
		informers = append(informers, informer)
	}
	return func(*http.Request) error {
		for _, i := range informers {
			if !i.HasSynced() {
				return errors.New("the caches are not filled yet")
			}
		}
		return nil
	}, nil
}
