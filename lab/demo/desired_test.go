// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(name string, labels map[string]string, ips ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "10.9.9.9"}}
	for _, ip := range ips {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return n
}

var (
	yes, no *bool = new(true), new(false)

	allNodes = map[string]*corev1.Node{
		"a": node("a", nil, "10.0.0.1"), "b": node("b", nil, "fd00::2", "10.0.0.2", "10.0.0.3"),
		"nameless": node("nameless", nil), "six": node("six", nil, "fd00::6"),
		"kept-out": node("kept-out", map[string]string{excludeLabel: ""}, "10.0.0.4"),
	}
)

func onNode(node string, ready, serving, terminating *bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: ready, Serving: serving, Terminating: terminating}}
	if node != "" {
		e.NodeName = &node
	}
	return e
}

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		name   string
		family discoveryv1.AddressType
		on     discoveryv1.Endpoint
		want   string
	}{
		{"ready", "IPv4", onNode("a", yes, nil, nil), "[10.0.0.1]"},
		{"nothing said means ready", "IPv4", onNode("a", nil, nil, nil), "[10.0.0.1]"},
		{"not ready", "IPv4", onNode("a", no, no, nil), "[]"},
		{"not ready, and not leaving", "IPv4", onNode("a", no, yes, no), "[]"},
		{"leaving and serving", "IPv4", onNode("a", no, yes, yes), "[10.0.0.1]"},
		{"leaving, serving unsaid", "IPv4", onNode("a", no, nil, yes), "[10.0.0.1]"},
		{"leaving and done", "IPv4", onNode("a", no, no, yes), "[]"},
		{"first IPv4 address of the node", "IPv4", onNode("b", yes, nil, nil), "[10.0.0.2]"},
		{"node without addresses", "IPv4", onNode("nameless", yes, nil, nil), "[]"},
		{"node without IPv4", "IPv4", onNode("six", yes, nil, nil), "[]"},
		{"node kept out", "IPv4", onNode("kept-out", yes, nil, nil), "[]"},
		{"node unknown", "IPv4", onNode("elsewhere", yes, nil, nil), "[]"},
		{"no node", "IPv4", onNode("", yes, nil, nil), "[]"},
		{"IPv6 slice", "IPv6", onNode("a", yes, nil, nil), "[]"},
		{"FQDN slice", "FQDN", onNode("a", yes, nil, nil), "[]"},
	} {
		slice := &discoveryv1.EndpointSlice{AddressType: c.family, Endpoints: []discoveryv1.Endpoint{c.on}}
		got := endpointHosts([]*discoveryv1.EndpointSlice{slice}, func(n string) *corev1.Node { return allNodes[n] })
		if s := fmt.Sprint(got.subtractSet(nil)); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

// A node in several EndpointSlices counts once.
func TestHostsOfSeveralSlices(t *testing.T) {
	slice := func(e ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: e}
	}
	got := endpointHosts([]*discoveryv1.EndpointSlice{
		slice(onNode("a", no, no, nil), onNode("b", yes, nil, nil)), slice(onNode("a", yes, nil, nil), onNode("b", no, no, nil)), slice(),
	}, func(n string) *corev1.Node { return allNodes[n] })
	if names := slices.Sorted(maps.Values(got)); fmt.Sprint(names) != "[a b]" {
		t.Errorf("%v", names)
	}
}
