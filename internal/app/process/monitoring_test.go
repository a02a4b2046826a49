// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"weir.dev/weir/internal/observe/httpserver"
)

// servers is a manager that records added servers.
type servers struct {
	ctrl.Manager

	added []*manager.Server
}

func (s *servers) Add(r manager.Runnable) error {
	s.added = append(s.added, r.(*manager.Server))
	return nil
}

func (*servers) GetConfig() *rest.Config     { return &rest.Config{Host: "http://127.0.0.1:1"} }
func (*servers) GetHTTPClient() *http.Client { return &http.Client{} }
func (*servers) GetLogger() logr.Logger      { return logr.Discard() }

func (s *servers) close() {
	for _, each := range s.added {
		_ = each.Listener.Close()
	}
}

// Every server has the limits of package httpserver, and runs with and without leadership.
func TestServersAreBounded(t *testing.T) {
	mgr := &servers{}
	defer mgr.close()
	err := errors.Join(
		AddMonitoring(t.Context(), mgr, MonitoringOptions{HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0", MetricsSecure: true, ReadyName: "caches"}),
		AddMonitoringServer(t.Context(), mgr, "operator", "127.0.0.1:0", httpserver.Options{Handler: http.NotFoundHandler(), WriteTimeout: time.Minute}),
	)
	if err != nil || len(mgr.added) != 3 {
		t.Fatalf("%d servers, want 3: %v", len(mgr.added), err)
	}
	for _, each := range mgr.added {
		s := each.Server
		if s.MaxHeaderBytes != 16<<10 || s.ReadHeaderTimeout > 5*time.Second || s.ReadTimeout > 10*time.Second || s.WriteTimeout > time.Minute ||
			s.ReadHeaderTimeout*s.ReadTimeout*s.WriteTimeout == 0 || s.Protocols.HTTP2() || *each.ShutdownTimeout == 0 || each.OnlyServeWhenLeader {
			t.Errorf("%s: not bounded: %+v", each.Name, s)
		}
	}
	off := &servers{}
	if err := AddMonitoring(t.Context(), off, MonitoringOptions{HealthAddress: "0", MetricsAddress: "0", MetricsSecure: true}); err != nil || len(off.added) != 0 {
		t.Errorf("%d servers that are off: %v", len(off.added), err)
	}
}

func TestAnAddressThatIsTakenIsNamedByItsFlag(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	at := taken.Addr().String()
	for flag, o := range map[string]MonitoringOptions{
		"--health-probe-bind-address": {HealthAddress: at, MetricsAddress: "0"},
		"--metrics-bind-address":      {HealthAddress: "0", MetricsAddress: at},
	} {
		if err := AddMonitoring(t.Context(), &servers{}, o); err == nil || !strings.HasPrefix(err.Error(), flag+" "+at+": ") {
			t.Errorf("%v, want %s named", err, flag)
		}
	}
}

func TestHealth(t *testing.T) {
	ready := errors.New("the caches are not filled yet")
	h := healthHandler(MonitoringOptions{ReadyName: "caches", Ready: func(*http.Request) error { return ready }})
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, http.NoBody))
		return w.Code, w.Body.String()
	}
	for path, want := range map[string]int{"/healthz": 200, "/healthz/ping": 200, "/readyz": 500, "/readyz/caches": 500, "/": 404, "/metrics": 404} {
		if got, text := ask(path); got != want {
			t.Errorf("%s: %d %s, want %d", path, got, text, want)
		}
	}
	if _, text := ask("/readyz"); !strings.Contains(text, "caches") {
		t.Errorf("the check is not named: %s", text)
	}
	ready = nil
	if got, _ := ask("/readyz"); got != http.StatusOK {
		t.Errorf("ready: %d", got)
	}
}
