// SPDX-License-Identifier: Apache-2.0

// Package e2e_test runs the built program against a real kube-apiserver, with the
// roles that config/ ships, and the ARM emulator over TCP.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/test/controlplane"
)

// cluster is the one control plane of this package.
var cluster struct {
	client.Client
	rest *rest.Config
	// admin and weir are kubeconfig files: of an administrator, and of the
	// ServiceAccount that config/ makes, with no more than its roles.
	admin, weir string
}

// bin is where make puts what is built.
var bin, _ = filepath.Abs("../../bin")

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		panic(err)
	}
	auditLog = filepath.Join(dir, "audit.log")
	controlplane.Main(m, controlplane.Options{AuditLog: auditLog, SetUp: func(env *envtest.Environment) (func() error, error) {
		if _, err := os.Stat(filepath.Join(bin, "weir")); err != nil {
			return nil, fmt.Errorf("%w: run make build first", err)
		}
		return func() error { return os.RemoveAll(dir) }, install(env.Config, dir)
	}})
}

// install applies config/ as a user would, and keeps the two kubeconfigs.
func install(cfg *rest.Config, dir string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	var err error
	if cluster.Client, err = client.New(cfg, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	cluster.rest = cfg
	cluster.admin, cluster.weir = filepath.Join(dir, "admin"), filepath.Join(dir, "weir")
	if err := controlplane.WriteKubeconfig(cluster.admin, cfg, ""); err != nil {
		return err
	}
	if err := controlplane.WriteKubeconfig(cluster.weir, cfg, serviceAccount); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// A namespace that exists in dry-run alone would have nothing else applied to it.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system"}}
	if err := cluster.Create(ctx, ns); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", "../../config"},
		{"apply", "--server-side", "--force-conflicts", "-k", "../../config"},
		{"wait", "--for=condition=Established", "crd/backendpools.weir.dev"},
	} {
		if out, err := kubectl(ctx, args...); err != nil {
			return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
		}
	}
	return nil
}

// kubectl runs the real one as an administrator and returns what it printed.
func kubectl(ctx context.Context, args ...string) (string, error) {
	return controlplane.Kubectl(ctx, cluster.admin, args...)
}
