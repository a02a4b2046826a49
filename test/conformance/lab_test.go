// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/dataplane"
	"weir.dev/weir/lab/process"
	"weir.dev/weir/test/controlplane"
	"weir.dev/weir/test/patient"
	"weir.dev/weir/test/shipped"
)

const (
	weirNamespace = "weir-system"
	weirAccount   = "system:serviceaccount:weir-system:weir"
)

// bin is the folder of the built programs.
var bin, _ = filepath.Abs("../../bin")

// lab is a cluster with Gateway API and Weir installed, and an emulated Azure with its data plane.
type lab struct {
	t          testing.TB
	config     *rest.Config
	kubeconfig string // of an administrator
	emulator   *armemu.Emulator
}

func startLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{t: t, kubeconfig: filepath.Join(t.TempDir(), "admin")}
	env, err := controlplane.StartControlPlane(controlplane.Options{})
	l.must(err)
	t.Cleanup(func() { l.must(env.Stop()) })
	l.config = env.Config
	l.must(controlplane.WriteKubeconfig(l.kubeconfig, env.Config, ""))
	l.install()
	l.startDataPlane()
	stop, err := startWorkloads(t.Context(), env.Config, map[string]string{"node-1": "10.0.0.1", "node-2": "10.0.0.2"}, func(err error) { t.Log(err) })
	l.must(err)
	t.Cleanup(stop)
	l.startController()
	return l
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// kubectl runs kubectl as an administrator.
func (l *lab) kubectl(args ...string) {
	l.t.Helper()
	if out, err := controlplane.RunKubectl(l.t.Context(), l.kubeconfig, args...); err != nil {
		l.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// install installs the standard channel of Gateway API and Weir, as a user would.
func (l *lab) install() {
	l.t.Helper()
	dir, err := exec.CommandContext(l.t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	l.must(err)
	l.kubectl("apply", "--server-side", "-f", filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard"))
	l.kubectl("create", "namespace", weirNamespace)
	l.kubectl("apply", "--server-side", "-k", "../../config")
	l.kubectl("apply", "--server-side", "-k", "../../config/gateway-api")
	l.kubectl("wait", "--for=condition=Established", "--timeout=5m", "crd", "--all")
	l.kubectl("apply", "-f", "testdata")
	l.awaitNodePorts()
}

// awaitNodePorts waits until the policy in testdata applies.
func (l *lab) awaitNodePorts() {
	l.t.Helper()
	api, err := client.New(l.config, client.Options{Scheme: scheme.Scheme})
	l.must(err)
	controlplane.Eventually(l.t, "Services get node ports", 5*time.Minute, func() error {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: metav1.NamespaceDefault},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "none"}, Ports: []corev1.ServicePort{{Port: 80}}},
		}
		if err := api.Create(l.t.Context(), s, client.DryRunAll); err != nil {
			return err
		}
		if s.Spec.Type != corev1.ServiceTypeNodePort {
			return fmt.Errorf("the type is %s", s.Spec.Type)
		}
		return nil
	})
}

// startDataPlane starts the emulator and forwards what reaches its frontends to the cluster's pods. Public IPs are
// loopback addresses, because the suite connects to the addresses in the status of Gateways.
func (l *lab) startDataPlane() {
	l.t.Helper()
	// Another run on this machine takes another range.
	public := netip.PrefixFrom(netip.AddrFrom4([4]byte{127, byte(64 + rand.IntN(128)), 0, 0}), 16) //nolint:gosec // not a secret
	l.emulator = patient.Watch(l.t, armemu.New(armemu.Options{Role: shipped.AzureRole(), LatencyScale: 0.1, PublicIPv4Range: public}))
	l.must(l.emulator.Put("/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet",
		[]byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`)))
	network := dataplane.NewNetwork()
	cluster := dataplane.StartCluster(network, dataplane.ClusterOptions{Server: serverOf})
	l.t.Cleanup(cluster.Close)
	stop, err := dataplane.WatchCluster(l.t.Context(), l.config, func(state *dataplane.ClusterState) {
		if err := cluster.Apply(state); err != nil {
			l.t.Log(err)
		}
	})
	l.must(err)
	l.t.Cleanup(stop)
	balancer := dataplane.StartBalancer(network, dataplane.BalancerOptions{Source: dataplane.EmulatorSource(l.emulator), TimeScale: 0.01})
	l.t.Cleanup(func() {
		l.must(balancer.Err())
		balancer.Close()
	})
}

// startController starts Weir with its ServiceAccount.
func (l *lab) startController() {
	l.t.Helper()
	server := httptest.NewServer(l.emulator)
	l.t.Cleanup(server.Close)
	dir := l.t.TempDir()
	azure, kubeconfig := filepath.Join(dir, "azure.json"), filepath.Join(dir, "weir")
	l.must(os.WriteFile(azure, []byte(`{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","location":"eastus","localServicePools":"own","loadBalancerBackendPoolUpdateIntervalInSeconds":1}`), 0o600))
	l.must(controlplane.WriteKubeconfig(kubeconfig, l.config, weirAccount))
	free, err := process.FreeAddresses(l.t.Context(), 3)
	l.must(err)
	weir, err := process.StartCommand(l.t.Context(), process.Command{
		Name: "weir", Dir: dir, Path: filepath.Join(bin, "weir"),
		Args: []string{
			"controller", "--kubeconfig", kubeconfig, "--config", azure, "--azure-endpoint", server.URL, "--cluster-name", "conformance",
			"--metrics-bind-address", free[0], "--operator-bind-address", free[1], "--health-probe-bind-address", free[2],
			"--gateway-api", "--leader-elect=false", "--leader-elect-namespace", weirNamespace,
		},
	})
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: run make build first", err)
	}
	l.must(err)
	l.t.Cleanup(func() {
		weir.Kill()
		if l.t.Failed() {
			l.t.Logf("the controller's log:\n%s", weir.ReadOutput())
		}
	})
}
