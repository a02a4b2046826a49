// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
)

func newBoundEnv(t *testing.T) *testEnv {
	t.Helper()
	t.Parallel()
	s := newTestEnv(t, "web")
	for n := 1; n <= 3; n++ {
		s.createNode(n)
	}
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createBackendPool("web", "web")
	return s
}

func TestSlicesOfOneServiceAreReadTogether(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1), s.endpointOn(2))
	s.createSlice("b", "web", s.endpointOn(2))
	s.waitForMembers("web", s.ip(1), s.ip(2))

	// The other slice still uses node 2.
	s.changeSlice("a", s.endpointOn(1))
	s.changeSlice("b", s.endpointOn(2), s.endpointOn(3))
	s.waitForMembers("web", s.ip(1), s.ip(2), s.ip(3))

	s.createSlice("c", "web", s.endpointOn(3))
	s.delete(&discoveryv1.EndpointSlice{}, "b")
	s.waitForMembers("web", s.ip(1), s.ip(3))

	s.delete(&discoveryv1.EndpointSlice{}, "a")
	s.delete(&discoveryv1.EndpointSlice{}, "c")
	s.waitForMembers("web") // no slice means no member, never all nodes
}

func TestReadinessDecides(t *testing.T) {
	s := newBoundEnv(t)
	conditioned := func(n int, ready, serving, terminating *bool) discoveryv1.Endpoint {
		e := s.endpointOn(n)
		e.Conditions = discoveryv1.EndpointConditions{Ready: ready, Serving: serving, Terminating: terminating}
		return e
	}
	yes, no := new(true), new(false)
	s.createSlice("a", "web", conditioned(1, nil, nil, nil), conditioned(2, no, no, no), conditioned(3, no, yes, yes))
	s.waitForMembers("web", s.ip(1), s.ip(3))
	s.changeSlice("a", conditioned(1, no, nil, nil), conditioned(2, yes, yes, no), conditioned(3, no, no, yes))
	s.waitForMembers("web", s.ip(2))
}

func TestSliceMovesToAnotherServiceByLabel(t *testing.T) {
	s := newBoundEnv(t)
	s.azurePool("api")
	s.createService("api", corev1.ServiceTypeNodePort)
	s.createBackendPool("api", "api")
	s.createSlice("a", "web", s.endpointOn(1))
	s.createSlice("b", "web", s.endpointOn(2))
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.waitForMembers("api")

	change(s, s.ns, "b", func(es *discoveryv1.EndpointSlice) { es.Labels[discoveryv1.LabelServiceName] = "api" })
	s.waitForMembers("web", s.ip(1))
	s.waitForMembers("api", s.ip(2))
}

func TestNodeThatAppearsLater(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1), s.endpointOn(4))
	s.waitForMembers("web", s.ip(1))
	s.waitForReason("web", v1alpha1.ReasonInSync, "left out: node "+s.node(4)+": the cluster has no node of that name yet")
	s.createNode(4)
	s.waitForMembers("web", s.ip(1), s.ip(4))
	s.waitForReason("web", v1alpha1.ReasonInSync, "in sync with 2 nodes")
}

func TestNodeChangesItsAddress(t *testing.T) {
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1), s.endpointOn(2))
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.setIPs(2, s.ip(22))
	s.waitForMembers("web", s.ip(1), s.ip(22))

	s.delete(&corev1.Node{}, s.node(1))
	s.waitForMembers("web", s.ip(22))
	s.createNode(1, s.ip(11)) // under its old name
	s.waitForMembers("web", s.ip(11), s.ip(22))
}

func TestExcludedNodesTakeNoTraffic(t *testing.T) {
	s := newBoundEnv(t)
	s.createLabeledNode(4, map[string]string{"node-role.kubernetes.io/control-plane": ""})
	s.createSlice("a", "web", s.endpointOn(1), s.endpointOn(2), s.endpointOn(4))
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.waitForReason("web", v1alpha1.ReasonInSync, "it is a control-plane node")

	const exclude = "node.kubernetes.io/exclude-from-external-load-balancers"
	change(s, "", s.node(2), func(n *corev1.Node) { n.Labels = map[string]string{exclude: ""} })
	change(s, "", s.node(3), func(n *corev1.Node) { n.Labels = map[string]string{exclude: ""} })
	s.waitForDown("web", s.node(2)) // it hosts an endpoint
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(2), s.endpointOn(3)) // no member joins
	s.waitForEvents()
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(3)) // it hosts none
	s.waitForMembers("web", s.ip(1))
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(2), s.endpointOn(3)) // an endpoint change does not restore it
	s.waitForEvents()
	s.waitForMembers("web", s.ip(1))
	change(s, "", s.node(2), func(n *corev1.Node) { delete(n.Labels, exclude) })
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.waitForDown("web")
}

// Karpenter sets its taint and the label in one patch, then evicts the pods. The node gets no new
// flows from then on, and leaves once it hosts no pod, unless Karpenter cancels the disruption.
func TestANodeThatKarpenterDisruptsIsDownInAPoolOfNodes(t *testing.T) {
	t.Parallel()
	const exclude = "node.kubernetes.io/exclude-from-external-load-balancers"
	s := newTestEnv(t, "shared")
	own := map[string]string{"scene": s.ns}
	for n := 1; n <= 3; n++ {
		s.createLabeledNode(n, own)
	}
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createService("metrics", corev1.ServiceTypeClusterIP)
	s.createSlice("a", "web", s.endpointOn(1), s.endpointOn(2))
	s.createSlice("m", "metrics", s.endpointOn(1), s.endpointOn(2), s.endpointOn(3))
	s.createBackendPool("shared", "", func(p *v1alpha1.BackendPoolSpec) {
		p.ServiceRef, p.Nodes = nil, &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: own}}
	})
	s.waitForMembers("shared", s.ip(1), s.ip(2), s.ip(3))
	disrupted := func(n int) {
		change(s, "", s.node(n), func(n *corev1.Node) {
			n.Labels[exclude] = "karpenter"
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
		})
	}
	disrupted(3) // hosts no pod of these load balancers
	s.waitForMembers("shared", s.ip(1), s.ip(2))
	disrupted(2)
	s.waitForDown("shared", s.node(2))
	s.waitForMembers("shared", s.ip(1), s.ip(2))
	s.waitUntil(func() string {
		if down := s.status("shared").Down; len(down) != 1 || down[0].Reason != "karpenter.sh/disrupted, excluded" {
			return fmt.Sprintf("Down: %+v", down)
		}
		return ""
	})
	change(s, "", s.node(2), func(n *corev1.Node) { delete(n.Labels, exclude); n.Spec.Taints = nil })
	s.waitForDown("shared")
	s.waitForMembers("shared", s.ip(1), s.ip(2))
	disrupted(2)
	s.waitForDown("shared", s.node(2))
	s.changeSlice("a", s.endpointOn(1))
	s.waitForMembers("shared", s.ip(1))
}

func TestDualStackServiceHasTwoPools(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web", "web-ipv6")
	s.createNode(1, s.ip(1), s.ip6(1))
	s.createNode(2, s.ip6(2), s.ip(2))
	s.createNode(3, s.ip(3))
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createBackendPool("web", "web")
	s.createBackendPool("web-ipv6", "web", func(p *v1alpha1.BackendPoolSpec) { p.IPFamily = "IPv6" })
	s.createSlice("four", "web", s.endpointOn(1), s.endpointOn(2))
	s.createSliceOf(discoveryv1.AddressTypeIPv6, "six", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1), s.ip(2))
	s.waitForMembers("web-ipv6", s.ip6(1))

	// One event changes both pools.
	s.setIPs(1, s.ip(11), s.ip6(11))
	s.waitForMembers("web", s.ip(11), s.ip(2))
	s.waitForMembers("web-ipv6", s.ip6(11))

	s.changeSlice("six", discoveryv1.Endpoint{Addresses: []string{"2001:db8::1"}, NodeName: new(s.node(3))})
	s.waitForMembers("web-ipv6")
	s.waitForReason("web-ipv6", v1alpha1.ReasonInSync, "it has no InternalIP of family IPv6")
}

func TestPoolOfNodes(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "shared")
	zone := map[string]string{"scene": s.ns}
	s.createLabeledNode(1, zone)
	s.createNode(2)
	s.createBackendPool("shared", "", func(p *v1alpha1.BackendPoolSpec) {
		p.ServiceRef, p.Nodes = nil, &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: zone}}
	})
	s.waitForMembers("shared", s.ip(1))
	change(s, "", s.node(2), func(n *corev1.Node) { n.Labels = zone })
	s.waitForMembers("shared", s.ip(1), s.ip(2))
	s.createLabeledNode(3, zone)
	s.waitForMembers("shared", s.ip(1), s.ip(2), s.ip(3))
	change(s, "", s.node(1), func(n *corev1.Node) { delete(n.Labels, "scene") })
	s.delete(&corev1.Node{}, s.node(2))
	s.setIPs(3, s.ip(33))
	s.waitForMembers("shared", s.ip(33))
}

func TestEndpointsWithoutMembers(t *testing.T) {
	s := newBoundEnv(t)
	s.createNode(4, "not-an-address") // hence no InternalIP
	var homeless []discoveryv1.Endpoint
	for i := range 1000 {
		homeless = append(homeless, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("192.0.%d.%d", 2+i/250, i%250)}})
	}
	s.createSlice("homeless", "web", homeless...)
	s.createSliceOf(discoveryv1.AddressTypeFQDN, "names", "web", s.endpointOn(2))
	s.createSlice("no-ip", "web", s.endpointOn(4))
	s.waitForMembers("web")
	for _, remaining := range []string{"1000 endpoints without a node name", "1 slice without IP addresses", "node " + s.node(4)} {
		s.waitForReason("web", v1alpha1.ReasonInSync, remaining)
	}
	if n := s.countWrites(); n != 0 {
		t.Errorf("%d writes of an empty pool that stays empty", n)
	}
}
