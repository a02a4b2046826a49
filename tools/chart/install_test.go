// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"weir.dev/weir/test/controlplane"
	"weir.dev/weir/tools/chart"
)

// adminKubeconfig is the kubeconfig of a real API server.
var adminKubeconfig string

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Helm logs every symbolic link
	controlplane.RunWithControlPlane(m, controlplane.Options{SetUp: func(env *envtest.Environment) (func() error, error) {
		dir, err := os.MkdirTemp("", "weir-chart-")
		if err != nil {
			return nil, err
		}
		adminKubeconfig = filepath.Join(dir, "admin")
		return func() error { return os.RemoveAll(dir) }, controlplane.WriteKubeconfig(adminKubeconfig, env.Config, "")
	}})
}

// The API server accepts all rendered objects, twice, in another namespace, and only Weir's
// ServiceAccount there has Weir's permissions.
func TestInstall(t *testing.T) {
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := controlplane.RunKubectl(context.WithoutCancel(t.Context()), adminKubeconfig, args...)
		if err != nil && args[0] != "auth" {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(out)
	}
	text, err := chart.Render(t, "balancing", "{resourceLease: {enabled: true}, severalLoadBalancers: {enabled: true}, provisioner: {enabled: true}, editRole: {enabled: true}, page: {enabled: true}}")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("create", "namespace", "balancing")
	kubectl("label", "namespace", "balancing", "pod-security.kubernetes.io/enforce=restricted")
	for range 2 {
		if out := kubectl("apply", "--server-side", "--validate=strict", "-f", file); strings.Contains(out, "Warning") {
			t.Errorf("the API server warns: %s", out)
		}
	}
	kubectl("wait", "--for=condition=Established", "crd/backendpools.weir.dev", "--timeout=60s")
	if got := kubectl("-n", "balancing", "get", "deployment", "weir-controller", "-o", "jsonpath={.spec.template.spec.priorityClassName} {.spec.replicas}"); got != "system-cluster-critical 2" {
		t.Errorf("the deployment has %s", got)
	}
	may := func(who string, what ...string) string {
		got := kubectl(append([]string{"auth", "can-i", "--as", "system:serviceaccount:balancing:" + who}, what...)...)
		return got[strings.LastIndex(got, "\n")+1:]
	}
	for _, what := range [][]string{
		{"list", "provisions.weir.dev"}, {"watch", "partners.weir.dev"}, {"patch", "provisions.weir.dev", "--subresource=status"}, {"update", "leases/weir-provisioner", "-n", "balancing"},
	} {
		if controller, provisioner := may("weir", what...), may("weir-provisioner", what...); controller != "no" || provisioner != "yes" {
			t.Errorf("may %v: the controller %s, the provisioner %s", what, controller, provisioner)
		}
	}
	for _, what := range [][]string{{"list", "services"}, {"list", "nodes"}, {"list", "backendpools.weir.dev"}, {"update", "leases/weir-controller", "-n", "balancing"}, {"get", "secrets", "-n", "balancing"}} {
		if got := may("weir-provisioner", what...); got != "no" {
			t.Errorf("the provisioner may %v: %s", what, got)
		}
	}
	for who, want := range map[string]string{"balancing:weir": "yes", "weir-system:weir": "no", "balancing:default": "no"} {
		for _, what := range [][]string{
			{"patch", "services"}, {"list", "backendpools.weir.dev"}, {"update", "leases/weir-controller", "-n", "balancing"},
			{"get", "leases/aks-managed-resource-locker", "-n", "kube-system"}, {"create", "tokenreviews"},
		} {
			got := kubectl(append([]string{"auth", "can-i", "--as", "system:serviceaccount:" + who}, what...)...)
			if last := got[strings.LastIndex(got, "\n")+1:]; last != want {
				t.Errorf("may %s %v: %s, want %s", who, what, got, want)
			}
		}
	}
}
