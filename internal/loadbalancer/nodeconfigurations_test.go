// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// listing is an Azure that counts list calls.
type listing struct {
	Azure
	all   []lb.LoadBalancer
	err   error
	asked int
	// machines is the error of resolving machines.
	machines error
}

func (l *listing) ListLoadBalancers(context.Context, string, string) ([]lb.LoadBalancer, error) {
	l.asked++
	return l.all, l.err
}

func holding(balancer, pool string, ips ...string) lb.LoadBalancer {
	p := lb.Pool{ID: lb.PoolID{Name: pool}}
	for _, ip := range ips {
		p.Addresses = append(p.Addresses, lb.Address{IP: netip.MustParseAddr(ip)})
	}
	return lb.LoadBalancer{ID: lb.LoadBalancerID{Name: balancer}, Etag: "1", Pools: []lb.Pool{p}}
}

// A node is where the shared pools of a configuration's load balancers show it.
func TestNodePlaces(t *testing.T) {
	azure := &listing{
		err: errors.New("not now"),
		all: []lb.LoadBalancer{
			holding("LB-2", "kubernetes", "10.0.0.2", "10.0.0.9"),
			holding("lb-2-internal", "Kubernetes-ipv6", "fd00::2"),
			holding("kubernetes-internal", "kubernetes", "10.0.0.1", "10.0.0.9"),
			holding("kubernetes", "shop-web", "10.0.0.3"), // a Service's own pool
			holding("lb-3", "kubernetes", "10.0.0.4"),     // foreign
			holding("lb-2-internal-x", "kubernetes", "10.0.0.5"),
		},
	}
	b := New(Config{Azure: azure, Settings: Settings{
		Settings:       service.Settings{ClusterName: "kubernetes"},
		Configurations: []service.Configuration{{Name: "kubernetes"}, {Name: "lb-2"}},
	}})
	if got, err := b.NodeConfigurations(t.Context()); err == nil || got != nil {
		t.Errorf("got %v, %v; want an error", got, err)
	}
	azure.err = nil
	for range 2 {
		got, err := b.NodeConfigurations(t.Context())
		want := map[string]string{"10.0.0.1": "kubernetes", "10.0.0.9": "kubernetes", "10.0.0.2": "lb-2", "fd00::2": "lb-2"}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("got %v, %v; want %v", got, err, want)
		}
	}
	if azure.asked != 2 {
		t.Errorf("Azure was asked %d times, want once for each answer", azure.asked)
	}
}

// ResolveMachines derives the machine from the interface name.
func (l *listing) ResolveMachines(_ context.Context, pool lb.Pool) (lb.Pool, error) {
	if pool.Addresses = slices.Clone(pool.Addresses); l.machines != nil {
		return lb.Pool{}, l.machines
	}
	for i, a := range pool.Addresses {
		if pool.Addresses[i].Machine = "/vm/" + a.Interface; a.Interface == "gone" {
			pool.Addresses[i].Machine = ""
		}
	}
	return pool, nil
}

// In a pool of network interfaces, nodes are identified by machine. With one load balancer there is no read.
func TestNodePlacesOfInterfaces(t *testing.T) {
	nics := func(balancer string, interfaces ...string) lb.LoadBalancer {
		b := holding(balancer, "kubernetes")
		b.Pools[0].NIC = true
		for _, name := range interfaces {
			b.Pools[0].Addresses = append(b.Pools[0].Addresses, lb.Address{Interface: name})
		}
		return b
	}
	azure := &listing{all: []lb.LoadBalancer{nics("lb-2", "n1", "gone"), nics("kubernetes-internal", "n2")}, machines: errors.New("not now")}
	placing := func(names ...string) *LoadBalancers {
		set := Settings{Settings: service.Settings{ClusterName: "kubernetes"}}
		for _, name := range names {
			set.Configurations = append(set.Configurations, service.Configuration{Name: name})
		}
		return New(Config{Azure: azure, Settings: set})
	}
	b := placing("kubernetes", "lb-2")
	if got, err := b.NodeConfigurations(t.Context()); err == nil || got != nil {
		t.Errorf("got %v, %v; want an error", got, err)
	}
	if got, err := placing("kubernetes").NodeConfigurations(t.Context()); err != nil || len(got) > 0 {
		t.Errorf("of one: %v, %v", got, err)
	}
	azure.machines = nil
	got, err := b.NodeConfigurations(t.Context())
	if want := map[string]string{"/vm/n1": "lb-2", "/vm/n2": "kubernetes"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// A single load balancer with conditions works like one of several.
func TestASingleLoadBalancerWithConditions(t *testing.T) {
	desired := &service.Spec{}
	for _, tt := range []struct {
		about string
		conf  service.Configuration
		place bool
	}{
		{"none", service.Configuration{Name: "kubernetes"}, true},
		{"nodes alone", service.Configuration{Name: "kubernetes", PrimaryVMSet: "a"}, true},
		{"closed", service.Configuration{Name: "kubernetes", Closed: true}, false},
		{"for some Services", service.Configuration{Name: "kubernetes", Services: func(map[string]string) bool { return false }}, false},
		{"for some namespaces", service.Configuration{Name: "kubernetes", Namespaces: func(map[string]string) bool { return false }}, false},
	} {
		b := New(Config{Azure: &listing{}, Cluster: reaching{}, Settings: Settings{Configurations: []service.Configuration{tt.conf}}})
		on, _, err := b.FindPlacement(t.Context(), PlacementRequest{Service: "shop/web", Owner: "a1", Desired: desired})
		if (err == nil) != tt.place || tt.place && on != "kubernetes" {
			t.Errorf("%s: on %q, %v", tt.about, on, err)
		}
	}
}
