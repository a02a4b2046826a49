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
func (s *placementEnv) restartWith(several ...service.Configuration) {
	s.Helper()
	if err := controller.stop(); err != nil {
		s.Fatal(err)
	}
	group := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: "rg"}
	settings := loadbalancer.Settings{
		Settings: service.Settings{ClusterName: s.ns, SeveralLoadBalancers: true, PublicIPs: group, VirtualNetwork: vnetID},
		Place:    lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: "rg"}, Location: "eastus", MaxRules: 250,
		Configurations: several,
	}
	if len(several) == 0 {
		settings.Configurations = []service.Configuration{{Name: s.ns}}
	}
	var err error
	controller, err = startController(cluster.Config, nil, nil, func(r *testController, arm *azure.Client, log *slog.Logger) {
		r.kube.EnableLoadBalancers(loadbalancer.New(loadbalancer.Config{
			Settings: settings, Azure: arm, Workers: r.lanes, Cluster: r.kube.Services, OnResult: r.kube.Services.HandleResult, Log: log,
		}), services.Options{
			Class: "example.com/" + s.ns, Settings: settings.Settings, Namespace: s.ns,
			Configurations: several, AvailabilitySet: arm.AvailabilitySet,
		})
	})
	if err != nil {
		s.Fatal(err)
	}
}

func (s *placementEnv) machine(n int) string { return compute + "/virtualMachines/" + s.node(n) }

// createMachineNode creates the n-th node, a VM in an availability set or in none.
func (s *placementEnv) createMachineNode(n int, set string) {
	s.Helper()
	body := `{"location":"eastus","properties":{}}`
	if set != "" {
		body = fmt.Sprintf(`{"location":"eastus","properties":{"availabilitySet":{"id":"%s/availabilitySets/%s"}}}`, compute, set)
	}
	s.put(s.machine(n), body)
	s.createNodeOf(n, "azure://"+s.machine(n))
}

func (s *placementEnv) createScaleSetNode(n int, set string) {
	s.Helper()
	s.createNodeOf(n, fmt.Sprintf("azure://%s/virtualMachineScaleSets/%s/virtualMachines/%d", compute, set, n))
}

func (s *placementEnv) createNodeOf(n int, providerID string) {
	s.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node(n)}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	s.create(node)
	s.Cleanup(func() { _ = api.Delete(context.Background(), node) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: s.ip(n)}}
	s.waitUntil(func() string { // its label is set concurrently
		fresh := get[corev1.Node](s.testEnv, "", node.Name)
		fresh.Status.Addresses = node.Status.Addresses
		if err := api.Status().Update(s.Context(), fresh); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (s *placementEnv) createNodeService(name string, configurations string) {
	s.Helper()
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("example.com/" + s.ns), Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	if configurations != "" {
		svc.Annotations = map[string]string{service.Configurations: configurations}
	}
	s.create(svc)
	s.Cleanup(func() {
		svc.Finalizers = nil // unknown to the next controller
		_ = api.Patch(context.Background(), svc, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		_ = api.Delete(context.Background(), svc)
	})
}

func (s *placementEnv) nodeLabel(n int) string {
	s.Helper()
	return get[corev1.Node](s.testEnv, "", s.node(n)).Labels[metadata.PlaceLabel]
}

func (s *placementEnv) waitForLabels(want map[int]string) {
	s.Helper()
	s.waitUntil(func() string {
		got := map[int]string{}
		for n := range want {
			got[n] = s.nodeLabel(n)
		}
		if !maps.Equal(got, want) {
			return fmt.Sprintf("labels are %v, want %v", got, want)
		}
		return ""
	})
}

func (s *placementEnv) sharedAddresses(balancer string) []string {
	s.Helper()
	raw, _ := cloud.Get(network + "/loadBalancers/" + balancer + "/backendAddressPools/" + s.ns)
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

func (s *placementEnv) waitForShared(balancer string, nodes ...int) {
	s.Helper()
	want := []string{}
	for _, n := range nodes {
		want = append(want, s.ip(n))
	}
	s.waitUntil(func() string {
		if got := s.sharedAddresses(balancer); !slices.Equal(got, want) {
			return fmt.Sprintf("%s has the nodes %v, want %v", balancer, got, want)
		}
		return ""
	})
}

func (s *placementEnv) waitForPlace(name, balancer string) {
	s.Helper()
	s.waitUntil(func() string {
		svc := get[corev1.Service](s.testEnv, s.ns, name)
		if svc.Annotations[metadata.PlaceAnnotation] != balancer || len(svc.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprintf("%s is on %q, want %s; events %v", name, svc.Annotations[metadata.PlaceAnnotation], balancer, s.messages("Service", name, services.EventSyncFailed))
		}
		return ""
	})
}

func (s *placementEnv) selector(balancer string) string {
	s.Helper()
	p := get[v1alpha1.BackendPool](s.testEnv, s.ns, "nodes."+balancer)
	return p.Spec.Nodes.Selector.MatchLabels[metadata.PlaceLabel]
}

func (s *placementEnv) waitForSelector(balancer, want string) {
	s.Helper()
	s.waitUntil(func() string {
		if got := s.selector(balancer); got != want {
			return fmt.Sprintf("the pool of nodes of %s selects %q, want %q", balancer, got, want)
		}
		return ""
	})
}

func (s *placementEnv) machineReads(n int) []time.Time {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	return slices.Clone(injectedResults.sent[strings.ToLower(s.machine(n))])
}

func (s *placementEnv) setMachineResults(n int, of ...injectedResult) {
	injectedResults.Lock()
	defer injectedResults.Unlock()
	injectedResults.of[http.MethodGet+strings.ToLower(s.machine(n))] = of
}

func (s *placementEnv) waitForPlacementEvent(n int, part string) {
	s.Helper()
	s.waitUntil(func() string {
		var list corev1.EventList
		if err := api.List(s.Context(), &list, client.InNamespace("default")); err != nil {
			return err.Error()
		}
		count, text := 0, ""
		for _, e := range list.Items {
			if e.InvolvedObject.Name == s.node(n) && e.Reason == nodes.EventNotPlaced {
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
func (s *placementEnv) azureCalls(kinds ...armemu.Kind) (calls []string) {
	for _, c := range cloud.Calls() {
		if strings.Contains(c.Resource, s.ns) && (len(kinds) == 0 || slices.Contains(kinds, c.Kind)) {
			calls = append(calls, fmt.Sprint(c.Method, " ", c.Resource))
		}
	}
	return calls
}

func (s *placementEnv) armWrites() []string { return s.azureCalls(armemu.KindPut, armemu.KindDelete) }

func (s *placementEnv) nodeVersions(n int) []string {
	s.Helper()
	var all []string
	for i := 1; i <= n; i++ {
		all = append(all, get[corev1.Node](s.testEnv, "", s.node(i)).ResourceVersion)
	}
	return all
}

func (s *placementEnv) waitForReads() {
	s.Helper()
	last, since := len(s.azureCalls()), time.Now()
	s.waitUntil(func() string {
		if current := len(s.azureCalls()); current != last {
			last, since = current, time.Now()
		}
		if time.Since(since) < 700*time.Millisecond { // longer than the batching delay for Services
			return "Azure is still asked"
		}
		return ""
	})
}
