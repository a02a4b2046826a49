// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/test/controlplane"
)

// maxClusters is the maximum number of simultaneous control planes. Tests mostly wait; a control
// plane needs 300 MiB.
const maxClusters = 4

// cluster is a control plane with config/ installed. One test at a time uses it, as controllers of
// two tests would manage each other's Services.
type cluster struct {
	client.Client
	rest *rest.Config
	// admin, weir and provisioner are kubeconfig files of an administrator, and of the
	// ServiceAccounts in config/ and config/provisioning with exactly their roles.
	admin, weir, provisioner string
	// auditLog is the API server's audit log.
	auditLog string
	stop     func() error
}

// clusters starts control planes on demand and reuses them.
type clusters struct {
	dir  string
	free chan *cluster
	// capacity has one value for each control plane that may still be started.
	capacity chan struct{}
	// pairs has one value for each test that takes two control planes. If these tests had all of them, each would wait for its
	// second one.
	pairs chan struct{}

	mu  sync.Mutex
	all []*cluster
}

func newClusters(dir string) *clusters {
	c := &clusters{dir: dir, free: make(chan *cluster, maxClusters), capacity: make(chan struct{}, maxClusters), pairs: make(chan struct{}, maxClusters-1)}
	for range maxClusters {
		c.capacity <- struct{}{}
	}
	return c
}

// takeCluster gives a test a cluster until it ends.
func (c *clusters) takeCluster(t testing.TB) *cluster {
	t.Helper()
	got, err := c.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.free <- got })
	return got
}

// enterPair precedes the first takeCluster of a test that takes two.
func (c *clusters) enterPair(t testing.TB) {
	t.Helper()
	select {
	case c.pairs <- struct{}{}:
		t.Cleanup(func() { <-c.pairs })
	case <-t.Context().Done():
		t.Fatal(context.Cause(t.Context()))
	}
}

func (c *clusters) next(ctx context.Context) (*cluster, error) {
	select {
	case got := <-c.free:
		return got, nil
	default:
	}
	select {
	case got := <-c.free:
		return got, nil
	case <-c.capacity:
		return c.start()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start starts another control plane. It is stopped with the others, even if config/ cannot be
// installed.
func (c *clusters) start() (*cluster, error) {
	c.mu.Lock()
	n := len(c.all)
	started := &cluster{stop: func() error { return nil }}
	c.all = append(c.all, started)
	c.mu.Unlock()
	at := func(name string) string { return filepath.Join(c.dir, fmt.Sprintf("%s-%d", name, n)) }
	started.admin, started.weir, started.auditLog = at("admin"), at("weir"), at("audit.log")
	env, err := controlplane.StartControlPlane(controlplane.Options{
		AuditLog: started.auditLog, Flags: map[string]string{"service-cluster-ip-range": "10.96.0.0/16,fd00:10::/108"},
	})
	if err != nil {
		return nil, err
	}
	started.stop = env.Stop
	return started, started.install(env.Config)
}

func (c *clusters) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := make([]error, len(c.all))
	var wg sync.WaitGroup
	for i, single := range c.all {
		wg.Go(func() { errs[i] = single.stop() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// auditLogs returns the audit logs of all control planes.
func (c *clusters) auditLogs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var files []string
	for _, single := range c.all {
		files = append(files, single.auditLog)
	}
	return files
}

// install applies config/ as a user would, and writes the kubeconfigs.
func (c *cluster) install(cfg *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if c.Client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	c.rest = cfg
	if err := controlplane.WriteKubeconfig(c.admin, cfg, ""); err != nil {
		return err
	}
	if err := controlplane.WriteKubeconfig(c.weir, cfg, serviceAccount); err != nil {
		return err
	}
	c.provisioner = c.weir + "-provisioner"
	if err := controlplane.WriteKubeconfig(c.provisioner, cfg, provisionerAccount); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	// In a dry run the namespace would not exist for the other objects.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system"}}
	if err := c.Create(ctx, ns); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", "../../config"},
		{"apply", "--server-side", "--force-conflicts", "-k", "../../config"},
		{"wait", "--for=condition=Established", "crd/backendpools.weir.dev"},
	} {
		if out, err := c.kubectl(ctx, args...); err != nil {
			return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
		}
	}
	return c.reportReady(ctx)
}

// reportReady plays the Deployment controller, which does not run here: the processes of the tests are the replicas.
func (c *cluster) reportReady(ctx context.Context) error {
	var d appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKey{Namespace: "weir-system", Name: "weir-controller"}, &d); err != nil {
		return err
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2}
	return c.Status().Update(ctx, &d)
}

// kubectl runs kubectl as an administrator and returns its output.
func (c *cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	return controlplane.RunKubectl(ctx, c.admin, args...)
}
