// SPDX-License-Identifier: Apache-2.0

package phase_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

const (
	subscription = "s"
	group        = "rg"
	network      = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes"
)

func balancerID(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: group, Name: name}
}

func resourceID(kind, name string) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: subscription, ResourceGroup: group, Type: kind, Name: name}
}

func made(lb.PublicIP) bool { return true }

func terms() phase.Options {
	return phase.Options{NodePools: []string{"kubernetes"}, IsManaged: made, SecurityGroup: "nodes"}
}

// cluster is a random cluster with Basic load balancers: external, internal, or both, in one or
// several configurations.
type cluster struct {
	model    model
	services []phase.Service
}

func drawCluster(t *rapid.T) *cluster {
	c := &cluster{}
	var pools []string
	for i, name := range rapid.SampledFrom([][]string{{"kubernetes"}, {"kubernetes-internal"}, {"kubernetes", "kubernetes-internal"}, {"one", "one-internal", "two"}}).Draw(t, "load balancers") {
		b := lb.LoadBalancer{ID: balancerID(name), Etag: "1", Location: "eastus", SKU: lb.Basic, Tags: map[string]string{"of": name}, Pools: []lb.Pool{{ID: lb.PoolID{Name: "kubernetes"}}}}
		for n := range rapid.IntRange(0, 4).Draw(t, "services") {
			c.service(t, &b, fmt.Sprintf("a%x%x", i, n), strings.HasSuffix(name, "-internal"))
		}
		c.model.seen.LoadBalancers = append(c.model.seen.LoadBalancers, b)
		pools = append(pools, b.ID.String()+"/backendAddressPools/kubernetes")
	}
	c.machines(t, pools)
	return c
}

func (c *cluster) service(t *rapid.T, b *lb.LoadBalancer, owner string, internal bool) {
	s := phase.Service{Name: "ns/" + owner, Owner: owner, LoadBalancer: b.ID}
	families := []lb.Family{lb.IPv4}
	if rapid.Bool().Draw(t, "dual") {
		families = append(families, lb.IPv6)
	}
	for at, family := range families {
		f := lb.Frontend{Name: owner + []string{"", "-IPv6"}[at], Family: family}
		address := netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + len(c.services))})
		if family == lb.IPv6 {
			address = netip.AddrFrom16([16]byte{0xfd, 15: byte(10 + len(c.services))})
		}
		shown := f
		if internal {
			f.Subnet = network
			shown = f
			shown.PrivateIP, shown.Static = address, rapid.Bool().Draw(t, "private Static")
		} else {
			ip := lb.PublicIP{
				ID: resourceID(lb.TypePublicIP, "kubernetes-"+f.Name), Etag: "1", SKU: lb.Basic, Family: family, Static: rapid.Bool().Draw(t, "Static"),
				UsedBy: b.ID.String() + "/frontendIPConfigurations/" + f.Name, Provisioning: rapid.SampledFrom([]lb.Provisioning{lb.Succeeded, lb.Succeeded, lb.Failed}).Draw(t, "state"),
				Tags: map[string]string{"k8s-azure-service": s.Name}, DNSLabel: owner,
			}
			ip.Address = c.model.fresh()
			if family == lb.IPv6 {
				ip.Address = address
			}
			f.PublicIP, shown.PublicIP = ip.ID.String(), strings.ToUpper(ip.ID.String())
			shown.Family, address = "", ip.Address
			c.model.seen.PublicIPs = append(c.model.seen.PublicIPs, ip)
		}
		s.Frontends, s.Addresses = append(s.Frontends, f), append(s.Addresses, address)
		b.Frontends = append(b.Frontends, shown)
	}
	c.services = append(c.services, s)
}

// machines adds machines to all load balancers, and to other pools.
func (c *cluster) machines(t *rapid.T, pools []string) {
	inPools := func(more ...string) []lb.InterfaceConfiguration {
		return []lb.InterfaceConfiguration{{Name: "nic", SecurityGroup: "/nodes", IPConfigurations: []lb.IPConfiguration{{Name: "ip", Family: lb.IPv4, Primary: true, Pools: append(append([]string(nil), pools...), more...)}}}}
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "interfaces") {
		c.model.seen.Interfaces = append(c.model.seen.Interfaces, lb.NetworkInterface{
			ID: resourceID(lb.TypeNetworkInterface, fmt.Sprint("nic", n)), Etag: "1", InterfaceConfiguration: inPools("/another/backendAddressPools/p")[0],
		})
	}
	for n := range rapid.IntRange(0, 2).Draw(t, "scale sets") {
		set := phase.ScaleSet{ScaleSet: lb.ScaleSet{
			ID: resourceID(lb.TypeScaleSet, fmt.Sprint("set", n)), Etag: "1", Uniform: rapid.IntRange(0, 2).Draw(t, "flexible") > 0, Interfaces: inPools(),
			UpgradeMode: rapid.SampledFrom([]lb.UpgradeMode{lb.UpgradeManual, lb.UpgradeAutomatic, lb.UpgradeRolling}).Draw(t, "mode"),
		}}
		for i := range rapid.IntRange(0, 2).Draw(t, "instances") {
			if !set.Uniform {
				break // they have network interfaces of their own
			}
			set.Instances = append(set.Instances, lb.Instance{ScaleSet: set.ID, ID: fmt.Sprint(i), Etag: "1", LatestModel: true, Interfaces: inPools()})
		}
		c.model.seen.ScaleSets = append(c.model.seen.ScaleSets, set)
	}
}

// addresses returns what Azure shows of all Services: existing public IPs and private addresses.
func (c *cluster) addresses() map[string]netip.Addr {
	addresses := map[string]netip.Addr{}
	for _, ip := range c.model.seen.PublicIPs {
		addresses[ip.ID.Name] = ip.Address
	}
	for _, b := range c.model.seen.LoadBalancers {
		for _, f := range b.Frontends {
			if f.PublicIP == "" {
				addresses[f.Name] = f.PrivateIP
			}
		}
	}
	return addresses
}

// byHand carries out part of the migration in order, as users without a tool do.
func (c *cluster) byHand(t *rapid.T) {
	var j phase.Journal
	for range rapid.IntRange(0, 8).Draw(t, "steps by hand") {
		if j = phase.BuildJournal(j, c.model.shown(), c.services, "eastus"); !j.IsOpen() {
			return
		}
		steps := phase.NextSteps(j, c.model.shown())
		if steps.Phase == phase.PhaseCreate {
			return
		}
		for _, write := range c.model.writes(steps) {
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// migrated runs a migration to its end. Requests fail, responses are lost, and processes are killed
// in between; only the journal persists.
func (c *cluster) migrated(t *rapid.T) phase.Journal {
	kept := ""
	for range 200 {
		j, err := phase.ParseJournal(kept)
		if err != nil {
			t.Fatal(err)
		}
		next := phase.BuildJournal(j, c.model.shown(), c.services, "eastus")
		kept = phase.FormatJournal(next)
		if rapid.IntRange(0, 9).Draw(t, "killed") == 0 {
			continue
		}
		steps := phase.NextSteps(next, c.model.shown())
		if steps.Phase == phase.PhaseDone {
			return next
		}
		if len(steps.StopReasons) > 0 {
			t.Fatalf("%s stops: %q", steps.Phase, steps.StopReasons)
		}
		for _, write := range rapid.Permutation(c.model.writes(steps)).Draw(t, "order") {
			if rapid.IntRange(0, 4).Draw(t, "failed") == 0 {
				continue
			}
			if err := write(); err != nil {
				t.Fatalf("%s: Azure refuses: %v", steps.Phase, err)
			}
		}
	}
	t.Fatal("it has no end")
	return phase.Journal{}
}

// rehearsed checks that a dry run completes and changes nothing.
func (c *cluster) rehearsed(t *rapid.T) {
	before := fmt.Sprintf("%+v", c.model.shown())
	all := phase.DryRun(phase.BuildJournal(phase.Journal{}, c.model.shown(), c.services, "eastus"), c.model.shown())
	if last := all[len(all)-1]; last.Phase != phase.PhaseDone || len(last.StopReasons) > 0 {
		t.Fatalf("the plan ends with %s, which stops: %q, and waits: %q", last.Phase, last.StopReasons, last.WaitReasons)
	}
	if after := fmt.Sprintf("%+v", c.model.shown()); after != before {
		t.Fatalf("a plan has changed\n%s\nto\n%s", before, after)
	}
}

// Every address stays, whatever fails and whatever was done by hand, and Azure rejects nothing.
func TestEveryAddressStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		before := c.addresses()
		c.byHand(t)
		for _, f := range phase.RunPreflight(phase.BuildJournal(phase.Journal{}, c.model.shown(), c.services, "eastus"), c.model.shown(), c.services, terms()) {
			if f.IsBlocker || f.Reason == phase.ReasonAddressLost {
				t.Fatalf("%s: %s", f.Reason, f.Message)
			}
		}
		c.rehearsed(t)
		c.migrated(t)
		after := c.addresses()
		for name, old := range before {
			if after[name] != old {
				t.Errorf("%s had %s, and has %s", name, old, after[name])
			}
		}
		for _, ip := range c.model.seen.PublicIPs {
			if ip.SKU != lb.Standard || !ip.Static {
				t.Errorf("public IP %s is %s, Static %t", ip.ID.Name, ip.SKU, ip.Static)
			}
		}
		for _, b := range c.model.seen.LoadBalancers {
			if b.SKU != lb.Standard {
				t.Errorf("load balancer %s is %s", b.ID.Name, b.SKU)
			}
		}
		for _, i := range c.model.seen.Interfaces {
			if got := i.IPConfigurations[0].Pools; len(got) != 1 {
				t.Errorf("network interface %s is in %q", i.ID.Name, got)
			}
		}
		if j := phase.BuildJournal(phase.Journal{}, c.model.shown(), c.services, "eastus"); j.IsOpen() {
			t.Errorf("what is migrated is to be migrated: %+v", j)
		}
	})
}
