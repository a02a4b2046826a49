// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir.dev/weir/internal/app/process"
	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/k8s"
	lab "weir.dev/weir/lab/apiserver"
)

func valid() Options {
	return Options{
		ClusterName: "kubernetes", MetricsAddress: "0", HealthAddress: "127.0.0.1:0",
		Requeue: k8s.DefaultQueueBackoff(), Election: k8s.DefaultElection(), Log: slog.New(slog.DiscardHandler),
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		change   func(*Options)
		wantText string // empty: valid
	}{
		{func(*Options) {}, ""},
		{func(o *Options) { o.MetricsAddress = ":8080" }, `--metrics-bind-address ":8080": anyone with access to it`},
		{func(o *Options) { o.MetricsAddress, o.MetricsSecure = ":8443", true }, ""},
		{func(o *Options) { o.MetricsAddress = "0.0.0.0:8080" }, `--metrics-bind-address "0.0.0.0:8080": anyone with access`},
		{func(o *Options) { o.MetricsAddress = "10.0.0.1:8080" }, `--metrics-bind-address "10.0.0.1:8080": anyone with access`},
		{func(o *Options) { o.MetricsAddress = "metrics:8080" }, `--metrics-bind-address "metrics:8080": anyone with access`},
		{func(o *Options) { o.MetricsAddress = "localhost:8080" }, ""},
		{func(o *Options) { o.MetricsAddress = "127.3.2.1:8080" }, ""},
		{func(o *Options) { o.MetricsAddress = "[::1]:8080" }, ""},
		{func(o *Options) { o.MetricsAddress = "[::ffff:127.0.0.1]:8080" }, ""},
		{func(o *Options) { o.ClusterName = "" }, "--cluster-name"},
		{func(o *Options) { o.ClusterName = "a/b" }, `--cluster-name "a/b"`},
		{func(o *Options) { o.MetricsAddress = "8080" }, `--metrics-bind-address "8080"`},
		{func(o *Options) { o.HealthAddress = "localhost" }, `--health-probe-bind-address "localhost"`},
		{func(o *Options) { o.LoadBalancerClass = "weir.dev/azure" }, ""},
		{func(o *Options) { o.LoadBalancerClass = "weir dev" }, `--load-balancer-class "weir dev": want a name such as weir.dev/azure`},
		{func(o *Options) { o.Requeue.BaseDelay = 0 }, "--requeue-base-delay 0s: want more than 0"},
		{func(o *Options) { o.Requeue.BaseDelay = -time.Second }, "--requeue-base-delay -1s"},
		{func(o *Options) { o.Requeue.MaxDelay = time.Millisecond }, "--requeue-max-delay 1ms: want at least the base delay, 5ms"},
		{func(o *Options) { o.Requeue.MaxDelay = o.Requeue.BaseDelay }, ""},
		{func(o *Options) { o.Requeue.QPS = 0 }, "--requeue-qps 0"},
		{func(o *Options) { o.Requeue.QPS = math.NaN() }, "--requeue-qps NaN"},
		{func(o *Options) { o.Requeue.QPS = math.Inf(1) }, "--requeue-qps +Inf"},
		{func(o *Options) { o.Requeue.QPS = 0.1 }, ""},
		{func(o *Options) { o.Election.RetryPeriod = 0 }, "--leader-elect-retry-period 0s: want more than 0"},
		{func(o *Options) { o.Election.RenewDeadline = 2400 * time.Millisecond }, "--leader-elect-renew-deadline 2.4s: want more than 2.4s"},
		{func(o *Options) { o.Election.LeaseDuration = 10 * time.Second }, "--leader-elect-lease-duration 10s: want more than the renew deadline, 10s"},
		{func(o *Options) { o.Election.LeaseDuration = 15500 * time.Millisecond }, "--leader-elect-lease-duration 15.5s: want whole seconds"},
		{func(o *Options) {
			o.Election = k8s.Election{LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: time.Second}
		}, ""},
		{func(o *Options) { o.Requeue.Burst = 0 }, "--requeue-burst 0: want at least 1"},
	}
	for _, tt := range tests {
		o := valid()
		tt.change(&o)
		err := o.validate()
		_, usage := errors.AsType[*UsageError](err)
		if (err == nil) != (tt.wantText == "") || err != nil && (!usage || !strings.HasPrefix(err.Error(), tt.wantText)) {
			t.Errorf("got %v, want %q", err, tt.wantText)
		}
	}
}

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{"auto": `"msg":"hello"`, "json": `"msg":"hello"`, "text": "msg=hello"} {
		var out bytes.Buffer
		log, err := NewLog(&out, format, 0)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("hello")
		log.Debug("why nothing was done")
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "why") {
			t.Errorf("%s: %q", format, got)
		}
	}
	if _, err := NewLog(&bytes.Buffer{}, "xml", 0); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("xml: %v", err)
	}
}

func TestVerbosityOne(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLog(&out, "text", 1)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("why nothing was done")
	if !strings.Contains(out.String(), "why") {
		t.Error("-v 1 does not show what says why nothing was done")
	}
}

func TestLeaseNamespace(t *testing.T) {
	o := valid()
	if got := o.processOptions().LeaseNamespace(false); got != "kube-system" {
		t.Errorf("outside a cluster: %s", got)
	}
	o.LeaderElectNamespace = "mine"
	if got := o.processOptions().LeaseNamespace(true); got != "mine" {
		t.Errorf("as told: %s", got)
	}
}

// Without the setting the lease is a nil interface, not a typed nil.
func TestNoResourceLeaseUnlessAskedFor(t *testing.T) {
	if l, err := newLease(valid(), config.Config{}, nil, nil, prometheus.NewRegistry()); l != nil || err != nil {
		t.Errorf("got %v, %v", l, err)
	}
}

// client-go's default limit of five requests per second would delay status updates.
func TestTheClientIsNotLimited(t *testing.T) {
	o := valid()
	o.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	kc := `{"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`
	if err := os.WriteFile(o.Kubeconfig, []byte(kc), 0o600); err != nil {
		t.Fatal(err)
	}
	rc, inCluster, err := process.ClusterConfig(o.Kubeconfig)
	if err != nil || inCluster {
		t.Fatalf("in a cluster: %v, %v", inCluster, err)
	}
	rc = process.WithReachability(k8s.NewConnection(t.Context(), o.Log), rc, "weir")
	if rc.QPS != -1 || !strings.Contains(rc.UserAgent, "weir/") {
		t.Errorf("QPS %v, user agent %q", rc.QPS, rc.UserAgent)
	}
}

func TestCloudOfConfiguration(t *testing.T) {
	environment := filepath.Join(t.TempDir(), "environment.json")
	if err := os.WriteFile(environment, []byte(`{"resourceManagerEndpoint":"http://10.1.2.3"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := config.Config{}
	secret.SubscriptionID, secret.ResourceGroup = "s", "rg"
	secret.TenantID, secret.AADClientID, secret.AADClientSecret = "t", "c", "hunter2"
	other := secret
	other.Name = "AzureMoonCloud"
	none := config.Config{Cloud: secret.Cloud}
	tests := []struct {
		name        string
		cfg         config.Config
		emulator    string
		environment string
		wantText    string
	}{
		{"a client secret", secret, "", "", ""},
		{"an emulator needs no identity", none, "http://127.0.0.1:9443", "", ""},
		{"no identity", none, "", "", "no identity is configured"},
		{"no such cloud", other, "", "", `"AzureMoonCloud"`},
		{"an emulator elsewhere", none, "http://10.0.0.1:80", "", "--azure-endpoint"},
		{"plain HTTP elsewhere, by the environment file", secret, "", environment, "loopback"},
		{"no such environment file", secret, "", "/nonexistent", "AZURE_ENVIRONMENT_FILEPATH"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(config.EnvironmentVariable, tt.environment)
			o := valid()
			o.AzureEndpoint = tt.emulator
			_, err := NewClient(o, tt.cfg)
			if (err == nil) != (tt.wantText == "") || err != nil && !strings.Contains(err.Error(), tt.wantText) {
				t.Errorf("got %v, want %q", err, tt.wantText)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the secret is in the error: %v", err)
			}
		})
	}
}

// If the probe address is in use, the error names its flag.
func TestAnAddressThatIsTakenIsNamed(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	server := lab.New(lab.Options{Seed: 1})
	defer server.Close()
	definition, err := os.ReadFile("../../config/crd/weir.dev_backendpools.yaml")
	if err := errors.Join(err, server.Install(definition)); err != nil {
		t.Fatal(err)
	}
	o := valid()
	o.LeaderElect, o.HealthAddress = false, taken.Addr().String()
	mgr, err := newManager(t.Context(), o, config.Config{}, server.RESTConfig("weir"), "weir-system", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = process.AddMonitoring(t.Context(), mgr, process.MonitoringOptions{HealthAddress: o.HealthAddress, MetricsAddress: "0"})
	if err == nil || !strings.HasPrefix(err.Error(), "--health-probe-bind-address "+o.HealthAddress+": ") || strings.Contains(err.Error(), "API server") {
		t.Error(err)
	}
}

// Without a kubeconfig, the error names the searched paths.
func TestKubeconfigError(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nowhere/a"+string(filepath.ListSeparator)+"/nowhere/b")
	_, _, err := process.ClusterConfig("")
	if want := "no kubeconfig in /nowhere/a nor in /nowhere/b: name one by --kubeconfig or $KUBECONFIG"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if _, _, err := process.ClusterConfig("/nowhere/c"); err == nil || !strings.HasPrefix(err.Error(), `--kubeconfig "/nowhere/c": `) {
		t.Error(err)
	}
}
