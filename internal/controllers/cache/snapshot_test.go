// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
)

// Of nodes with the same address, a serving one determines its state, whatever the names.
func TestTheNodeThatDecidesAboutAnAddress(t *testing.T) {
	s := &Snapshot{Draining: &lb.DrainSignals{}}
	s.InMemory()
	for name, edit := range map[string]func(*corev1.Node){
		"a-excluded": func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} },
		"b-old":      func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} },
		"z-new":      func(*corev1.Node) {},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
		edit(n)
		if err := s.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	if n, ok := s.NodeByAddress(netip.MustParseAddr("10.0.0.1")); !ok || n.Name != "z-new" {
		t.Errorf("%s decides", n.Name)
	}
	if n, ok := s.NodeByAddress(netip.MustParseAddr("10.0.0.2")); ok {
		t.Errorf("%s decides about an address that no node has", n.Name)
	}
}

// What a node would be in a pool with an endpoint there: a readiness gate waits only for one that can join.
func TestMemberAlone(t *testing.T) {
	s := &Snapshot{Draining: &lb.DrainSignals{}}
	s.InMemory()
	pool := &v1alpha1.BackendPool{Spec: v1alpha1.BackendPoolSpec{IPFamily: "IPv4"}}
	for name, tt := range map[string]struct {
		edit  func(*corev1.Node)
		joins bool
		state string
	}{
		"serves":      {func(*corev1.Node) {}, true, ""},
		"is excluded": {func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelNodeExcludeBalancers: ""} }, false, ""},
		"has no IPv4": {func(n *corev1.Node) { n.Status.Addresses[0].Address = "fd00::1" }, false, ""},
		"drains":      {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} }, true, lb.Down},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
		tt.edit(n)
		if err := s.Add(n); err != nil {
			t.Fatal(err)
		}
		if a, known := s.MemberAlone(pool, name); !known || a.IP.IsValid() != tt.joins || a.AdminState != tt.state {
			t.Errorf("one that %s: %+v, %t", name, a, known)
		}
	}
	if _, known := s.MemberAlone(pool, "another"); known {
		t.Error("an unknown node is known")
	}
	starts := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "starts"}}
	if err := s.Add(starts); err != nil {
		t.Fatal(err)
	}
	if _, known := s.MemberAlone(pool, "starts"); known {
		t.Error("a node that has no address yet is known")
	}
	s.ByMachine = func(*v1alpha1.BackendPool) bool { return true }
	starts.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	if _, known := s.MemberAlone(pool, "starts"); known {
		t.Error("a node whose machine is not set yet is known")
	}
}
