// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/metrics"
	"weir.dev/weir/internal/operator"
)

// callsKept is in how many bytes the last requests to Azure are kept: those of hours, as a rule.
const callsKept = 4 << 20

// observe counts each request to Azure, and keeps it for people.
func observe(reg prometheus.Registerer, asked *calls.Log) func(calls.Call) {
	arm := metrics.NewARM(reg)
	return func(c calls.Call) {
		arm.Observe(c)
		asked.Add(c)
	}
}

// serveOperator has the manager answer what people ask, also while this process does not lead.
func serveOperator(ctx context.Context, o Options, mgr ctrl.Manager, asked *calls.Log) error {
	if !o.serves() {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.OperatorAddress)
	if err != nil {
		return fmt.Errorf("--operator-bind-address: %w", err)
	}
	return mgr.Add(&manager.Server{Name: "operator", Listener: listener, Server: &http.Server{
		Handler: operator.Handler(asked), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}})
}
