// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
	"weir.dev/weir/test/patient"
)

const (
	subscription = "00000000-0000-0000-0000-000000000000"
	network      = "/subscriptions/" + subscription + "/resourceGroups/rg/providers/Microsoft.Network"
	vnetID       = network + "/virtualNetworks/vnet"
	nodes        = 6
)

// stage is a controller with its own cloud behind a proxy. It has one Service and one pool, both
// named web, and some nodes.
type stage struct {
	*testing.T

	ns    string
	no    string
	proxy *apifault.Proxy
	cloud *armemu.Emulator
	// interval is the updater's interval.
	interval time.Duration
	// wanted is the history of desired pool members.
	wanted [][]string

	mu           sync.Mutex
	conflicts    int    // number of Azure writes to answer with 409
	afterWrite   func() // called once after the next accepted Azure write
	beforeReport func() // called once before the updater's next report
	puts         []put
	unrecorded   []string
	events       map[string]int // events on the Service by reason
	failures     int            // failed reconciliations, counted from the log
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{
		T: t, ns: newNamespace(t), proxy: newProxy(t), cloud: patient.Watch(t, armemu.New(armemu.Options{Seed: 1})),
		interval: time.Second, events: map[string]int{},
	}
	s.no = strings.TrimLeft(strings.TrimPrefix(s.ns, "fault-"), "0")
	s.proxy.ConfineTo(s.ns)
	for id, body := range map[string]string{
		vnetID: `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`,
		network + "/loadBalancers/" + s.ns: `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"theirs"}],"backendAddressPools":[{"name":"web",
			"properties":{"virtualNetwork":{"id":"` + vnetID + `"},"loadBalancerBackendAddresses":[{"name":"other","properties":{"ipAddress":"10.255.0.9"}}]}}]}}`,
	} {
		if err := s.cloud.Put(id, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= nodes; n++ {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node(n)}}
		s.create(node)
		t.Cleanup(func() { _ = api.Delete(context.Background(), node) })
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: s.ip(n)}}
		if err := api.Status().Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	s.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	s.create(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: s.ns, Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: s.endpoints(1),
	})
	s.create(&v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "web"},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef:   &v1alpha1.ServiceReference{Name: "web"},
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: s.ns}, PoolName: "web",
		},
	})
	return s
}

func (s *stage) node(n int) string { return fmt.Sprintf("%s-n%d", s.ns, n) }
func (s *stage) ip(n int) string   { return fmt.Sprintf("10.%s.0.%d", s.no, n) }

func (s *stage) create(obj client.Object) {
	s.Helper()
	if err := api.Create(s.Context(), obj); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) endpoints(on ...int) []discoveryv1.Endpoint {
	endpoints := []discoveryv1.Endpoint{}
	for _, n := range on {
		endpoints = append(endpoints, discoveryv1.Endpoint{Addresses: []string{"192.0.2.1"}, NodeName: new(s.node(n))})
	}
	return endpoints
}

// moveEndpoints sets the Service's nodes, bypassing the proxy.
func (s *stage) moveEndpoints(to ...int) {
	s.Helper()
	slice := &discoveryv1.EndpointSlice{}
	if err := api.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: "web-1"}, slice); err != nil {
		s.Fatal(err)
	}
	slice.Endpoints = s.endpoints(to...)
	if err := api.Update(s.Context(), slice); err != nil {
		s.Fatal(err)
	}
	s.wanted = append(s.wanted, s.holding(to...))
}

// churnEndpoints moves the endpoints ten times within two seconds of real time.
func (s *stage) churnEndpoints() {
	s.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for i := range 10 {
		s.moveEndpoints(1+i%nodes, 1+(i+2)%nodes)
		<-tick.C
	}
}

func (s *stage) waitFault(d time.Duration) {
	s.Helper()
	select {
	case <-time.After(d):
	case <-s.Context().Done():
	}
}

func (s *stage) status() v1alpha1.BackendPoolStatus {
	p := &v1alpha1.BackendPool{}
	_ = api.Get(context.Background(), client.ObjectKey{Namespace: s.ns, Name: "web"}, p) // empty if there is none
	return p.Status
}

// failWrite replaces node 2 by node 3 in a write that Azure first rejects.
func (s *stage) failWrite() {
	s.Helper()
	s.interval = 20 * time.Second // the test breaks watches before the second try, however busy the machine
	s.runController(k8s.DefaultQueueBackoff())
	s.waitInSync(1)
	s.moveEndpoints(1, 2)
	s.waitInSync(1, 2)
	s.conflictNextWrites(1)
	s.moveEndpoints(1, 3)
	controlplane.WaitUntil(s.T, func() string {
		if c := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSynced); c.Reason != v1alpha1.ReasonRetrying {
			return "the first write was not refused: " + c.Message
		}
		return ""
	})
}

// waitInSync waits until Azure holds these nodes and the foreign member, and the BackendPool reports it.
// It returns the sum of the pauses between its polls.
func (s *stage) waitInSync(on ...int) time.Duration {
	s.Helper()
	want := s.holding(on...)
	// A member is retained while watches are broken, for at most StaleTimeout.
	return controlplane.Eventually(s.T, "it", k8s.StaleWatchTimeout+time.Minute, func() error {
		if got := s.pool(); !slices.Equal(got, want) {
			return fmt.Errorf("the pool holds %v, want %v", got, want)
		}
		status := s.status()
		written := slices.Sorted(slices.Values(status.WrittenAddresses))
		if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSynced); c == nil || c.Reason != v1alpha1.ReasonInSync || len(written) != len(on) {
			return fmt.Errorf("the BackendPool says %+v and records %v", c, written)
		}
		return nil
	})
}

// checkRecorded waits for all notifications and checks that every address was recorded before it was
// written.
func (s *stage) checkRecorded() {
	s.Helper()
	s.waitEvents()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.unrecorded {
		s.Error(name)
	}
}

// waitEvents waits until the Service has the updater's events.
func (s *stage) waitEvents() {
	s.Helper()
	controlplane.WaitUntil(s.T, func() string {
		var list corev1.EventList
		if err := api.List(s.Context(), &list, client.InNamespace(s.ns)); err != nil {
			return err.Error()
		}
		got := map[string]int{}
		for _, e := range list.Items {
			if e.InvolvedObject.Kind == "Service" && strings.HasPrefix(e.Reason, "LoadBalancer") { // the API server emits its own
				got[e.Reason] += int(max(e.Count, 1))
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !maps.Equal(got, s.events) {
			return fmt.Sprintf("events %v, want %v", got, s.events)
		}
		return ""
	})
}
