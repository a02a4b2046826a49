// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"

	"weir.dev/weir/internal/app/monitoring"
	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/httpserver"
	"weir.dev/weir/internal/metrics"
	"weir.dev/weir/internal/operator"
)

// maxCallLogBytes is enough for several hours.
const maxCallLogBytes = 4 << 20

func newObserver(reg prometheus.Registerer, callLog *calls.Log) func(calls.Call) {
	arm := metrics.NewARMRequests(reg)
	return func(c calls.Call) {
		arm.ObserveRequest(c)
		callLog.Add(c)
	}
}

// addOperatorServer serves on every replica, leader or not.
func addOperatorServer(ctx context.Context, o Options, mgr ctrl.Manager, callLog *calls.Log) error {
	if !o.hasOperatorServer() {
		return nil
	}
	if err := monitoring.AddServer(ctx, mgr, "operator", o.OperatorAddress, httpserver.Options{Handler: operator.NewHandler(callLog), WriteTimeout: time.Minute}); err != nil {
		return fmt.Errorf("--operator-bind-address: %w", err)
	}
	return nil
}
