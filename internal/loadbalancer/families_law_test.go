// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// familySettings are annotations that select a Service's addresses.
var familySettings = []map[string]string{
	{},
	{"azure-pip-name": "four"},
	{"azure-pip-name": "six"},
	{"azure-pip-name": "four", "azure-pip-name-ipv6": "six"},
	{"azure-pip-name-ipv6": "six"},
	{"azure-load-balancer-ipv4": "198.18.0.1"},
	{"azure-load-balancer-ipv6": "2001:db8::1"},
	{"azure-pip-name": "four", "azure-load-balancer-ipv6": "2001:db8::1"},
	{"azure-load-balancer-internal": "true"},
	{"azure-load-balancer-internal": "true", "azure-load-balancer-internal-subnet": "apps"},
	{"azure-load-balancer-internal": "true", "azure-load-balancer-ipv4": "10.0.0.9"},
	{"azure-load-balancer-internal": "true", "azure-load-balancer-ipv6": "fd00::9"},
}

// However a Service changes its second family, across restarts, the address of a retained family stays; also
// with IPv6 names without suffix.
func TestLawAddressesOfFamiliesStay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		with := rapid.SampledFrom(familySettings).Draw(rt, "annotations")
		older := rapid.Bool().Draw(rt, "older names")
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"IPv4", "IPv6", "IPv4 IPv6", "IPv6 IPv4", "restart"}), 1, 7).Draw(rt, "steps")
		if err := changeFamilies(t, with, older, steps); err != nil {
			rt.Fatal(err)
		}
	})
}

// changeFamilies applies lists of families in order and returns an error if an address was lost.
func changeFamilies(t *testing.T, with map[string]string, older bool, steps []string) (err error) {
	synctest.Test(t, func(*testing.T) {
		s := newStage()
		defer func() { s.close() }()
		s.put("publicIPAddresses/four", `{location: eastus, sku: {name: Standard}, properties: {publicIPAllocationMethod: Static}}`)
		s.put("publicIPAddresses/six", `{location: eastus, sku: {name: Standard}, properties: {publicIPAddressVersion: IPv6, publicIPAllocationMethod: Static}}`)
		internal := with["azure-load-balancer-internal"] != ""
		older = older && (len(with) == 0 || internal && with["azure-load-balancer-ipv6"] == "")
		present := map[lb.Family]netip.Addr{}
		if older {
			present[lb.IPv6] = s.olderNames(internal, with["azure-load-balancer-internal-subnet"])
			steps = append([]string{"IPv6"}, steps...)
		}
		base := map[string]string{"ports": "9000", "azure-load-balancer-internal": with["azure-load-balancer-internal"]}
		s.apply("shop/base", specOf(base), nil)
		s.settle(time.Hour)
		for _, step := range steps {
			if step == "restart" {
				s.restart()
				s.settle(time.Hour)
				continue
			}
			fields := maps.Clone(with)
			fields["ports"], fields["families"] = "80 81/UDP", step
			s.apply("shop/web", specOf(fields), nil)
			s.settle(time.Hour)
			s.mu.Lock()
			refused, shown := s.process.claims["shop/web"].told, slices.Clone(s.services["shop/web"].status)
			s.mu.Unlock()
			if refused != "" { // an annotation for another family changes nothing
				continue
			}
			current := map[lb.Family]netip.Addr{}
			for i, family := range strings.Fields(step) {
				current[lb.Family(family)] = shown[i]
			}
			for family, addr := range current {
				if before, ok := present[family]; ok && before != addr {
					err = fmt.Errorf("%v, %v: %s was %s and is %s\n%s", with, steps, family, before, addr, s.harvest(false))
					return
				}
			}
			present = current
		}
		if s.remove("shop/web"); !s.settle(time.Hour) || s.check() != nil {
			err = fmt.Errorf("%v, %v: it does not come to rest: %w", with, steps, s.check())
		}
		if remaining := s.cloud().spell(); strings.Contains(remaining, "a002") {
			err = fmt.Errorf("%v, %v: left behind:\n%s", with, steps, remaining)
		}
	})
	return err
}

// olderNames creates an IPv6-only Service as cloud-provider-azure did and returns its address.
func (s *stage) olderNames(internal bool, subnet string) netip.Addr {
	s.mu.Lock()
	s.uids = 2
	s.services["shop/web"] = &record{rank: s.uids, Service: service.Service{Namespace: "shop", Name: "web", UID: "002"}}
	s.mu.Unlock()
	stem, balancer := "a002", "loadBalancers/"+clusterName
	front, other := `{publicIPAddress: {id: ~/publicIPAddresses/kubernetes-a002}}`, `{publicIPAddress: {id: ~/publicIPAddresses/four}}`
	if internal {
		balancer += "-internal"
		of := "nodes"
		if subnet != "" {
			stem, of = stem+"-"+subnet, subnet
		}
		other = `{subnet: {id: ~/virtualNetworks/net/subnets/` + of + `}, privateIPAllocationMethod: Dynamic}`
		front = strings.Replace(other, "Dynamic", "Dynamic, privateIPAddressVersion: IPv6", 1)
	} else {
		s.put("publicIPAddresses/kubernetes-a002", `{location: eastus, sku: {name: Standard}, tags: {k8s-azure-service: shop/web, k8s-azure-cluster-name: kubernetes},
  properties: {publicIPAddressVersion: IPv6, publicIPAllocationMethod: Static}}`)
	}
	on := "~/" + balancer
	s.put(balancer, `{location: eastus, sku: {name: Standard}, properties: {
  frontendIPConfigurations: [{name: other, properties: `+other+`}, {name: `+stem+`, properties: `+front+`}],
  backendAddressPools: [{name: kubernetes-IPv6}],
  loadBalancingRules: [{name: `+stem+`-TCP-80, properties: {protocol: Tcp, frontendPort: 80, backendPort: 80, enableFloatingIP: true,
    frontendIPConfiguration: {id: `+on+`/frontendIPConfigurations/`+stem+`}, backendAddressPool: {id: `+on+`/backendAddressPools/kubernetes-IPv6}}}]}}`)
	for _, b := range s.cloud().balancers {
		for _, f := range b.Properties.Frontends {
			if f.Name == stem && internal {
				return netip.MustParseAddr(f.Properties.IP)
			}
		}
	}
	for _, ip := range s.cloud().ips {
		if ip.Name == "kubernetes-a002" {
			return netip.MustParseAddr(ip.Properties.IP)
		}
	}
	panic("the frontend has no address")
}
