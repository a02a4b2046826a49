// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/worlds"
)

var private = lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: "kubernetes-internal"}

// newInternalLoadBalancer is an internal load balancer with one rule.
func newInternalLoadBalancer() lb.LoadBalancer {
	return lb.LoadBalancer{
		ID: private, Location: "eastus", SKU: lb.Standard, Tags: map[string]string{"made": "here"},
		Frontends: []lb.Frontend{{Name: "a", Subnet: vnetID + "/subnets/nodes", PrivateIP: netip.MustParseAddr("10.0.0.9"), Static: true, Family: lb.IPv4}},
		Pools:     []lb.Pool{{ID: lb.PoolID{LoadBalancer: private, Name: "web"}, Addresses: []lb.Address{{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}}}},
		Probes:    []lb.Probe{{Name: "a-80", Protocol: lb.ProbeHTTP, Port: 8080, Path: "/", IntervalSeconds: 5, Threshold: 2}},
		Rules: []lb.Rule{{
			Name: "a-80", Transport: lb.TCP, Frontend: "a", Pool: "web", Probe: "a-80", FrontendPort: 80, BackendPort: 80,
			FloatingIP: true, IdleMinutes: 4, TCPReset: new(true), Distribution: lb.Spread,
		}},
	}
}

// compareOptions ignores what Azure adds to a load balancer.
var compareOptions = cmp.Options{
	cmpopts.IgnoreFields(lb.LoadBalancer{}, "Origin", "Etag", "Provisioning"),
	cmpopts.IgnoreFields(lb.Pool{}, "Origin", "Etag", "Provisioning", "VirtualNetwork"),
	cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}),
}

// withSubnet adds a subnet for private frontends.
func withSubnet(t *testing.T, emu *armemu.Emulator) {
	t.Helper()
	const body = `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/16"}}]}}`
	if err := emu.Put(vnetID, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// Create, fill, change and delete a load balancer; each read returns what was written.
func TestALoadBalancersLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		emu, client, _ := newEmulator(t, armemu.Options{Seed: 1, LatencyScale: 1, Behavior: worlds.BatchedWrites()})
		withSubnet(t, emu)
		if _, err := client.GetLoadBalancer(t.Context(), private); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Stale {
			t.Fatalf("before it is made: %v", err)
		}
		b, err := client.PutLoadBalancer(t.Context(), newInternalLoadBalancer())
		if diff := cmp.Diff(newInternalLoadBalancer(), b, compareOptions); err != nil || diff != "" {
			t.Fatalf("made: %v\n%s", err, diff)
		}
		if _, err := client.PutLoadBalancer(t.Context(), newInternalLoadBalancer()); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Retriable {
			t.Errorf("made once more: %v", err)
		}
		next := newInternalLoadBalancer()
		next.Etag, next.Origin, next.Pools = b.Etag, b.Origin, slices.Clone(b.Pools)
		next.Pools[0].Addresses = nil
		next.Rules = append(next.Rules, next.Rules[0])
		next.Rules[1].Name, next.Rules[1].FrontendPort, next.Rules[1].BackendPort, next.Rules[1].Probe = "a-81", 81, 81, ""
		changed, err := client.PutLoadBalancer(t.Context(), next)
		if diff := cmp.Diff(next, changed, compareOptions); err != nil || diff != "" {
			t.Fatalf("changed: %v\n%s", err, diff)
		}
		if err := client.DeleteLoadBalancer(t.Context(), b); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Retriable {
			t.Errorf("deleted by a stale reader: %v", err)
		}
		list, err := client.ListLoadBalancers(t.Context(), "s1", "RG")
		if err != nil || len(list) != 2 {
			t.Errorf("listed %d, %v", len(list), err)
		}
		for range 2 { // the second deletion finds nothing
			if err := client.DeleteLoadBalancer(t.Context(), changed); err != nil {
				t.Errorf("deleted: %v", err)
			}
		}
		if _, err := client.GetLoadBalancer(t.Context(), private); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Stale {
			t.Errorf("after it was deleted: %v", err)
		}
	})
}

// Concurrent writers of one load balancer do not lose each other's changes.
func TestWritersOfOneLoadBalancerLoseNothing(t *testing.T) {
	for _, overlap := range armemu.OverlapAnswers() {
		t.Run(string(overlap), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				emu, client, _ := newEmulator(t, armemu.Options{Seed: 2, LatencyScale: 1, Behavior: behavior.Behavior{Overlap: overlap}})
				withSubnet(t, emu)
				if _, err := client.PutLoadBalancer(t.Context(), newInternalLoadBalancer()); err != nil {
					t.Fatal(err)
				}
				names := []string{"x", "y", "z"}
				done := make(chan struct{})
				for i, name := range names {
					go func() {
						defer func() { done <- struct{}{} }()
						addProbe(t, client, name, i)
					}()
				}
				for range names {
					<-done
				}
				b, err := client.GetLoadBalancer(t.Context(), private)
				if err != nil || len(b.Probes) != 1+len(names) {
					t.Errorf("left %+v, %v", b.Probes, err)
				}
			})
		})
	}
}

// addProbe reads and writes until Azure shows the probe.
func addProbe(t *testing.T, client *azure.Client, name string, i int) {
	for range 100 {
		if at, _ := client.Enter(private); !at.IsZero() {
			time.Sleep(time.Until(at) + time.Duration(i)*time.Second)
		}
		b, err := client.GetLoadBalancer(t.Context(), private)
		if err == nil {
			if slices.ContainsFunc(b.Probes, func(p lb.Probe) bool { return p.Name == name }) {
				return
			}
			b.Probes = append(slices.Clone(b.Probes), lb.Probe{Name: name, Protocol: lb.ProbeTCP, Port: 80, IntervalSeconds: 5, Threshold: 2})
			_, err = client.PutLoadBalancer(t.Context(), b)
		}
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Retriable {
			t.Errorf("writer %s: %s: %v", name, f.Class, err)
			return
		}
		time.Sleep(time.Duration(3+i) * time.Second)
	}
	t.Errorf("writer %s gave up", name)
}

// Create, use and delete a public IP.
func TestAPublicIPsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, _ := newEmulator(t, armemu.Options{Seed: 1, LatencyScale: 1})
		id := lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: "web"}
		ip, err := client.PutPublicIP(t.Context(), lb.PublicIP{ID: id, Location: "eastus", SKU: lb.Standard, Static: true, Family: lb.IPv4, Tags: map[string]string{"a": "b"}})
		if err != nil || !ip.Address.IsValid() || ip.SKU != lb.Standard || !ip.Static || ip.UsedBy != "" {
			t.Fatalf("made %+v, %v", ip, err)
		}
		b, err := client.PutLoadBalancer(t.Context(), lb.LoadBalancer{ID: private, Location: "eastus", SKU: lb.Standard, Frontends: []lb.Frontend{{Name: "a", PublicIP: id.String()}}})
		if err != nil {
			t.Fatal(err)
		}
		ip, err = client.GetPublicIP(t.Context(), id)
		if err != nil || ip.UsedBy != private.String()+"/frontendIPConfigurations/a" {
			t.Fatalf("in use %+v, %v", ip, err)
		}
		if err := client.DeletePublicIP(t.Context(), ip); armerror.FromError(err) == nil || armerror.FromError(err).Class != armerror.Terminal {
			t.Errorf("deleted while it is in use: %v", err)
		}
		if err := client.DeleteLoadBalancer(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		ip, err = client.GetPublicIP(t.Context(), id)
		if err != nil || ip.UsedBy != "" {
			t.Fatalf("free again %+v, %v", ip, err)
		}
		ip.DNSLabel, ip.Tags = "shop", map[string]string{"c": "d"}
		ip, err = client.PutPublicIP(t.Context(), ip)
		if err != nil || ip.DNSLabel != "shop" || len(ip.Tags) != 1 || ip.Tags["c"] != "d" {
			t.Errorf("changed %+v, %v", ip, err)
		}
		if err := client.DeletePublicIP(t.Context(), ip); err != nil {
			t.Error(err)
		}
		if list, err := client.ListPublicIPs(t.Context(), "s1", "rg"); err != nil || len(list) != 0 {
			t.Errorf("left %+v, %v", list, err)
		}
	})
}
