// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

const group = "azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/"

// relevantLabels lists labels that may affect membership, with their values.
var relevantLabels = map[string][]string{
	corev1.LabelNodeExcludeBalancers: {"", "true"}, "kubernetes.azure.com/managed": {"false", "true"}, "kubernetes.io/role": {"master", "agent"},
	"node-role.kubernetes.io/control-plane": {""}, metadata.PlaceLabel: {"a", "b"}, corev1.LabelTopologyZone: {"1", "2"}, "pool": {"blue", "green"},
}

// drawNode draws a node from few values of all relevant fields.
func drawNode(t *rapid.T, name, label string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	of := func(about string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label+" "+about) }
	for _, key := range slices.Sorted(maps.Keys(relevantLabels)) {
		if rapid.IntRange(0, 5).Draw(t, label+" has "+key) == 5 {
			n.Labels[key] = of(key, relevantLabels[key]...)
		}
	}
	for _, taint := range []string{corev1.TaintNodeOutOfService, lb.KeyDraining, "leaves", "other"} {
		if rapid.IntRange(0, 2).Draw(t, label+" has "+taint) == 0 {
			value := map[string]string{lb.KeyDraining: lb.ValueSpotEviction}[taint]
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taint, Value: value, Effect: corev1.TaintEffectNoSchedule})
		}
	}
	n.Spec.ProviderID = of("providerID", "", "aws:///i-1", group+"virtualMachines/n1", group+"virtualMachineScaleSets/blue/virtualMachines/1", group+"virtualMachineScaleSets/green/virtualMachines/1", group+"virtualMachineScaleSets/blue/virtualMachines/x")
	for _, ip := range []string{of("address", "10.0.0.1", "10.0.0.1", "10.0.0.2", ""), of("address of IPv6", "fd00::1", "")} {
		if ip != "" {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeAddressType(of("type", "InternalIP", "InternalIP", "InternalIP", "ExternalIP")), Address: ip})
		}
	}
	if status := of("condition", "", "True", "False", "Unknown"); status != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: "DrainInProgress", Status: corev1.ConditionStatus(status)}}
	}
	if record := of("record", "", `{"at":"2026-11-21T10:00:00Z"}`, `{"at":"2026-11-21T11:00:00Z"}`); record != "" {
		n.Annotations[metadata.PreemptionAnnotation] = record
	}
	n.UID = "uid"
	return n
}

func changeOne(t *rapid.T, before *corev1.Node) *corev1.Node {
	next, after := drawNode(t, "n1", "after"), before.DeepCopy()
	switch rapid.SampledFrom([]string{"labels", "one label", "taints", "addresses", "providerID", "condition", "record"}).Draw(t, "changes") {
	case "labels":
		after.Labels = next.Labels
	case "one label":
		for _, key := range slices.Sorted(maps.Keys(next.Labels))[:min(1, len(next.Labels))] {
			after.Labels[key] = next.Labels[key]
		}
	case "taints":
		after.Spec.Taints = next.Spec.Taints
	case "addresses":
		after.Status.Addresses = next.Status.Addresses
	case "providerID":
		after.Spec.ProviderID = next.Spec.ProviderID
	case "condition":
		after.Status.Conditions = next.Status.Conditions
	case "record":
		after.Annotations = next.Annotations
	}
	return after
}

// A node change that affects members is detected by the BackendPool controller and the Service controller,
// also after stripping.
func TestEveryChangeOfMembersIsNoticed(t *testing.T) {
	pools := map[string]*v1alpha1.BackendPool{}
	for _, family := range []string{"IPv4", "IPv6"} {
		for _, kind := range []string{v1alpha1.MembershipAddress, v1alpha1.MembershipNetworkInterface} {
			p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: v1alpha1.BackendPoolSpec{IPFamily: family, Membership: kind}}
			all, blue, ofService := p.DeepCopy(), p.DeepCopy(), p.DeepCopy()
			all.Spec.Nodes = &v1alpha1.NodeMembers{}
			blue.Spec.Nodes = &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "blue"}}}
			ofService.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: "web"}
			pools[family+kind+" all"], pools[family+kind+" blue"], pools[family+kind+" service"] = all, blue, ofService
		}
	}
	signals := &lb.DrainSignals{ExtraPatterns: []lb.ConditionPattern{{Key: "leaves", AnyValue: true}}, ExtraConditions: []string{"DrainInProgress"}, MinAvailablePercent: 50}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}, AddressType: discoveryv1.AddressTypeIPv4}
	for _, name := range []string{"n1", "n2"} {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &name, Addresses: []string{"10.9.0.1"}})
	}
	rapid.Check(t, func(t *rapid.T) {
		other, before := drawNode(t, "n2", "other"), drawNode(t, "n1", "before")
		see := func(n *corev1.Node, strip bool) *Snapshot {
			s := &Snapshot{ExcludeControlPlane: true, Draining: signals, ByMachine: func(p *v1alpha1.BackendPool) bool { return p.Spec.Membership == v1alpha1.MembershipNetworkInterface }}
			s.ExclusionReason = func(*v1alpha1.BackendPool) func(*corev1.Node) string {
				return func(n *corev1.Node) string {
					return map[string]string{"b": "it is on b"}[n.Labels[metadata.PlaceLabel]]
				}
			}
			s.LoadBalancerOf = func(*v1alpha1.BackendPool) func(*corev1.Node) string {
				return func(n *corev1.Node) string { return n.Labels[metadata.PlaceLabel] }
			}
			s.InMemory()
			for _, n := range []*corev1.Node{n, other} {
				if n = n.DeepCopy(); strip {
					stripNode(n, signals)
				}
				if err := s.Add(n); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Add(slice.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			return s
		}
		old := see(before, true)
		for range 6 {
			after := changeOne(t, before)
			compareMembers(t, pools, old, see(after, true), see(after, false))
		}
	})
}

// compareMembers compares the members before and after a change of node n1; whole has unstripped objects.
func compareMembers(t *rapid.T, pools map[string]*v1alpha1.BackendPool, before, got, whole *Snapshot) {
	t.Helper()
	for name, p := range pools {
		members := func(s *Snapshot) membership.Set {
			set, err := s.Members(p)
			if err != nil {
				t.Fatal(err)
			}
			return set
		}
		set := members(got)
		if !isSameSet(set, members(whole)) {
			t.Fatalf("%s: the cache lacks something:\n%+v\n%+v", name, set, members(whole))
		}
		if isSameSet(set, members(before)) {
			continue
		}
		oldNode, newNode := Get[corev1.Node](before.Nodes, "n1"), Get[corev1.Node](got.Nodes, "n1")
		if !got.NodeOrLabelsDiffer(oldNode, newNode) || p.Spec.ServiceRef != nil && !got.NodeDiffers(oldNode, newNode) {
			t.Fatalf("%s: not noticed:\n%+v\n%+v", name, members(before), set)
		}
		if set.Fingerprint() == members(before).Fingerprint() && !slices.Equal(set.Addresses, members(before).Addresses) {
			t.Fatalf("%s: one fingerprint of two memberships", name)
		}
	}
}

func isSameSet(a, b membership.Set) bool {
	return reflect.DeepEqual(a.NonMembers, b.NonMembers) && reflect.DeepEqual(a.Draining, b.Draining) && reflect.DeepEqual(a.KeptUp, b.KeptUp) && reflect.DeepEqual(a.PendingAddresses, b.PendingAddresses) &&
		slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.Alternates, b.Alternates)
}
