// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/leader"
)

const (
	// stopTimeout bounds a clean shutdown; a pod's default grace period is 30 s.
	stopTimeout = 20 * time.Second
	// apiServerTimeout is the wait for the API server at start before a warning.
	apiServerTimeout = 4 * time.Second
	// TracesTimeout bounds the export of the last spans at shutdown.
	TracesTimeout = 2 * time.Second
)

// Manager configures NewManager in addition to the flags.
type Manager struct {
	Options
	LeaseName, LeaseNamespace string
	// LeaseAnnotations are added to the leader's Lease, which also gets the version.
	LeaseAnnotations map[string]string
	API              *rest.Config
	Scheme           *runtime.Scheme
	Cache            cache.Options
	// Fence stops writes after leadership is lost; nil without leader election.
	Fence *leader.Fence
	// First runs on the new leader before everything else; may be nil.
	First func(context.Context) error
}

// SetLogger redirects the logs of controller-runtime and client-go.
func SetLogger(o Options) {
	log := logr.FromSlogHandler(quietHandler{o.Log.Handler()})
	ctrl.SetLogger(log)
	klog.SetLogger(log)
}

// NewManager waits for the API server until ctx is done. The manager writes only while leading.
func NewManager(ctx context.Context, m Manager) (ctrl.Manager, error) {
	lock, err := m.newLock(ctx)
	if err != nil {
		return nil, err
	}
	silent := time.AfterFunc(apiServerTimeout, func() {
		m.Log.Warn("the API server has not responded yet, and Weir cannot start without it: check that it runs and is reachable (kubectl version)", "host", m.API.Host)
	})
	defer silent.Stop()
	opts := ctrl.Options{
		Logger:                              logr.FromSlogHandler(quietHandler{stopHandler{m.Log.Handler(), ctx}}),
		Controller:                          ctrlconfig.Controller{SkipNameValidation: new(true)}, // tests create several in one process
		Scheme:                              m.Scheme,
		Cache:                               m.Cache,
		NewCache:                            newCache(ctx),
		Metrics:                             metricsserver.Options{BindAddress: "0"}, // AddMonitoring serves both
		HealthProbeBindAddress:              "0",
		LeaderElection:                      m.LeaderElect,
		LeaderElectionID:                    m.LeaseName,
		LeaderElectionNamespace:             m.LeaseNamespace,
		LeaderElectionReleaseOnCancel:       true, // the leader's runnables have stopped by then
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       &m.Election.LeaseDuration,
		RenewDeadline:                       &m.Election.RenewDeadline,
		RetryPeriod:                         &m.Election.RetryPeriod,
		GracefulShutdownTimeout:             new(stopTimeout),
	}
	mgr, err := runUntilDone(ctx, func() (ctrl.Manager, error) { return ctrl.NewManager(k8s.WithFence(m.API, m.Fence), opts) })
	if unknown, ok := errors.AsType[*meta.NoKindMatchError](err); ok {
		return nil, fmt.Errorf("the cluster does not know %ss: apply config/crd first (kubectl apply --server-side -k config/crd): %w", unknown.GroupKind.Kind, err)
	}
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", m.API.Host, err)
	}
	return mgr, nil
}

// runUntilDone abandons create when ctx is done: create takes no context and waits minutes for an
// unresponsive API server.
func runUntilDone(ctx context.Context, create func() (ctrl.Manager, error)) (ctrl.Manager, error) {
	type result struct {
		ctrl.Manager

		err error
	}
	created := make(chan result, 1)
	go func() {
		mgr, err := create()
		created <- result{mgr, err}
	}()
	select {
	case r := <-created:
		return r.Manager, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
