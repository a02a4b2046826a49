// SPDX-License-Identifier: Apache-2.0

// Package takeover_test moves a cluster from cloud-provider-azure to Weir and back, and counts
// dropped connections. The cluster is a real kube-apiserver with the original objects and UIDs, and
// Azure is the emulator with the resources that the cloud provider created.
package takeover_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/test/controlplane"
)

// serviceAccount is Weir's account.
const serviceAccount = "system:serviceaccount:weir-system:weir"

// cluster is the control plane.
var cluster struct {
	client.Client
	etcd string // its URL
	// admin and weir are kubeconfig files.
	admin, weir string
}

// bin is the folder of the built programs.
var bin, _ = filepath.Abs("../../bin")

func TestMain(m *testing.M) {
	controlplane.RunWithControlPlane(m, controlplane.Options{
		Flags: map[string]string{
			"service-node-port-range":  "1024-65535",
			"service-cluster-ip-range": "10.0.0.0/16,fd00:10::/108",
		},
		SetUp: func(env *envtest.Environment) (func() error, error) {
			if _, err := os.Stat(filepath.Join(bin, "weir")); err != nil {
				return nil, fmt.Errorf("%w: run make build first", err)
			}
			dir, err := os.MkdirTemp("", "weir-takeover-")
			if err != nil {
				return nil, err
			}
			cluster.etcd = env.ControlPlane.Etcd.URL.String()
			return func() error { return os.RemoveAll(dir) }, install(env.Config, dir)
		},
	})
}

// install applies config/ as a user with several load balancers would.
func install(cfg *rest.Config, dir string) error {
	var err error
	if cluster.Client, err = client.New(cfg, client.Options{Scheme: metadata.Scheme()}); err != nil {
		return err
	}
	cluster.admin, cluster.weir = filepath.Join(dir, "admin"), filepath.Join(dir, "weir")
	for path, as := range map[string]string{cluster.admin: "", cluster.weir: serviceAccount} {
		if err := controlplane.WriteKubeconfig(path, cfg, as); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"create", "namespace", "weir-system"},
		{"create", "namespace", "shop"},
		{"apply", "--server-side", "-k", "../../config"},
		{"apply", "--server-side", "-k", "../../config/several-load-balancers"},
		{"wait", "--for=condition=Established", "crd/backendpools.weir.dev"},
	} {
		if out, err := kubectl(ctx, args...); err != nil {
			return fmt.Errorf("kubectl %v: %w\n%s", args, err, out)
		}
	}
	return nil
}

// kubectl runs kubectl as an administrator and returns its output.
func kubectl(ctx context.Context, args ...string) (string, error) {
	return controlplane.RunKubectl(ctx, cluster.admin, args...)
}
