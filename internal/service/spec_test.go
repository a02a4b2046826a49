// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/lb"
)

const (
	subscription = "/subscriptions/00000000-0000-0000-0000-000000000000"
	network      = subscription + "/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet"
	owner        = "a0123456789abcdef0123456789abcde"
)

func testSettings() Settings {
	return Settings{
		ClusterName:    "kubernetes",
		PublicIPs:      lb.ResourceID{SubscriptionID: strings.TrimPrefix(subscription, "/subscriptions/"), ResourceGroup: "rg"},
		VirtualNetwork: network, Subnet: "nodes", LocalPools: OwnPools,
	}
}

func newService(changes ...func(*Service)) Service {
	s := Service{
		Namespace: "shop", Name: "web", UID: "01234567-89ab-cdef-0123-456789abcdef",
		Annotations: map[string]string{},
		Ports:       []Port{{Name: "http", Protocol: "TCP", Port: 80, NodePort: 30080}},
		Families:    []lb.Family{lb.IPv4}, HealthCheckNodePort: 31000,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func withAnnotation(annotation, value string) func(*Service) {
	return func(s *Service) { s.Annotations[annotation] = value }
}

func asInternal(s *Service)  { s.Annotations[Internal] = "true" }
func asLocal(s *Service)     { s.Local = true }
func asDualStack(s *Service) { s.Families = []lb.Family{lb.IPv4, lb.IPv6} }

func withPorts(list ...Port) func(*Service) {
	return func(s *Service) { s.Ports = list }
}

func buildValidSpec(t *testing.T, s Service, set Settings) Spec {
	t.Helper()
	w, problems := BuildSpec(s, set)
	for _, p := range problems {
		t.Error(p)
	}
	return w
}

func TestAPlainService(t *testing.T) {
	w := buildValidSpec(t, newService(), testSettings())
	reset := true
	want := Spec{
		Owner: owner,
		Frontends: []Frontend{{
			Frontend: lb.Frontend{Name: owner, Family: lb.IPv4},
			PublicIP: &PublicIP{
				ID: lb.ResourceID{
					SubscriptionID: "00000000-0000-0000-0000-000000000000", ResourceGroup: "rg",
					Type: lb.TypePublicIP, Name: "kubernetes-" + owner,
				},
				ManagedPrefix: "kubernetes-" + owner, Family: lb.IPv4,
				Tags: map[string]string{"k8s-azure-service": "shop/web", "k8s-azure-cluster-name": "kubernetes"},
			},
			namePrefix: owner,
		}},
		Probes: []lb.Probe{{Name: owner + "-TCP-80", Protocol: lb.ProbeTCP, Port: 30080, IntervalSeconds: 5, Threshold: 2}},
		Rules: []lb.Rule{{
			Name: owner + "-TCP-80", Transport: lb.TCP, Frontend: owner, Pool: "kubernetes", Probe: owner + "-TCP-80",
			FrontendPort: 80, BackendPort: 80, FloatingIP: true, IdleMinutes: 4, TCPReset: &reset, Distribution: lb.Spread,
		}},
		Pools: []Pool{{Name: "kubernetes", Family: lb.IPv4, Shared: true}},
	}
	if diff := cmp.Diff(want, w, cmp.AllowUnexported(Frontend{}), cmp.Comparer(sameAddr)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestALocalServiceOfTwoFamilies(t *testing.T) {
	w := buildValidSpec(t, newService(asLocal, asDualStack, withPorts(Port{Protocol: "TCP", Port: 80, NodePort: 30080}, Port{Protocol: "UDP", Port: 53, NodePort: 30053})), testSettings())
	var got []string
	for _, f := range w.Frontends {
		got = append(got, f.Frontend.Name+" "+f.PublicIP.ID.Name)
	}
	for _, r := range w.Rules {
		got = append(got, r.Name+" "+r.Frontend+" "+r.Pool+" "+r.Probe)
	}
	for _, p := range w.Probes {
		got = append(got, p.Name+" "+string(p.Protocol)+" "+p.Path)
	}
	want := []string{
		owner + " kubernetes-" + owner,
		owner + "-IPv6 kubernetes-" + owner + "-IPv6",
		owner + "-TCP-80 " + owner + " shop-web " + owner + "-TCP-31000",
		owner + "-UDP-53 " + owner + " shop-web " + owner + "-TCP-31000",
		owner + "-TCP-80-IPv6 " + owner + "-IPv6 shop-web-ipv6 " + owner + "-TCP-31000-IPv6",
		owner + "-UDP-53-IPv6 " + owner + "-IPv6 shop-web-ipv6 " + owner + "-TCP-31000-IPv6",
		owner + "-TCP-31000 Http /healthz",
		owner + "-TCP-31000-IPv6 Http /healthz",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for _, r := range w.Rules {
		if (r.TCPReset == nil) != (r.Transport == lb.UDP) {
			t.Errorf("%s: TCP reset %v", r.Name, r.TCPReset)
		}
	}
}

// Limits count rules, so a dedicated pool of a family needs a rule.
func TestAPoolOfItsOwnHasARule(t *testing.T) {
	two := withPorts(Port{Protocol: "TCP", Port: 80, NodePort: 30080}, Port{Protocol: "UDP", Port: 53, NodePort: 30053})
	noRule := withAnnotation(ofPort(80, portNoRule), "true")
	for _, tt := range []struct {
		about string
		s     Service
		want  []string
	}{
		{"rules", newService(asLocal, asDualStack, two), []string{"shop-web", "shop-web-ipv6"}},
		{"a rule for one port", newService(asLocal, asDualStack, two, noRule), []string{"shop-web", "shop-web-ipv6"}},
		{"no rules", newService(asLocal, asDualStack, two, noRule, withAnnotation(ofPort(53, portNoRule), "true")), nil},
		{"no rules, pool of all nodes", newService(asDualStack, noRule), []string{"kubernetes", "kubernetes-IPv6"}},
	} {
		spec := buildValidSpec(t, tt.s, testSettings())
		var names []string
		for _, p := range spec.Pools {
			names = append(names, p.Name)
			if !p.Shared && !slices.ContainsFunc(spec.Rules, func(r lb.Rule) bool { return r.Pool == p.Name }) {
				t.Errorf("%s: no rule sends flows to pool %s", tt.about, p.Name)
			}
		}
		if !slices.Equal(names, tt.want) || len(spec.Frontends) != 2 {
			t.Errorf("%s: pools %q, %d frontends", tt.about, names, len(spec.Frontends))
		}
	}
}

// A pool of network interfaces contains all nodes, also for Local Services; the probe selects.
func TestALocalServiceOfPoolsOfInterfaces(t *testing.T) {
	set := testSettings()
	set.Interfaces, set.LocalPools, set.ClusterName = true, "", "shop-web" // would equal the name of its dedicated pool
	w := buildValidSpec(t, newService(asLocal, asDualStack), set)
	want := []Pool{{Name: "shop-web", Family: lb.IPv4, Shared: true, Interfaces: true}, {Name: "shop-web-IPv6", Family: lb.IPv6, Shared: true, Interfaces: true}}
	if diff := cmp.Diff(want, w.Pools); diff != "" || w.HasDedicatedPools() {
		t.Errorf("own pools %v; -want +got\n%s", w.HasDedicatedPools(), diff)
	}
	for i, r := range w.Rules {
		if r.Pool != want[i].Name || !strings.HasPrefix(r.Probe, owner+"-TCP-31000") || w.Probes[i].Path != "/healthz" {
			t.Errorf("rule %s sends flows to %s by probe %s", r.Name, r.Pool, r.Probe)
		}
	}
}

func TestNamesDependOnTheFamilyAlone(t *testing.T) {
	w := buildValidSpec(t, newService(func(s *Service) { s.Families = []lb.Family{lb.IPv6} }), testSettings())
	if name := w.Rules[0].Name; name != owner+"-TCP-80-IPv6" {
		t.Errorf("rule %s", name)
	}
	if w.Pools[0].Name != "kubernetes-IPv6" || w.Rules[0].Pool != "kubernetes-IPv6" {
		t.Errorf("pools %v", w.Pools)
	}
}

// No Owner is a prefix of another.
func TestOwnersAreNoPrefixesOfEachOther(t *testing.T) {
	other := newService(func(s *Service) { s.UID = "01234567-89ab-cdef-0123-456789abcd00" })
	if newService().OwnerName() == other.OwnerName() || len(newService().OwnerName()) != 32 || len(other.OwnerName()) != 32 {
		t.Errorf("%s and %s", newService().OwnerName(), other.OwnerName())
	}
}

func TestSharedProbe(t *testing.T) {
	set := testSettings()
	set.SharedProbe = &lb.Probe{Name: SharedProbeName, Protocol: lb.ProbeHTTP, Port: 10256, Path: "/healthz", IntervalSeconds: 5, Threshold: 2}
	two := withPorts(Port{Protocol: "TCP", Port: 80, NodePort: 1}, Port{Protocol: "TCP", Port: 443, NodePort: 2}, Port{Protocol: "UDP", Port: 53, NodePort: 3})
	w := buildValidSpec(t, newService(two, withAnnotation(ofPort(443, portProbePort), "10300")), set)
	if len(w.Probes) != 2 || w.Probes[0] != *set.SharedProbe || w.Probes[1].Name != owner+"-TCP-443" || w.Probes[1].Port != 10300 {
		t.Errorf("probes %+v", w.Probes)
	}
	if w.Rules[0].Probe != SharedProbeName || w.Rules[1].Probe != owner+"-TCP-443" || w.Rules[2].Probe != SharedProbeName {
		t.Errorf("rules %+v", w.Rules)
	}
	if w := buildValidSpec(t, newService(asLocal), set); w.Rules[0].Probe == SharedProbeName {
		t.Error("a Local Service is asked at its own port")
	}
}

// A dedicated pool never has the name of the pool of all nodes.
func TestNoServiceOwnsThePoolOfAllNodes(t *testing.T) {
	set := testSettings()
	for cluster, owned := range map[string]bool{"shop-web": true, "Shop-Web": true, "shop": false} {
		set.ClusterName = cluster
		_, problems := BuildSpec(newService(asLocal), set)
		if (len(problems) > 0) != owned || owned && problems[0].Field != "metadata.name" {
			t.Errorf("cluster %s: %v", cluster, problems)
		}
		if _, problems := BuildSpec(newService(), set); len(problems) > 0 {
			t.Errorf("cluster %s, not Local: %v", cluster, problems)
		}
	}
}
