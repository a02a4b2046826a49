// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/controlplane"
)

// testEnv is the environment of one test.
type testEnv struct {
	*testing.T
	ns   string // also the load balancer's name and the prefix of node names
	no   int64
	last int // last node created to synchronize
}

var scenes atomic.Int64

func newTestEnv(t *testing.T, pools ...string) *testEnv {
	t.Helper()
	s := &testEnv{T: t, no: scenes.Add(1)}
	s.ns = fmt.Sprintf("scene-%03d", s.no)
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns, Annotations: map[string]string{service.LoadBalancersAnnotation: s.ns + "," + s.ns + "-none"}}})
	s.loadBalancer(pools...)
	return s
}

func (s *testEnv) lbID() string { return network + "/loadBalancers/" + s.ns }

func (s *testEnv) loadBalancer(pools ...string) {
	s.Helper()
	s.put(s.lbID(), `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"fe"}]}}`)
	for _, pool := range pools {
		s.azurePool(pool)
	}
}

func (s *testEnv) azurePool(name string, ips ...string) {
	s.Helper()
	entries := []string{}
	for _, ip := range ips {
		entries = append(entries, fmt.Sprintf(`{"name":"other-%s","properties":{"ipAddress":%q}}`, strings.NewReplacer(".", "-", ":", "-").Replace(ip), ip))
	}
	s.put(s.lbID()+"/backendAddressPools/"+name, fmt.Sprintf(`{"name":%q,"properties":{"virtualNetwork":{"id":%q},"loadBalancerBackendAddresses":[%s]}}`,
		name, vnetID, strings.Join(entries, ",")))
}

func (s *testEnv) put(id, body string) {
	s.Helper()
	if err := cloud.Put(id, []byte(body)); err != nil {
		s.Fatal(err)
	}
}

func (s *testEnv) ip(n int) string  { return fmt.Sprintf("10.%d.0.%d", s.no, n) }
func (s *testEnv) ip6(n int) string { return fmt.Sprintf("fd00:%d::%d", s.no, n) }

func (s *testEnv) node(n int) string { return fmt.Sprintf("%s-n%d", s.ns, n) }

func (s *testEnv) createNode(n int, ips ...string) {
	s.Helper()
	s.createLabeledNode(n, nil, ips...)
}

func (s *testEnv) createLabeledNode(n int, labels map[string]string, ips ...string) {
	s.Helper()
	if ips == nil {
		ips = []string{s.ip(n)}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node(n), Labels: labels}}
	s.create(node)
	s.Cleanup(func() {
		_ = api.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node(n)}})
	})
	s.setIPs(n, ips...)
}

func (s *testEnv) setIPs(n int, ips ...string) {
	s.Helper()
	node := get[corev1.Node](s, "", s.node(n))
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
	for _, ip := range ips {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	if err := api.Status().Update(s.Context(), node); err != nil {
		s.Fatal(err)
	}
}

func (s *testEnv) createService(name string, kind corev1.ServiceType) {
	s.Helper()
	s.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name},
		Spec:       corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80}}},
	})
}

func (s *testEnv) endpointOn(n int) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}, NodeName: new(s.node(n)), Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}
}

func (s *testEnv) createSlice(name, service string, endpoints ...discoveryv1.Endpoint) {
	s.Helper()
	s.createSliceOf(discoveryv1.AddressTypeIPv4, name, service, endpoints...)
}

func (s *testEnv) createSliceOf(family discoveryv1.AddressType, name, service string, endpoints ...discoveryv1.Endpoint) {
	s.Helper()
	for i := range endpoints {
		switch family {
		case discoveryv1.AddressTypeIPv6:
			endpoints[i].Addresses = []string{"2001:db8::1"}
		case discoveryv1.AddressTypeFQDN:
			endpoints[i].Addresses = []string{"pod.example.com"}
		}
	}
	s.create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: s.ns, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: family, Endpoints: endpoints,
	})
}

func (s *testEnv) changeSlice(name string, endpoints ...discoveryv1.Endpoint) {
	s.Helper()
	change(s, s.ns, name, func(es *discoveryv1.EndpointSlice) { es.Endpoints = endpoints })
}

func (s *testEnv) createBackendPool(name, service string, spec ...func(*v1alpha1.BackendPoolSpec)) {
	s.Helper()
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	p.Spec = v1alpha1.BackendPoolSpec{
		ServiceRef:   &v1alpha1.ServiceReference{Name: service},
		LoadBalancer: v1alpha1.LoadBalancerReference{Name: s.ns}, PoolName: name,
	}
	for _, f := range spec {
		f(&p.Spec)
	}
	s.create(p)
}

func (s *testEnv) create(obj client.Object) {
	s.Helper()
	if err := api.Create(s.Context(), obj); err != nil {
		s.Fatal(err)
	}
}

func (s *testEnv) delete(obj client.Object, name string) {
	s.Helper()
	obj.SetName(name)
	if _, node := obj.(*corev1.Node); !node {
		obj.SetNamespace(s.ns)
	}
	if err := api.Delete(s.Context(), obj); err != nil {
		s.Fatal(err)
	}
}

func get[T any, P interface {
	*T
	client.Object
}](s *testEnv, namespace, name string) P {
	s.Helper()
	obj := P(new(T))
	if err := api.Get(s.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		s.Fatal(err)
	}
	return obj
}

func change[T any, P interface {
	*T
	client.Object
}](s *testEnv, namespace, name string, fn func(P)) {
	s.Helper()
	obj := get[T, P](s, namespace, name)
	before := obj.DeepCopyObject().(P)
	fn(obj)
	if err := api.Patch(s.Context(), obj, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
}

func (s *testEnv) waitUntil(check func() string) {
	s.Helper()
	controlplane.WaitUntil(s.T, check)
}

func (s *testEnv) poolAddresses(pool string) []string {
	s.Helper()
	raw, ok := cloud.Get(s.lbID() + "/backendAddressPools/" + pool)
	if !ok {
		s.Fatalf("no pool %s", pool)
	}
	var body struct {
		Properties struct {
			LoadBalancerBackendAddresses []struct{ Properties struct{ IPAddress string } }
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		s.Fatal(err)
	}
	ips := []string{}
	for _, a := range body.Properties.LoadBalancerBackendAddresses {
		ips = append(ips, a.Properties.IPAddress)
	}
	slices.Sort(ips)
	return ips
}

// waitForMembers waits until a pool holds exactly these addresses and its BackendPool is in sync.
func (s *testEnv) waitForMembers(pool string, ips ...string) {
	s.Helper()
	slices.Sort(ips)
	s.waitUntil(func() string {
		if got := s.poolAddresses(pool); !slices.Equal(got, ips) {
			return fmt.Sprintf("pool %s holds %v, want %v; %s", pool, got, ips, s.syncedMessage(pool))
		}
		if c := s.syncedCondition(pool); c.Reason != v1alpha1.ReasonInSync || c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("BackendPool %s: %s", pool, s.syncedMessage(pool))
		}
		return ""
	})
}

func (s *testEnv) status(name string) v1alpha1.BackendPoolStatus {
	s.Helper()
	return get[v1alpha1.BackendPool](s, s.ns, name).Status
}

func (s *testEnv) syncedCondition(name string) metav1.Condition {
	s.Helper()
	if c := meta.FindStatusCondition(s.status(name).Conditions, v1alpha1.ConditionSynced); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (s *testEnv) syncedMessage(name string) string {
	s.Helper()
	c := s.syncedCondition(name)
	return fmt.Sprintf("Synced=%s %s: %s", c.Status, c.Reason, c.Message)
}

func (s *testEnv) waitForReason(name, reason, part string) {
	s.Helper()
	s.waitUntil(func() string {
		if c := s.syncedCondition(name); c.Reason != reason || !strings.Contains(c.Message, part) {
			return fmt.Sprintf("BackendPool %s: %s; want %s and %q", name, s.syncedMessage(name), reason, part)
		}
		return ""
	})
}

func (s *testEnv) waitForDeletion(name string) {
	s.Helper()
	s.waitUntil(func() string {
		p := &v1alpha1.BackendPool{}
		if api.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, p) != nil {
			return ""
		}
		return fmt.Sprintf("BackendPool %s is there: %+v", name, p.Status.Conditions)
	})
}

func (s *testEnv) countCalls(kinds ...armemu.Kind) int {
	mine := func(c armemu.Call) bool { return strings.HasPrefix(c.Resource+"/", s.lbID()+"/") }
	return len(cloud.Calls(mine, armemu.ByKind(kinds...)))
}

func (s *testEnv) countWrites() int { return s.countCalls(armemu.KindPut, armemu.KindDelete) }

func (s *testEnv) countEvents(kind, name string) map[string]int {
	s.Helper()
	var list corev1.EventList
	if err := api.List(s.Context(), &list, client.InNamespace(s.ns)); err != nil {
		s.Fatal(err)
	}
	said := map[string]int{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
			said[e.Reason] += int(max(e.Count, 1))
		}
	}
	return said
}

func (s *testEnv) messages(kind, name, reason string) []string {
	s.Helper()
	var list corev1.EventList
	if err := api.List(s.Context(), &list, client.InNamespace(s.ns)); err != nil {
		s.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == reason {
			out = append(out, e.Message)
		}
	}
	return out
}

func (s *testEnv) waitForEvent(kind, name, reason string, times int) {
	s.Helper()
	s.waitUntil(func() string {
		if got := s.countEvents(kind, name); got[reason] != times {
			return fmt.Sprintf("events of %s %s: %v, want %s %d times", kind, name, got, reason, times)
		}
		return ""
	})
}
