// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// Write counts failed reconciliations in the log.
func (s *stage) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "Reconciler error") {
		s.mu.Lock()
		s.failures++
		s.mu.Unlock()
	}
	if os.Getenv("WEIR_TEST_LOG") != "" {
		return os.Stderr.Write(line)
	}
	return len(line), nil
}

func (s *stage) beforeNextReport(first func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforeReport = first
}

type counting struct {
	updater.Reporter

	s *stage
}

func (c counting) Report(ctx context.Context, r updater.Report) {
	c.s.mu.Lock()
	for reason, names := range map[string][]schedule.ServiceName{
		backendpool.EventUpdated: r.Updated, backendpool.EventRetrying: r.Retrying, backendpool.EventFailed: r.Failed,
	} {
		if len(names) > 0 {
			c.s.events[reason] += len(names)
		}
	}
	first := c.s.beforeReport
	c.s.beforeReport = nil
	c.s.mu.Unlock()
	if first != nil {
		first()
	}
	c.Reporter.Report(ctx, r)
}

// runningController is a controller. err is its manager's result, valid after ended is closed.
type runningController struct {
	stop  context.CancelFunc
	ended chan struct{}
	err   error
}

// runController runs a controller until the test ends.
func (s *stage) runController(requeue k8s.QueueBackoff, with ...func(*ctrl.Options)) *runningController {
	s.Helper()
	r, err := s.launch(requeue, with...)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// launch runs a controller with the application's wiring until the test ends. It waits for the API
// server.
func (s *stage) launch(requeue k8s.QueueBackoff, with ...func(*ctrl.Options)) (*runningController, error) {
	log := slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
	opts := ctrl.Options{
		Scheme: metadata.Scheme(), Cache: cache.Options(nil), Logger: logr.FromSlogHandler(log.Handler()),
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	for _, change := range with {
		change(&opts)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.Cleanup(cancel)
	reach := k8s.NewConnection(ctx, log)
	mgr, err := ctrl.NewManager(reach.ClientConfig(s.proxy.ClientConfig(), "weir/test"), opts)
	if err != nil {
		return nil, err
	}
	arm, err := s.azure()
	if err != nil {
		return nil, err
	}
	k, err := controllers.New(ctx, mgr, controllers.Options{
		SubscriptionID: subscription, ResourceGroup: "rg", Log: log, Requeue: requeue, Connection: reach, RecheckInterval: 500 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	lanes := updater.New(updater.Config{
		Interval: s.interval, MaxRetries: 1, Azure: arm, Cluster: k.Pools.Controller, StatusStore: k.Pools.Controller, Reporter: counting{k.Pools.Controller, s}, Log: log,
	})
	if err := k.Setup(lanes); err != nil {
		return nil, err
	}
	r := &runningController{stop: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = mgr.Start(ctx)
	}()
	s.Cleanup(func() { cancel(); <-r.ended })
	return r, nil
}
