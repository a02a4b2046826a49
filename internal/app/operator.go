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

// callsKept is enough for several hours.
const callsKept = 4 << 20

func observe(reg prometheus.Registerer, callLog *calls.Log) func(calls.Call) {
	arm := metrics.NewARM(reg)
	return func(c calls.Call) {
		arm.Observe(c)
		callLog.Add(c)
	}
}

// serveOperator serves on every replica, leader or not.
func serveOperator(ctx context.Context, o Options, mgr ctrl.Manager, callLog *calls.Log) error {
	if !o.serves() {
		return nil
	}
	if err := monitoring.Add(ctx, mgr, "operator", o.OperatorAddress, httpserver.Options{Handler: operator.Handler(callLog), WriteTimeout: time.Minute}); err != nil {
		return fmt.Errorf("--operator-bind-address: %w", err)
	}
	return nil
}
