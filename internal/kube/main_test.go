// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"weir.dev/weir/internal/armemu"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/poolupdate"
)

const (
	subscription = "00000000-0000-0000-0000-000000000000"
	network      = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Network"
	vnetID       = network + "/virtualNetworks/vnet"
)

// The tests share one API server, one cloud and one controller; each has a namespace,
// a load balancer and nodes of its own.
var (
	cluster    *envtest.Environment
	api        client.Client
	cloud      *armemu.Emulator
	controller *running
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	// The tests wait more than they work, so more of them run at once than there are CPUs.
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		return m.Run(), nil // nothing that is fuzzed needs a cluster: run it with -run='^$'
	}
	if err := flag.Set("test.parallel", "16"); err != nil {
		return 1, err
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(root, "bin")
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			return 1, fmt.Errorf("%w: run make kubelab first", err)
		}
	}
	cluster = &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        []string{filepath.Join(root, "config", "crd", "weir.dev_backendpools.yaml")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: time.Minute,
	}
	cfg, err := cluster.Start()
	if err != nil {
		return 1, fmt.Errorf("starting kube-apiserver: %w", err)
	}
	defer func() {
		if stopErr := cluster.Stop(); stopErr != nil && err == nil {
			err = stopErr
		}
	}()
	cfg.QPS = -1
	if api, err = client.New(cfg, client.Options{Scheme: kube.Scheme()}); err != nil {
		return 1, err
	}
	cloud = armemu.New(armemu.Options{Seed: 1})
	if err := cloud.Put(vnetID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/16"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefixes":["10.0.0.0/8","fd00::/16"]}}]}}`)); err != nil {
		return 1, err
	}
	if controller, err = start(); err != nil {
		return 1, err
	}
	defer func() {
		if stopErr := controller.stop(); stopErr != nil && err == nil {
			err = stopErr
		}
	}()
	return m.Run(), nil
}

// running is a controller as the application wires it, over the emulator.
type running struct {
	kube  *kube.Cluster
	lanes *poolupdate.Lanes
	stop  func() error
}

func start() (*running, error) { return startWith(nil) }

// startWith starts a controller that takes this lease before a pass; nil is none.
func startWith(lease poolupdate.Lease) (*running, error) {
	level := slog.LevelError + 1
	if os.Getenv("WEIR_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	mgr, err := ctrl.NewManager(cluster.Config, ctrl.Options{
		Scheme: kube.Scheme(), Cache: kube.CacheOptions(), Logger: logr.FromSlogHandler(log.Handler()),
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	endpoint, token, err := azure.Emulator("http://127.0.0.1:1")
	if err != nil {
		return nil, err
	}
	arm, err := azure.New(azure.Options{
		Endpoint: endpoint, Credential: token, Transport: &wire{to: cloud.Transport()}, UserAgent: "weir/test",
		VirtualNetworkID: vnetID, Retry: azure.Retry{MaxRetries: -1},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{}
	r.kube, err = kube.New(ctx, mgr, kube.Options{
		SubscriptionID: subscription, ResourceGroup: "rg", ExcludeControlPlane: true, Log: log,
		RecheckAfter: 500 * time.Millisecond, ReleaseAgainAfter: 500 * time.Millisecond,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	r.lanes = poolupdate.New(poolupdate.Config{
		Interval: time.Second, MaxRetries: 1, Lease: lease, Azure: arm, Cluster: r.kube, Ledger: r.kube, Reporter: r.kube, Log: log,
	})
	err = r.kube.Setup(r.lanes)
	if err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	r.stop = func() error {
		cancel()
		return <-ended
	}
	return r, nil
}
