// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/controllers/nodes"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
)

const compute = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Compute"

// placementEnv has two load balancers: the namespace's name, and with the suffix -2.
type placementEnv struct {
	*testEnv
	second string
}

func newPlacementEnv(t *testing.T) *placementEnv {
	s := &placementEnv{testEnv: newTestEnv(t)}
	s.second = s.ns + "-2"
	t.Cleanup(func() {
		_ = controller.stop()
		var err error
		if controller, err = start(); err != nil { // restore the shared controller
			t.Fatal(err)
		}
	})
	return s
}

// restartWith restarts the controller; no configuration means one load balancer.
func (env *placementEnv) restartWith(several ...service.Configuration) {
	env.Helper()
	if err := controller.stop(); err != nil {
		env.Fatal(err)
	}
	group := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: "rg"}
	settings := loadbalancer.Settings{
		Settings: service.Settings{ClusterName: env.ns, SeveralLoadBalancers: true, PublicIPs: group, VirtualNetwork: vnetID},
		Place:    lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: "rg"}, Location: "eastus", MaxRules: 250,
		Configurations: several,
	}
	if len(several) == 0 {
		settings.Configurations = []service.Configuration{{Name: env.ns}}
	}
	var err error
	controller, err = startController(cluster.Config, nil, nil, func(r *testController, arm *azure.Client, log *slog.Logger) {
		r.kube.EnableLoadBalancers(loadbalancer.New(loadbalancer.Config{
			Settings: settings, Azure: arm, Workers: r.lanes, Cluster: r.kube.Services, OnResult: r.kube.Services.HandleResult, Log: log,
		}), services.Options{
			Class: "example.com/" + env.ns, Settings: settings.Settings, Namespace: env.ns,
			Configurations: several, AvailabilitySet: arm.AvailabilitySet,
		})
	})
	if err != nil {
		env.Fatal(err)
	}
}

func (env *placementEnv) machine(n int) string { return compute + "/virtualMachines/" + env.node(n) }

// createMachineNode creates the n-th node, a VM in an availability set or in none.
func (env *placementEnv) createMachineNode(n int, set string) {
	env.Helper()
	body := `{"location":"eastus","properties":{}}`
	if set != "" {
		body = fmt.Sprintf(`{"location":"eastus","properties":{"availabilitySet":{"id":"%s/availabilitySets/%s"}}}`, compute, set)
	}
	env.put(env.machine(n), body)
	env.createNodeOf(n, "azure://"+env.machine(n))
}

func (env *placementEnv) createScaleSetNode(n int, set string) {
	env.Helper()
	env.createNodeOf(n, fmt.Sprintf("azure://%s/virtualMachineScaleSets/%s/virtualMachines/%d", compute, set, n))
}

func (env *placementEnv) createNodeOf(n int, providerID string) {
	env.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: env.node(n)}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	env.create(node)
	env.Cleanup(func() { _ = api.Delete(context.Background(), node) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: env.ip(n)}}
	env.waitUntil(func() string { // its label is set concurrently
		fresh := get[corev1.Node](env.testEnv, "", node.Name)
		fresh.Status.Addresses = node.Status.Addresses
		if err := api.Status().Update(env.Context(), fresh); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (env *placementEnv) createNodeService(name string, configurations string) {
	env.Helper()
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("example.com/" + env.ns), Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	if configurations != "" {
		svc.Annotations = map[string]string{service.Configurations: configurations}
	}
	env.create(svc)
	env.Cleanup(func() {
		svc.Finalizers = nil // unknown to the next controller
		_ = api.Patch(context.Background(), svc, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		_ = api.Delete(context.Background(), svc)
	})
}

func (env *placementEnv) nodeLabel(n int) string {
	env.Helper()
	return get[corev1.Node](env.testEnv, "", env.node(n)).Labels[metadata.PlaceLabel]
}

func (env *placementEnv) waitForLabels(want map[int]string) {
	env.Helper()
	env.waitUntil(func() string {
		got := map[int]string{}
		for n := range want {
			got[n] = env.nodeLabel(n)
		}
		if !maps.Equal(got, want) {
			return fmt.Sprintf("labels are %v, want %v", got, want)
		}
		return ""
	})
}

func (env *placementEnv) sharedAddresses(balancer string) []string {
	env.Helper()
	raw, _ := cloud.Get(network + "/loadBalancers/" + balancer + "/backendAddressPools/" + env.ns)
	var body struct {
		Properties struct {
			LoadBalancerBackendAddresses []struct{ Properties struct{ IPAddress string } }
		}
	}
	_ = json.Unmarshal(raw, &body) // none yet
	ips := []string{}
	for _, a := range body.Properties.LoadBalancerBackendAddresses {
		ips = append(ips, a.Properties.IPAddress)
	}
	slices.Sort(ips)
	return ips
}

func (env *placementEnv) waitForShared(balancer string, nodes ...int) {
	env.Helper()
	want := []string{}
	for _, n := range nodes {
		want = append(want, env.ip(n))
	}
	env.waitUntil(func() string {
		if got := env.sharedAddresses(balancer); !slices.Equal(got, want) {
			return fmt.Sprintf("%s has the nodes %v, want %v", balancer, got, want)
		}
		return ""
	})
}

func (env *placementEnv) waitForPlace(name, balancer string) {
	env.Helper()
	env.waitUntil(func() string {
		svc := get[corev1.Service](env.testEnv, env.ns, name)
		if svc.Annotations[metadata.PlaceAnnotation] != balancer || len(svc.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprintf("%s is on %q, want %s; events %v", name, svc.Annotations[metadata.PlaceAnnotation], balancer, env.messages("Service", name, services.EventSyncFailed))
		}
		return ""
	})
}

func (env *placementEnv) selector(balancer string) string {
	env.Helper()
	p := get[v1alpha1.BackendPool](env.testEnv, env.ns, "nodes."+balancer)
	return p.Spec.Nodes.Selector.MatchLabels[metadata.PlaceLabel]
}

func (env *placementEnv) waitForSelector(balancer, want string) {
	env.Helper()
	env.waitUntil(func() string {
		if got := env.selector(balancer); got != want {
			return fmt.Sprintf("the pool of nodes of %s selects %q, want %q", balancer, got, want)
		}
		return ""
	})
}

func (env *placementEnv) machineReads(n int) []time.Time {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	return slices.Clone(injectedResults.sent[strings.ToLower(env.machine(n))])
}

func (env *placementEnv) setMachineResults(n int, of ...injectedResult) {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	injectedResults.of[http.MethodGet+strings.ToLower(env.machine(n))] = of
}

func (env *placementEnv) waitForPlacementEvent(n int, part string) {
	env.Helper()
	env.waitUntil(func() string {
		var list corev1.EventList
		if err := api.List(env.Context(), &list, client.InNamespace("default")); err != nil {
			return err.Error()
		}
		count, text := 0, ""
		for _, e := range list.Items {
			if e.InvolvedObject.Name == env.node(n) && e.Reason == nodes.EventNotPlaced {
				count += int(max(e.Count, 1))
				text = e.Message
			}
		}
		if count != 1 || !strings.Contains(text, part) {
			return fmt.Sprintf("%d events, the last is %q; want one with %q", count, text, part)
		}
		return ""
	})
}

// azureCalls excludes leftovers of other tests, which are polled, too.
func (env *placementEnv) azureCalls(kinds ...armemu.Kind) (calls []string) {
	for _, c := range cloud.Calls() {
		if strings.Contains(c.Resource, env.ns) && (len(kinds) == 0 || slices.Contains(kinds, c.Kind)) {
			calls = append(calls, fmt.Sprint(c.Method, " ", c.Resource))
		}
	}
	return calls
}

func (env *placementEnv) armWrites() []string {
	return env.azureCalls(armemu.KindPut, armemu.KindDelete)
}

func (env *placementEnv) nodeVersions(n int) []string {
	env.Helper()
	var versions []string
	for i := 1; i <= n; i++ {
		versions = append(versions, get[corev1.Node](env.testEnv, "", env.node(i)).ResourceVersion)
	}
	return versions
}

func (env *placementEnv) waitForReads() {
	env.Helper()
	last, since := len(env.azureCalls()), time.Now()
	env.waitUntil(func() string {
		if current := len(env.azureCalls()); current != last {
			last, since = current, time.Now()
		}
		if time.Since(since) < 700*time.Millisecond { // longer than the batching delay for Services
			return "Azure is still asked"
		}
		return ""
	})
}
