// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/observe/httpserver"
	"weir.dev/weir/internal/observe/metrics"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

// maxCallLogBytes is enough for several hours.
const maxCallLogBytes = 4 << 20

func newObserver(reg prometheus.Registerer, callLog *requestlog.Log) func(requestlog.Call) {
	arm := metrics.NewARMRequests(reg)
	return func(c requestlog.Call) {
		arm.ObserveRequest(c)
		callLog.Add(c)
	}
}

// addOperatorServer serves on every replica, leader or not.
func addOperatorServer(ctx context.Context, o Options, mgr ctrl.Manager, callLog *requestlog.Log, writes *ratelimit.Budgets, health http.Handler, limits func() []plan.LimitUsage) error {
	if !o.hasOperatorServer() {
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("/", requestlog.NewHandler(callLog))
	mux.Handle("GET "+healthPath, health)
	mux.Handle("GET "+limitsPath, serveLimits(limits))
	mux.Handle("GET "+budgetPath, serveBudget(callLog, writes))
	if err := process.AddMonitoringServer(ctx, mgr, "operator", o.OperatorAddress, httpserver.Options{Handler: mux, WriteTimeout: time.Minute}); err != nil {
		return fmt.Errorf("--operator-bind-address: %w", err)
	}
	return nil
}
