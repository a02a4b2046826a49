// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/process"
	"weir.dev/weir/test/controlplane"
	"weir.dev/weir/test/patient"
)

// lab is a namespace of a cluster, an emulator and the programs started against them.
type lab struct {
	t         testing.TB
	cluster   *cluster
	namespace string
	emulator  *armemu.Emulator
	url       string
	dir       string
	env       []string // added to the programs' environment
	started   int      // programs
	machines  int      // of nodes
}

// noStreams disables streaming lists, for older API servers.
const noStreams = "KUBE_FEATURE_WatchListClient=false"

// runCommand runs a weir command for the namespace.
func (l *lab) runCommand(command ...string) (code int, text string) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), filepath.Join(bin, "weir"), append(command, "--kubeconfig", l.cluster.admin, "-n", l.namespace)...)
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		l.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

const (
	network = "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network"
	vnet    = network + "/virtualNetworks/vnet"
)

// loadBalancer is named after the namespace, so it is unique per test.
func (l *lab) loadBalancer() string { return network + "/loadBalancers/" + l.namespace }

func newLab(t testing.TB, opts armemu.Options) *lab {
	t.Helper()
	return newLabOn(controlPlanes.takeCluster(t), t, opts)
}

// newLabOn is newLab for a given cluster.
func newLabOn(c *cluster, t testing.TB, opts armemu.Options) *lab {
	t.Helper()
	asShipped := opts.Role == nil
	if asShipped {
		opts.Role = azureRole()
	}
	l := &lab{t: t, cluster: c, dir: t.TempDir(), emulator: patient.Watch(t, armemu.New(opts))}
	t.Cleanup(func() {
		if asShipped {
			l.recordActions()
		}
		if t.Failed() {
			unfinished.Store(true)
		}
		l.deleteServices()
	})
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-", Annotations: map[string]string{service.LoadBalancersAnnotation: "*"}}}
	l.must(l.cluster.Create(t.Context(), ns))
	l.namespace = ns.Name
	// Each test is a separate cluster in Azure.
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}}
	l.must(client.IgnoreNotFound(l.cluster.Delete(t.Context(), record)))
	server := httptest.NewServer(l.emulator)
	t.Cleanup(server.Close)
	l.url = server.URL
	l.must(l.emulator.Put(vnet, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","loadBalancerBackendPoolUpdateIntervalInSeconds":2,"location":"eastus","identitySystem":"t","resourceGruop":"typo"}`)
	return l
}

// deleteServices deletes the Services that the next test's controller would manage. Their finalizers would
// block it, as the controller has exited.
func (l *lab) deleteServices() {
	ctx := context.WithoutCancel(l.t.Context())
	clear := func(obj client.Object) {
		err := client.IgnoreNotFound(l.cluster.Delete(ctx, obj)) // first: nothing adds a finalizer to a deleted object
		if err = errors.Join(err, client.IgnoreNotFound(l.cluster.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))); err != nil {
			l.t.Errorf("clear %s: %v", client.ObjectKeyFromObject(obj), err)
		}
	}
	var services corev1.ServiceList
	var pools v1alpha1.BackendPoolList
	if err := errors.Join(l.cluster.List(ctx, &services), l.cluster.List(ctx, &pools)); err != nil {
		l.t.Errorf("list what is left: %v", err)
	}
	for i := range services.Items {
		if services.Items[i].Spec.Type == corev1.ServiceTypeLoadBalancer || len(services.Items[i].Finalizers) > 0 {
			clear(&services.Items[i])
		}
	}
	for i := range pools.Items {
		clear(&pools.Items[i])
	}
	// A killed controller holds the leader lease for a while.
	for _, name := range []string{"weir-controller", k8s.ProvisionerLease} {
		lead := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: name}}
		if err := client.IgnoreNotFound(l.cluster.Delete(ctx, lead)); err != nil {
			l.t.Errorf("clear the lead: %v", err)
		}
	}
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) write(name, content string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	l.must(os.WriteFile(path, []byte(content), 0o600))
	return path
}

// pool creates the load balancer with one pool of these addresses.
func (l *lab) pool(name string, ips ...string) {
	l.t.Helper()
	entries := []map[string]any{}
	for _, ip := range ips {
		entries = append(entries, map[string]any{"name": "vm-" + strings.ReplaceAll(ip, ".", "-"), "properties": map[string]any{"ipAddress": ip}})
	}
	body, err := json.Marshal(map[string]any{
		"location": "eastus", "sku": map[string]any{"name": "Standard"},
		"properties": map[string]any{"frontendIPConfigurations": []any{map[string]any{"name": "theirs"}}, "backendAddressPools": []any{map[string]any{"name": name, "properties": map[string]any{
			"virtualNetwork": map[string]any{"id": vnet}, "loadBalancerBackendAddresses": entries}}}},
	})
	l.must(err)
	l.must(l.emulator.Put(l.loadBalancer(), body))
}

// members returns the addresses of a pool in Azure, sorted.
func (l *lab) members(pool string) []string {
	l.t.Helper()
	ips := l.addresses(l.loadBalancer(), pool)
	if ips == nil {
		l.t.Fatalf("pool %s is gone", pool)
	}
	return ips
}

// addresses returns the addresses of a pool of any load balancer, sorted; nil if it does not exist.
func (l *lab) addresses(balancer, pool string) []string {
	l.t.Helper()
	body, ok := l.emulator.Get(balancer + "/backendAddressPools/" + pool)
	if !ok {
		return nil
	}
	var p struct {
		Properties struct {
			LoadBalancerBackendAddresses []struct {
				Properties struct {
					IPAddress string `json:"ipAddress"`
				} `json:"properties"`
			} `json:"loadBalancerBackendAddresses"`
		} `json:"properties"`
	}
	l.must(json.Unmarshal(body, &p))
	ips := []string{}
	for _, a := range p.Properties.LoadBalancerBackendAddresses {
		ips = append(ips, a.Properties.IPAddress)
	}
	slices.Sort(ips)
	return ips
}

// node creates a node that is deleted with the test.
func (l *lab) node(name, ip string) string {
	l.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: l.namespace + "-" + name}}
	l.must(l.cluster.Create(l.t.Context(), n))
	l.t.Cleanup(func() { _ = l.cluster.Delete(context.WithoutCancel(l.t.Context()), n) })
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
	l.must(l.cluster.Status().Update(l.t.Context(), n))
	return n.Name
}

// service creates a Local Service with one EndpointSlice and a BackendPool.
func (l *lab) service(name string, nodes ...string) {
	l.t.Helper()
	l.must(l.cluster.Create(l.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			Ports: []corev1.ServicePort{{Port: 80}},
		},
	}))
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name + "-1", Namespace: l.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints(nodes),
	}
	l.must(l.cluster.Create(l.t.Context(), slice))
	l.must(l.cluster.Create(l.t.Context(), &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef:   &v1alpha1.ServiceReference{Name: name},
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: l.namespace}, PoolName: name,
		},
	}))
}

// move replaces the endpoints of a Service.
func (l *lab) move(service string, nodes ...string) {
	l.t.Helper()
	var slice discoveryv1.EndpointSlice
	l.must(l.cluster.Get(l.t.Context(), key(l.namespace, service+"-1"), &slice))
	slice.Endpoints = endpoints(nodes)
	l.must(l.cluster.Update(l.t.Context(), &slice))
}

func endpoints(nodes []string) []discoveryv1.Endpoint {
	endpoints := []discoveryv1.Endpoint{}
	for i, n := range nodes {
		endpoints = append(endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.244.0.%d", i+1)}, NodeName: &n})
	}
	return endpoints
}

// program is a running weir controller.
type program struct {
	*process.Process
	metrics  string
	health   string
	operator string
}

// controller starts weir with its ServiceAccount.
func (l *lab) controller(flags ...string) *program {
	l.t.Helper()
	free, err := process.FreeAddresses(l.t.Context(), 3)
	l.must(err)
	p := &program{metrics: free[0], health: free[1], operator: free[2]}
	args := append([]string{
		"controller", "--kubeconfig", l.cluster.weir, "--config", filepath.Join(l.dir, "azure.json"), "--azure-endpoint", l.url,
		"--metrics-bind-address", p.metrics, "--operator-bind-address", p.operator, "--health-probe-bind-address", p.health,
		"--leader-elect-namespace", "weir-system", // the namespace of its Roles
		"--leader-elect-lease-duration", "40s", "--leader-elect-renew-deadline", "30s", // a busy machine does not end a leadership
	}, flags...)
	l.emulator.ResetRetryAfter() // a new process does not know earlier answers
	l.started++
	p.Process, err = process.StartCommand(l.t.Context(), process.Command{
		Name: fmt.Sprintf("weir-%d", l.started), Dir: l.dir, Path: filepath.Join(bin, "weir"), Args: args, Env: l.env,
	})
	l.must(err)
	l.t.Cleanup(func() {
		p.Kill()
		if l.t.Failed() {
			l.t.Logf("the controller's log:\n%s", p.ReadOutput())
		}
	})
	return p
}

// eventually polls until ask returns nil, and fails with the last error otherwise.
func (l *lab) eventually(about string, ask func() error) {
	l.t.Helper()
	controlplane.Eventually(l.t, about, 3*time.Minute, ask)
}

func (l *lab) becomes(pool string, want ...string) {
	l.t.Helper()
	l.eventually("pool "+pool, func() error {
		if got := l.members(pool); !slices.Equal(got, want) {
			return fmt.Errorf("holds %v, want %v", got, want)
		}
		return nil
	})
}

func get(address, path string) (string, error) {
	res, err := http.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return "", errors.New(res.Status + ": " + string(body))
	}
	return string(body), nil
}
