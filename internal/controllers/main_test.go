// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/controlplane"
	"weir.dev/weir/test/patient"
)

const (
	subscription = "00000000-0000-0000-0000-000000000000"
	network      = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Network"
	vnetID       = network + "/virtualNetworks/vnet"
)

// The tests share an API server, a cloud and a controller. Each has its own namespace, load
// balancer and nodes.
var (
	cluster    *envtest.Environment
	api        client.Client
	cloud      *armemu.Emulator
	controller *testController
)

func TestMain(m *testing.M) {
	controlplane.RunWithControlPlane(m, controlplane.Options{Parallel: 16, CRDs: true, SetUp: setUp})
}

func setUp(env *envtest.Environment) (tearDown func() error, err error) {
	cluster = env
	if api, err = client.New(cluster.Config, client.Options{Scheme: metadata.Scheme()}); err != nil {
		return nil, err
	}
	cloud = armemu.New(armemu.Options{Seed: 1})
	if err := cloud.Put(vnetID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8","fd00::/16"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefixes":["10.0.0.0/8","fd00::/16"]}}]}}`)); err != nil {
		return nil, err
	}
	if controller, err = start(); err != nil {
		return nil, err
	}
	return func() error { return errors.Join(controller.stop(), patient.CheckRequests(cloud)) }, nil // tests may have replaced it
}

type testController struct {
	mgr   ctrl.Manager
	kube  *controllers.Cluster
	lanes *updater.Workers
	stop  func() error
}

func start() (*testController, error) { return startWith(nil) }

func startWith(lease updater.Lease) (*testController, error) {
	draining := signals()
	draining.ExtraPatterns = []lb.ConditionPattern{{Key: "example.com/leaves", Value: "now"}}
	draining.ExtraConditions = []string{"DrainInProgress"}
	return startController(cluster.Config, lease, draining, enableGates)
}

func signals() *lb.DrainSignals {
	return &lb.DrainSignals{Reporters: []string{"agent", "example.com/agent"}, MinAvailablePercent: lb.DefaultMinAvailablePercent}
}

// Without draining signals the controller ignores node taints. with may extend it before it starts.
func startController(cfg *rest.Config, lease updater.Lease, draining *lb.DrainSignals, with ...func(*testController, *azure.Client, *slog.Logger)) (*testController, error) {
	level := slog.LevelError + 1
	if os.Getenv("WEIR_TEST_LOG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: metadata.Scheme(), Cache: cache.KeepSelectors(cache.Options(draining)), Logger: logr.FromSlogHandler(log.Handler()),
		Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	endpoint, token, err := azure.LocalEndpoint("http://127.0.0.1:1")
	if err != nil {
		return nil, err
	}
	arm, err := azure.New(azure.Options{
		Endpoint: endpoint, Credential: token, Transport: &injectingTransport{to: cloud.Transport()}, UserAgent: "weir/test",
		VirtualNetworkID: vnetID, Retry: azure.Retry{MaxRetries: -1},
	})
	if err != nil {
		return nil, err
	}
	cloud.ResetRetryAfter() // unknown to the new client
	ctx, cancel := context.WithCancel(context.Background())
	r := &testController{mgr: mgr}
	r.kube, err = controllers.New(ctx, mgr, controllers.Options{
		SubscriptionID: subscription, ResourceGroup: "rg", ExcludeControlPlane: true, Log: log,
		RecheckInterval: 500 * time.Millisecond, ReleaseRetryInterval: 500 * time.Millisecond, Draining: draining,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	r.lanes = updater.New(updater.Config{
		Interval: time.Second, MaxRetries: 1, AdminState: draining != nil, Lease: lease, Azure: arm, Log: log,
		Cluster: r.kube.Pools.Controller, StatusStore: r.kube.Pools.Controller, Reporter: r.kube.Pools.Controller,
	})
	deployer.done = r.kube.Services.HandleResult
	r.kube.EnableLoadBalancers(deployer, loadBalancerOptions())
	for _, more := range with {
		more(r, arm, log)
	}
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
