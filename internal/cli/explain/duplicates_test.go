// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/api/v1alpha1"
	poolmembers "weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/membership"
)

// placedNode is a node with an address that was placed on a load balancer; empty for none.
func placedNode(name, address, place string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	if place != "" {
		n.Labels[metadata.PlaceLabel] = place
	}
	return n
}

func onPlace(place string) *v1alpha1.NodeMembers {
	return &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{metadata.PlaceLabel: place}}}
}

func told(t *testing.T, name string, objects ...client.Object) string {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(scheme()).WithObjects(objects...)
	api := b.WithIndex(&corev1.Event{}, "involvedObject.kind", func(client.Object) []string { return nil }).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(client.Object) []string { return nil }).Build()
	explanation, err := Reader{API: api, Now: noon}.ExplainNode(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := explanation.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Of nodes with one address on two load balancers the first by name counts, in the pools of its load balancer alone; the
// pool and the nodes say which it is.
func TestNodesWithOneAddressOnTwoLoadBalancers(t *testing.T) {
	a, b, c := placedNode("a", "10.0.0.1", "lb-2"), placedNode("b", "10.0.0.1", "kubernetes"), placedNode("c", "10.0.0.3", "kubernetes")
	first := pool("weir-system", "nodes.kubernetes", v1alpha1.BackendPoolSpec{Nodes: onPlace("kubernetes")}, "10.0.0.3")
	second := pool("weir-system", "nodes.lb-2", v1alpha1.BackendPoolSpec{Nodes: onPlace("lb-2")}, "10.0.0.1")
	second.Spec.LoadBalancer.Name = "lb-2"
	first.Status.Down, second.Status.Down = nil, nil
	nodes := []corev1.Node{a, b, c}
	remaining := Member{Node: "b", State: LeftOut, Why: "its address 10.0.0.1 is also that of node a, which is on load balancer lb-2 and counts: it is the first by name"}
	if got, want := memberStates(first, nil, nodes, noon), []Member{remaining, {Node: "c", Address: "10.0.0.3", State: InPool}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := memberStates(second, nil, nodes, noon), []Member{{Node: "a", Address: "10.0.0.1", State: InPool}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for name, want := range map[string]string{"a": "Duplicate address: nodes a, b have 10.0.0.1; a counts, and the address is on load balancer lb-2\n", "b": "; a counts", "c": ""} {
		text := told(t, name, &a, &b, &c, first, second)
		if !strings.Contains(text, want) || strings.Contains(text, "Duplicate") != (want != "") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// The pool of a Local Service has nodes of any load balancer: those that host its endpoints.
func TestALocalServiceHasNodesOfAnyLoadBalancer(t *testing.T) {
	p := pool("shop", "web.kubernetes", v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: "web"}}, "10.0.0.1")
	p.Status.MadeFor, p.Status.Down = "uid-of-web", nil
	n := placedNode("n1", "10.0.0.1", "lb-2")
	slice := discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{NodeName: &n.Name}}}
	if got, want := memberStates(p, []discoveryv1.EndpointSlice{slice}, []corev1.Node{n}, noon), []Member{{Node: "n1", Address: "10.0.0.1", State: InPool}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A node that a label excludes is Down in its pools first, and is shown there until it has left.
func TestAnExcludedNodeThatIsStillThere(t *testing.T) {
	n := placedNode("n1", "10.0.0.1", "")
	n.Labels[corev1.LabelNodeExcludeBalancers] = ""
	p := pool("weir-system", "nodes.kubernetes", v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{}}, "10.0.0.1")
	down := func(since time.Duration) {
		p.Status.Down = []v1alpha1.DownAddress{{Address: "10.0.0.1", Node: "n1", Reason: "leaves, excluded", Since: ago(since)}}
	}
	down(4 * time.Minute)
	const why = "leaves, excluded; it leaves when nothing serves on the node, at 2026-03-01T12:06:00Z at the latest"
	if got, want := memberStates(p, nil, []corev1.Node{n}, noon), []Member{{Node: "n1", Address: "10.0.0.1", State: Down, Why: why}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	text := told(t, "n1", &n, p)
	if strings.Contains(text, "Left out of every pool") || !strings.Contains(text, "Excluded: it is labelled") || !strings.Contains(text, "Down: "+why) {
		t.Error(text)
	}
	down(11 * time.Minute)
	if got := memberStates(p, nil, []corev1.Node{n}, noon); len(got) != 1 || got[0].State != Leaving || !strings.HasPrefix(got[0].Why, "it is labelled") {
		t.Errorf("after its time: %+v", got)
	}
	p.Status.Down = nil
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Message: poolmembers.InSyncMessage(membership.Set{LastUp: []membership.Drain{{Node: "n1"}}})}}
	if got := memberStates(p, nil, []corev1.Node{n}, noon); len(got) != 1 || got[0].State != InPool || !strings.HasSuffix(got[0].Why, "it remains up while no other member takes new flows") {
		t.Errorf("the last that is up: %+v", got)
	}
	p.Status.Conditions[0].Status = metav1.ConditionFalse // the message may be old
	if got := memberStates(p, nil, []corev1.Node{n}, noon); len(got) != 1 || got[0].State != Leaving {
		t.Errorf("not in sync: %+v", got)
	}
	p.Status.Conditions = nil
	p.Status.Down, p.Status.WrittenAddresses = nil, nil
	if text := told(t, "n1", &n, p); !strings.Contains(text, "Left out of every pool: it is labelled") {
		t.Error(text)
	}
	p.Status.WrittenAddresses = []string{"10.0.0.1"}
	if got := fmt.Sprint(memberStates(p, nil, []corev1.Node{n}, noon)); !strings.Contains(got, Leaving) {
		t.Errorf("not Down: %s", got)
	}
}
