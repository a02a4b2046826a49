// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/controlplane"
	"weir.dev/weir/test/patient"
	"weir.dev/weir/tools/chart"
)

// adminKubeconfig is the kubeconfig of a real API server, and adminConfig the same in memory.
var (
	adminKubeconfig string
	adminConfig     *rest.Config
)

func TestMain(m *testing.M) {
	controlplane.RunWithControlPlane(m, controlplane.Options{SetUp: func(env *envtest.Environment) (func() error, error) {
		dir, err := os.MkdirTemp("", "weir-chart-")
		if err != nil {
			return nil, err
		}
		adminKubeconfig, adminConfig = filepath.Join(dir, "admin"), env.Config
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
	values := func(all string) string { return all }
	hasGates := strings.Contains(kubectl("get", "--raw", "/apis/admissionregistration.k8s.io/v1"), `"MutatingAdmissionPolicy"`)
	if !hasGates { // before Kubernetes 1.36
		values = func(all string) string {
			return strings.Replace(all, "readinessGates: {enabled: true}", "readinessGates: {enabled: false}", 1)
		}
	}
	text, err := chart.Render(t, "balancing", values("{delayNodeDeletion: {enabled: true}, gatewayAPI: {enabled: true}, readinessGates: {enabled: true}, resourceLease: {enabled: true}, severalLoadBalancers: {enabled: true}, provisioner: {enabled: true}, editRole: {enabled: true}, page: {enabled: true}, prometheus: {enabled: true}}"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl("apply", "--server-side", "-f", "testdata/monitoring.yaml")
	kubectl("wait", "--for=condition=Established", "crd/podmonitors.monitoring.coreos.com", "crd/prometheusrules.monitoring.coreos.com", "--timeout=5m")
	kubectl("create", "namespace", "balancing")
	kubectl("label", "namespace", "balancing", "pod-security.kubernetes.io/enforce=restricted")
	for range 2 {
		if out := kubectl("apply", "--server-side", "--validate=strict", "-f", file); strings.Contains(out, "Warning") {
			t.Errorf("the API server warns: %s", out)
		}
	}
	kubectl("wait", "--for=condition=Established", "crd/backendpools.weir.dev", "--timeout=5m")
	if got := kubectl("-n", "balancing", "get", "deployment", "weir-controller", "-o", "jsonpath={.spec.template.spec.priorityClassName} {.spec.replicas}"); got != "system-cluster-critical 2" {
		t.Errorf("the deployment has %s", got)
	}
	every, err := chart.Render(t, "balancing", values(chart.EveryValue))
	if err != nil {
		t.Fatal(err)
	}
	all := filepath.Join(t.TempDir(), "every.yaml")
	if err := os.WriteFile(all, []byte(every+"\n---\n"+chart.RenderTest(t, "balancing", values(chart.EveryValue))), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", all); strings.Contains(out, "Warning") || !strings.Contains(out, "pod/weir-test serverside-applied") {
		t.Errorf("with every value: %s", out)
	}
	kubectl("create", "namespace", "weir-system")
	kubectl("apply", "--server-side", "--validate=strict", "-f", "../../examples/pod-monitor.yaml")
	for name, want := range map[string]string{"weir-metrics-reader": "yes", "weir": "no", "default": "no"} {
		got := kubectl("auth", "can-i", "get", "/metrics", "--as", "system:serviceaccount:balancing:"+name)
		if last := got[strings.LastIndex(got, "\n")+1:]; last != want {
			t.Errorf("may %s read metrics: %s, want %s", name, got, want)
		}
	}
	may := func(name string, about ...string) string {
		got := kubectl(append([]string{"auth", "can-i", "--as", "system:serviceaccount:balancing:" + name}, about...)...)
		return got[strings.LastIndex(got, "\n")+1:]
	}
	for _, name := range [][]string{
		{"list", "provisions.weir.dev"}, {"watch", "partners.weir.dev"}, {"patch", "provisions.weir.dev", "--subresource=status"}, {"update", "leases/weir-provisioner", "-n", "balancing"},
	} {
		if controller, provisioner := may("weir", name...), may("weir-provisioner", name...); controller != "no" || provisioner != "yes" {
			t.Errorf("may %v: the controller %s, the provisioner %s", name, controller, provisioner)
		}
	}
	for _, name := range [][]string{{"list", "services"}, {"list", "nodes"}, {"list", "backendpools.weir.dev"}, {"update", "leases/weir-controller", "-n", "balancing"}, {"get", "secrets", "-n", "balancing"}} {
		if got := may("weir-provisioner", name...); got != "no" {
			t.Errorf("the provisioner may %v: %s", name, got)
		}
	}
	for name, want := range map[string]string{"balancing:weir": "yes", "weir-system:weir": "no", "balancing:default": "no"} {
		rights := [][]string{
			{"patch", "services"}, {"list", "backendpools.weir.dev"}, {"update", "leases/weir-controller", "-n", "balancing"},
			{"get", "leases/aks-managed-resource-locker", "-n", "kube-system"}, {"create", "tokenreviews"},
		}
		if hasGates {
			rights = append(rights, []string{"watch", "pods"}, []string{"patch", "pods", "--subresource=status"})
		}
		for _, subject := range rights {
			got := kubectl(append([]string{"auth", "can-i", "--as", "system:serviceaccount:" + name}, subject...)...)
			if last := got[strings.LastIndex(got, "\n")+1:]; last != want {
				t.Errorf("may %s %v: %s, want %s", name, subject, got, want)
			}
		}
	}
}

// The pod of helm test runs weir doctor with the rights of the controller: it succeeds where the release is
// complete, and fails where a right is missing.
func TestHelmTestPasses(t *testing.T) {
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := controlplane.RunKubectl(context.WithoutCancel(t.Context()), adminKubeconfig, args...)
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	text, err := chart.Render(t, "tested", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kubectl("create", "namespace", "tested")
	kubectl("apply", "--server-side", "--force-conflicts", "-f", write("weir.yaml", text))
	kubectl("wait", "--for=condition=Established", "crd/backendpools.weir.dev", "--timeout=5m")
	kubectl("apply", "--server-side", "-f", write("lease.yaml", fmt.Sprintf(`apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: weir-controller, namespace: tested}
spec: {holderIdentity: weir-controller-0_0c1f, leaseDurationSeconds: 3600, renewTime: %q}
`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"))))

	var pod struct {
		Spec struct {
			ServiceAccountName string
			Containers         []struct{ Args []string }
		}
	}
	if err := yaml.Unmarshal([]byte(chart.RenderTest(t, "tested", "")), &pod); err != nil {
		t.Fatal(err)
	}
	account := filepath.Join(dir, "account")
	if err := controlplane.WriteKubeconfig(account, adminConfig, "system:serviceaccount:tested:"+pod.Spec.ServiceAccountName); err != nil {
		t.Fatal(err)
	}
	azure := httptest.NewServer(patient.Watch(t, armemu.New(armemu.Options{})))
	defer azure.Close()
	config := write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","location":"eastus","vnetName":"vnet"}`)
	run := func() (string, error) {
		args := slices.Clone(pod.Spec.Containers[0].Args)
		for i, arg := range args {
			args[i] = strings.Replace(arg, "/etc/weir/azure.json", config, 1)
		}
		out, err := exec.CommandContext(t.Context(), "../../bin/weir", append(args, "--kubeconfig", account, "--azure-endpoint", azure.URL)...).CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err != nil {
		t.Errorf("%v (run make build first)\n%s", err, out)
	}
	kubectl("delete", "clusterrolebinding", "weir-controller")
	if out, err := run(); err == nil || !strings.Contains(out, "may not") {
		t.Errorf("without its rights: %v\n%s", err, out)
	}
}
