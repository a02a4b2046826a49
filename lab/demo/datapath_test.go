// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// statusOf returns a Service with one port and these addresses in its status.
func statusOf(name string, ips ...string) *corev1.Service {
	s := newService(name, "web")
	for _, ip := range ips {
		s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: ip})
	}
	return s
}

// The path from an address uses Azure's references only, and each possible break is reported.
func TestTheWayFromAnAddressToTheNodes(t *testing.T) {
	emu, o := emptyAzure(t)
	buildAzure(t, emu, serviceFixture{name: "web", members: addressSet(1, 2)}, serviceFixture{name: "API", members: addressSet(3)})
	o.mustLook(t)
	azure := o.latestSnapshot()
	web := addressAt(0).String()
	for _, c := range []struct {
		name   string
		ips    []string
		wanted addresses
		change func(a *azureSnapshot)
		want   string
	}{
		{name: "it leads there", ips: []string{web}, wanted: addressSet(1, 2)},
		{name: "no address", wanted: addressSet(1, 2), want: "has no address"},
		{name: "two", ips: []string{web, web}, wanted: addressSet(1, 2), want: "has no address"},
		{name: "no address at all", ips: []string{"web.example"}, wanted: addressSet(1, 2), want: "has no address"},
		{name: "nobody's address", ips: []string{"198.18.9.9"}, wanted: addressSet(1, 2), want: "has 198.18.9.9, and 0 rules there for 1 port"},
		{name: "another's address", ips: []string{addressAt(1).String()}, wanted: addressSet(1, 2), want: "which leads to pool shop-api: it lacks [10.0.0.1 10.0.0.2] and has [10.0.0.3] too many"},
		{name: "a node too few", ips: []string{web}, wanted: addressSet(1, 2, 3), want: "lacks [10.0.0.3] and has [] too many"},
		{name: "a node too many", ips: []string{web}, wanted: addressSet(1), want: "lacks [] and has [10.0.0.2] too many"},
		{name: "no frontend", ips: []string{web}, wanted: addressSet(1, 2), want: "0 rules", change: func(a *azureSnapshot) { clear(a.frontends) }},
		{name: "no rule", ips: []string{web}, wanted: addressSet(1, 2), want: "0 rules", change: func(a *azureSnapshot) { a.rules = nil }},
		{name: "no pool", ips: []string{web}, wanted: addressSet(1, 2), want: "lacks [10.0.0.1 10.0.0.2]", change: func(a *azureSnapshot) { clear(a.pools) }},
	} {
		at := azure
		if c.change != nil {
			o.mustLook(t)
			at = o.latestSnapshot() // its own copy
			c.change(at)
		}
		got := brokenPath(statusOf("web", c.ips...), c.wanted, at)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A public IP without an address is the start of no path.
func TestAnAddressThatIsNotThereYetLeadsNowhere(t *testing.T) {
	a := newAzureSnapshot(nil)
	a.publicIPs["ip"], a.frontends["front"] = netip.Addr{}, "ip"
	a.rules = []ruleSnapshot{{frontend: "front"}, {frontend: "none such"}}
	if got := a.rulesFor(netip.Addr{}); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestUnownedAzureResources(t *testing.T) {
	emu, o := azureWithWorkloads(t)
	o.mustLook(t)
	if reason := countMismatch(o.latestSnapshot(), 3); reason != "" {
		t.Error(reason)
	}
	if reason := countMismatch(o.latestSnapshot(), 2); reason != "Azure has 3 frontends, 3 rules, 3 pools, 3 probes, 3 public IPs for 2 Services" {
		t.Error(reason)
	}
	if err := emu.Put(provider+"publicIPAddresses/left", []byte(`{"location":"eastus"}`)); err != nil {
		t.Fatal(err)
	}
	o.mustLook(t)
	if reason := countMismatch(o.latestSnapshot(), 3); reason != "Azure has 4 public IPs for 3 Services" {
		t.Error(reason)
	}
}

// A missing pool counts as empty: its desired members are missing.
func TestAPoolThatIsGoneIsEmpty(t *testing.T) {
	emu, o := azureWithWorkloads(t)
	o.recordDesired("web", time.Now(), addressSet(1))
	if code := writePool(t, emu, "shop-web", 1); code >= 300 {
		t.Fatal(code)
	}
	o.mustLook(t)
	if got := o.poolStates()[0]; !got.isInSync || !got.exists {
		t.Errorf("%v %+v", got, got)
	}
	if err := emu.Restore([]byte("[]")); err != nil {
		t.Fatal(err)
	}
	o.mustLook(t)
	pools := o.poolStates()
	if got := fmt.Sprint(pools); got != "[web 0/1 api 0/0 db 0/0]" || slices.ContainsFunc(pools, func(p poolState) bool { return p.exists }) {
		t.Error(got)
	}
	total, _, _ := o.newSummaries(time.Now())
	if wrong := (Summary{Total: total}).failureText(); wrong != "1 address lost, 1 foreign address lost" {
		t.Errorf("%q", wrong)
	}
}
