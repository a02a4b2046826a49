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

func (env *testEnv) lbID() string { return network + "/loadBalancers/" + env.ns }

func (env *testEnv) loadBalancer(pools ...string) {
	env.Helper()
	env.put(env.lbID(), `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"fe"}]}}`)
	for _, pool := range pools {
		env.azurePool(pool)
	}
}

func (env *testEnv) azurePool(name string, ips ...string) {
	env.Helper()
	entries := []string{}
	for _, ip := range ips {
		entries = append(entries, fmt.Sprintf(`{"name":"other-%s","properties":{"ipAddress":%q}}`, strings.NewReplacer(".", "-", ":", "-").Replace(ip), ip))
	}
	env.put(env.lbID()+"/backendAddressPools/"+name, fmt.Sprintf(`{"name":%q,"properties":{"virtualNetwork":{"id":%q},"loadBalancerBackendAddresses":[%s]}}`,
		name, vnetID, strings.Join(entries, ",")))
}

func (env *testEnv) put(id, body string) {
	env.Helper()
	if err := cloud.Put(id, []byte(body)); err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) ip(n int) string  { return fmt.Sprintf("10.%d.0.%d", env.no, n) }
func (env *testEnv) ip6(n int) string { return fmt.Sprintf("fd00:%d::%d", env.no, n) }

func (env *testEnv) node(n int) string { return fmt.Sprintf("%s-n%d", env.ns, n) }

func (env *testEnv) createNode(n int, ips ...string) {
	env.Helper()
	env.createLabeledNode(n, nil, ips...)
}

func (env *testEnv) createLabeledNode(n int, labels map[string]string, ips ...string) {
	env.Helper()
	if ips == nil {
		ips = []string{env.ip(n)}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: env.node(n), Labels: labels}}
	env.create(node)
	env.Cleanup(func() {
		_ = api.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: env.node(n)}})
	})
	env.setIPs(n, ips...)
}

func (env *testEnv) setIPs(n int, ips ...string) {
	env.Helper()
	node := get[corev1.Node](env, "", env.node(n))
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: node.Name}}
	for _, ip := range ips {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	if err := api.Status().Update(env.Context(), node); err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) createService(name string, kind corev1.ServiceType) {
	env.Helper()
	env.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: name},
		Spec:       corev1.ServiceSpec{Type: kind, Ports: []corev1.ServicePort{{Port: 80}}},
	})
}

func (env *testEnv) endpointOn(n int) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}, NodeName: new(env.node(n)), Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}
}

func (env *testEnv) createSlice(name, service string, endpoints ...discoveryv1.Endpoint) {
	env.Helper()
	env.createSliceOf(discoveryv1.AddressTypeIPv4, name, service, endpoints...)
}

func (env *testEnv) createSliceOf(family discoveryv1.AddressType, name, service string, endpoints ...discoveryv1.Endpoint) {
	env.Helper()
	for i := range endpoints {
		switch family {
		case discoveryv1.AddressTypeIPv6:
			endpoints[i].Addresses = []string{"2001:db8::1"}
		case discoveryv1.AddressTypeFQDN:
			endpoints[i].Addresses = []string{"pod.example.com"}
		}
	}
	env.create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: env.ns, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: family, Endpoints: endpoints,
	})
}

func (env *testEnv) changeSlice(name string, endpoints ...discoveryv1.Endpoint) {
	env.Helper()
	change(env, env.ns, name, func(es *discoveryv1.EndpointSlice) { es.Endpoints = endpoints })
}

func (env *testEnv) createBackendPool(name, service string, spec ...func(*v1alpha1.BackendPoolSpec)) {
	env.Helper()
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: name}}
	p.Spec = v1alpha1.BackendPoolSpec{
		ServiceRef:   &v1alpha1.ServiceReference{Name: service},
		LoadBalancer: v1alpha1.LoadBalancerReference{Name: env.ns}, PoolName: name,
	}
	for _, f := range spec {
		f(&p.Spec)
	}
	env.create(p)
}

func (env *testEnv) create(obj client.Object) {
	env.Helper()
	if err := api.Create(env.Context(), obj); err != nil {
		env.Fatal(err)
	}
}

func (env *testEnv) delete(obj client.Object, name string) {
	env.Helper()
	obj.SetName(name)
	if _, node := obj.(*corev1.Node); !node {
		obj.SetNamespace(env.ns)
	}
	if err := api.Delete(env.Context(), obj); err != nil {
		env.Fatal(err)
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

func (env *testEnv) waitUntil(check func() string) {
	env.Helper()
	controlplane.WaitUntil(env.T, check)
}

func (env *testEnv) poolAddresses(pool string) []string {
	env.Helper()
	raw, ok := cloud.Get(env.lbID() + "/backendAddressPools/" + pool)
	if !ok {
		env.Fatalf("no pool %s", pool)
	}
	var body struct {
		Properties struct {
			LoadBalancerBackendAddresses []struct{ Properties struct{ IPAddress string } }
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		env.Fatal(err)
	}
	ips := []string{}
	for _, a := range body.Properties.LoadBalancerBackendAddresses {
		ips = append(ips, a.Properties.IPAddress)
	}
	slices.Sort(ips)
	return ips
}

// waitForMembers waits until a pool holds exactly these addresses and its BackendPool is in sync.
func (env *testEnv) waitForMembers(pool string, ips ...string) {
	env.Helper()
	slices.Sort(ips)
	env.waitUntil(func() string {
		if got := env.poolAddresses(pool); !slices.Equal(got, ips) {
			return fmt.Sprintf("pool %s holds %v, want %v; %s", pool, got, ips, env.syncedMessage(pool))
		}
		if c := env.syncedCondition(pool); c.Reason != v1alpha1.ReasonInSync || c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("BackendPool %s: %s", pool, env.syncedMessage(pool))
		}
		return ""
	})
}

func (env *testEnv) status(name string) v1alpha1.BackendPoolStatus {
	env.Helper()
	return get[v1alpha1.BackendPool](env, env.ns, name).Status
}

func (env *testEnv) syncedCondition(name string) metav1.Condition {
	env.Helper()
	if c := meta.FindStatusCondition(env.status(name).Conditions, v1alpha1.ConditionSynced); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (env *testEnv) syncedMessage(name string) string {
	env.Helper()
	c := env.syncedCondition(name)
	return fmt.Sprintf("Synced=%s %s: %s", c.Status, c.Reason, c.Message)
}

func (env *testEnv) waitForReason(name, reason, part string) {
	env.Helper()
	env.waitUntil(func() string {
		if c := env.syncedCondition(name); c.Reason != reason || !strings.Contains(c.Message, part) {
			return fmt.Sprintf("BackendPool %s: %s; want %s and %q", name, env.syncedMessage(name), reason, part)
		}
		return ""
	})
}

func (env *testEnv) waitForDeletion(name string) {
	env.Helper()
	env.waitUntil(func() string {
		p := &v1alpha1.BackendPool{}
		if api.Get(env.Context(), client.ObjectKey{Namespace: env.ns, Name: name}, p) != nil {
			return ""
		}
		return fmt.Sprintf("BackendPool %s is there: %+v", name, p.Status.Conditions)
	})
}

func (env *testEnv) countCalls(kinds ...armemu.Kind) int {
	own := func(c armemu.Call) bool { return strings.HasPrefix(c.Resource+"/", env.lbID()+"/") }
	return len(cloud.Calls(own, armemu.ByKind(kinds...)))
}

func (env *testEnv) countWrites() int { return env.countCalls(armemu.KindPut, armemu.KindDelete) }

func (env *testEnv) countEvents(kind, name string) map[string]int {
	env.Helper()
	var list corev1.EventList
	if err := api.List(env.Context(), &list, client.InNamespace(env.ns)); err != nil {
		env.Fatal(err)
	}
	output := map[string]int{}
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
			output[e.Reason] += int(max(e.Count, 1))
		}
	}
	return output
}

func (env *testEnv) messages(kind, name, reason string) []string {
	env.Helper()
	var list corev1.EventList
	if err := api.List(env.Context(), &list, client.InNamespace(env.ns)); err != nil {
		env.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name && e.Reason == reason {
			out = append(out, e.Message)
		}
	}
	return out
}

func (env *testEnv) waitForEvent(kind, name, reason string, times int) {
	env.Helper()
	env.waitUntil(func() string {
		if got := env.countEvents(kind, name); got[reason] != times {
			return fmt.Sprintf("events of %s %s: %v, want %s %d times", kind, name, got, reason, times)
		}
		return ""
	})
}
