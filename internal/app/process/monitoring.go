// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/observe/httpserver"
)

const (
	shutdownTimeout = 5 * time.Second
	// maxScrapes limits concurrent scrapes; each compresses all series.
	maxScrapes = 4
)

// MonitoringOptions configure the servers. An address is host:port, or 0 for off.
type MonitoringOptions struct {
	HealthAddress, MetricsAddress string
	// MetricsSecure serves metrics over HTTPS, only to clients that may get /metrics.
	MetricsSecure bool
	// Ready is the check of /readyz; Check is its name.
	Ready     healthz.Checker
	ReadyName string
}

// AddMonitoring adds both servers to a manager; its own must be disabled. They serve before the manager leads.
func AddMonitoring(ctx context.Context, mgr ctrl.Manager, o MonitoringOptions) error {
	if err := AddMonitoringServer(ctx, mgr, "health probe", o.HealthAddress, httpserver.Options{Handler: healthHandler(o)}); err != nil {
		return fmt.Errorf("--health-probe-bind-address %s: %w", o.HealthAddress, err)
	}
	server, err := metricsServer(mgr, o)
	if err != nil {
		return err
	}
	if err := AddMonitoringServer(ctx, mgr, "metrics", o.MetricsAddress, server); err != nil {
		return fmt.Errorf("--metrics-bind-address %s: %w", o.MetricsAddress, err)
	}
	return nil
}

// AddMonitoringServer opens an address and adds a server to a manager, unless the address is 0.
func AddMonitoringServer(ctx context.Context, mgr ctrl.Manager, name, address string, o httpserver.Options) error {
	if address == "0" {
		return nil
	}
	s, err := httpserver.Listen(ctx, address, o)
	if err != nil {
		return err
	}
	return mgr.Add(&manager.Server{Name: name, Server: s.Server, Listener: s.Listener, ShutdownTimeout: new(shutdownTimeout)})
}

func healthHandler(o MonitoringOptions) http.Handler {
	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{"/healthz": {"ping": healthz.Ping}, "/readyz": {o.ReadyName: o.Ready}} {
		h := http.StripPrefix(path, &healthz.Handler{Checks: checks})
		mux.Handle(path, h)
		mux.Handle(path+"/", h)
	}
	return mux
}

// metricsServer uses a self-signed certificate if secure: it authenticates clients, not the server.
func metricsServer(mgr ctrl.Manager, o MonitoringOptions) (httpserver.Options, error) {
	h := promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError, MaxRequestsInFlight: maxScrapes})
	server := httpserver.Options{}
	if o.MetricsSecure && o.MetricsAddress != "0" {
		filter, err := k8s.MetricsAccess(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return server, err
		}
		if h, err = filter(mgr.GetLogger().WithValues("path", "/metrics"), h); err != nil {
			return server, err
		}
		certificate, err := httpserver.SelfSigned(time.Now())
		if err != nil {
			return server, err
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}} //nolint:gosec // httpserver sets the lowest version
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", h)
	server.Handler = mux
	return server, nil
}
