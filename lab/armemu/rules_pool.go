// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const maxPoolSize = 5000

var onlyPools = []Scope{ScopePool}

func poolRules() []Rule {
	return []Rule{
		{
			Name: "address-names-unique", On: KindPut, Scopes: onlyPools, Code: "DuplicateResourceName", CodeTag: Observed, Tag: Observed,
			Requires: "No two addresses of a pool have the same name; case does not matter.",
			Source:   "error bodies in public issues", check: uniqueAddressNames,
		},
		{
			Name: "pool-size", On: KindPut, Scopes: onlyPools, Code: "BackendAddressPoolSizeLimitExceeded", CodeTag: Assumed, Tag: Observed,
			Requires: fmt.Sprintf("A pool has at most %d IP configurations.", maxPoolSize),
			Source:   "MicrosoftDocs/azure-docs#101329", check: poolSize,
		},
		{
			Name: "address-has-target", On: KindPut, Scopes: onlyPools, Code: "InvalidIPAddress", CodeTag: Assumed, Tag: Documented,
			Requires: "An address has a well-formed IP address, unless it refers to a NIC or to another load balancer's frontend.",
			Source:   "API description of ipAddress", check: wellFormedAddresses,
		},
		{
			Name: "address-ips-unique", On: KindPut, Scopes: onlyPools, Code: "DuplicateIPAddressInBackendAddressPool", CodeTag: Assumed, Tag: Assumed,
			Requires: "No two addresses of a pool have the same IP address.",
			Source:   "none found; duplicates by NIC are refused as DuplicateIpConfigurationReferenceOnBackendAddressPool", check: uniqueAddressIPs,
		},
		{
			Name: "admin-state", On: KindPut, Scopes: onlyPools, Code: "InvalidAdminState", CodeTag: Assumed, Tag: Documented,
			Requires: "`adminState` is None, Up, Down or Drain.",
			Source:   "API description, versions 2022-05-01 and 2025-05-01; Drain in recordings of Azure/azure-cli", check: adminStates,
		},
		{
			Name: "admin-state-after-creation", On: KindPut, Scopes: onlyPools, Code: "AdminStateNotSupportedOnCreation", CodeTag: Assumed, Tag: Documented,
			Requires: "A write that creates a pool sets no admin state on addresses of NICs.",
			Source:   "admin state page, limitations", check: adminStateLater,
		},
		{
			Name: "ip-and-nic-not-mixed", On: KindPut, Scopes: onlyPools,
			Code:    "CannotMixIPBasedAddressesAndIPConfigurationsOnLoadBalancerBackendAddressPool",
			CodeTag: Observed, Tag: Observed,
			Requires: "A pool holds IP addresses or NICs, never both.",
			Source:   "backend pool management page; code from hashicorp/terraform-provider-azurerm#25962", check: notMixed,
		},
		{
			Name: "ip-pool-needs-standard", On: KindPut, Scopes: onlyPools, Code: "IPBasedBackendPoolNotSupportedForBasicSku", CodeTag: Assumed, Tag: Documented,
			Requires: "A pool of IP addresses belongs to a Standard load balancer.",
			Source:   "backend pool management page", check: standardForIPs,
		},
		{
			Name: "address-needs-network", On: KindPut, Scopes: onlyPools, Code: "VirtualNetworkRequiredForIPBasedAddress", CodeTag: Assumed, Tag: Documented,
			Requires: "An IP address has a virtual network or a subnet, its own or the pool's.",
			Source:   "backend pool management page; Azure/azure-cli#30535", check: networkPresent,
		},
		{
			Name: "one-network", On: KindPut, Scopes: onlyPools, Code: "BackendAddressPoolVirtualNetworkMismatch", CodeTag: Assumed, Tag: Documented,
			Requires: "All IP addresses of a pool lie in one virtual network, and in the pool's if it names one.",
			Source:   "backend pool management page, limitations", check: oneNetwork,
		},
		{
			Name: "network-exists", On: KindPut, Scopes: onlyPools, Code: "InvalidResourceReference", CodeTag: Observed, Tag: Assumed,
			Requires: "The virtual networks and subnets that a pool names exist.",
			Source:   "none found for pools; the code is what other dangling references get", check: networkExists,
		},
	}
}

func uniqueAddressNames(s *subject) string {
	seen := map[string]bool{}
	for _, a := range s.addresses() {
		name := strings.ToLower(text(a, "name"))
		if seen[name] {
			return fmt.Sprintf("Resource %s has two child resources with the same name (%s).", s.self, text(a, "name"))
		}
		seen[name] = true
	}
	return ""
}

func poolSize(s *subject) string {
	nics := s.e.index().nicsOf(s.self, s.body)
	n := max(len(s.addresses()), len(nics))
	if n > maxPoolSize {
		return fmt.Sprintf("Backend address pool %s has %d IP configurations; the limit is %d.", s.self, n, maxPoolSize)
	}
	return ""
}

func wellFormedAddresses(s *subject) string {
	for _, a := range s.addresses() {
		ip := text(properties(a), "ipAddress")
		if ip == "" && (isNIC(a) || isFrontend(a)) {
			continue
		}
		if addr, err := netip.ParseAddr(ip); err != nil || addr.Zone() != "" {
			return fmt.Sprintf("Address %s of backend address pool %s: %q is not an IP address.", text(a, "name"), s.self, ip)
		}
	}
	return ""
}

func uniqueAddressIPs(s *subject) string {
	seen := map[netip.Addr]string{}
	for _, a := range s.addresses() {
		ip, err := netip.ParseAddr(text(properties(a), "ipAddress"))
		if err != nil {
			continue
		}
		if other, ok := seen[ip]; ok {
			return fmt.Sprintf("Addresses %s and %s of backend address pool %s have the same IP address %s.", other, text(a, "name"), s.self, ip)
		}
		seen[ip] = text(a, "name")
	}
	return ""
}

func adminStates(s *subject) string {
	for _, a := range s.addresses() {
		state, given := properties(a)[adminState]
		if given && !slices.Contains([]any{"None", "Up", "Down", "Drain"}, state) {
			return fmt.Sprintf("Address %s of backend address pool %s: adminState %v is not one of None, Up, Down, Drain.", text(a, "name"), s.self, state)
		}
	}
	return ""
}

func adminStateLater(s *subject) string {
	if findChild(s.before, s.self) != nil {
		return ""
	}
	for _, a := range s.addresses() {
		if state := text(properties(a), adminState); isNIC(a) && state != "" && state != "None" {
			return fmt.Sprintf("Address %s of backend address pool %s: adminState %s cannot be set while a pool of network interfaces is created.", text(a, "name"), s.self, state)
		}
	}
	return ""
}

// ipBased reports whether the client set an IP address. A network interface's entry may also show
// one.
func ipBased(a fields) bool { return text(properties(a), "ipAddress") != "" && !isNIC(a) }

func notMixed(s *subject) string {
	nics := s.e.index().nicsOf(s.self, s.body)
	nic := len(nics) > 0 || slices.ContainsFunc(s.addresses(), isNIC)
	if nic && slices.ContainsFunc(s.addresses(), ipBased) {
		return fmt.Sprintf("Backend address pool %s cannot hold both IP addresses and IP configurations of network interfaces.", s.self)
	}
	return ""
}

func standardForIPs(s *subject) string {
	if slices.ContainsFunc(s.addresses(), ipBased) && !sameName(sku(s.root), "Standard") {
		return fmt.Sprintf("Backend address pool %s has IP addresses, but its load balancer's SKU is %s: IP addresses need Standard.", s.self, sku(s.root))
	}
	return ""
}

// networkOf returns the lower-cased ID of the virtual network that a pool or address references,
// directly or by subnet.
func networkOf(props fields) string {
	if id := text(object(props, "virtualNetwork"), "id"); id != "" {
		return strings.ToLower(id)
	}
	network, _, _ := strings.Cut(strings.ToLower(text(object(props, "subnet"), "id")), "/"+subnets+"/")
	return network
}

func networkPresent(s *subject) string {
	if networkOf(properties(s.body)) != "" {
		return ""
	}
	for _, a := range s.addresses() {
		if ipBased(a) && networkOf(properties(a)) == "" {
			return fmt.Sprintf("Address %s of backend address pool %s has an IP address and no virtual network: set virtualNetwork on the pool or on the address.",
				text(a, "name"), s.self)
		}
	}
	return ""
}

func oneNetwork(s *subject) string {
	want := networkOf(properties(s.body))
	for _, a := range s.addresses() {
		got := networkOf(properties(a))
		switch {
		case got == "" || !ipBased(a):
		case want == "":
			want = got
		case got != want:
			return fmt.Sprintf("Address %s of backend address pool %s lies in virtual network %s, the others in %s: a pool has one.",
				text(a, "name"), s.self, got, want)
		}
	}
	return ""
}

func networkExists(s *subject) string {
	for _, props := range append([]fields{properties(s.body)}, propertiesOf(s.addresses())...) {
		for _, key := range []string{"virtualNetwork", "subnet"} {
			if id := text(object(props, key), "id"); id != "" && !s.e.exists(id) {
				return dangling(id, s.self.String())
			}
		}
	}
	return ""
}

func propertiesOf(list []fields) []fields {
	out := make([]fields, len(list))
	for i, o := range list {
		out[i] = properties(o)
	}
	return out
}

func dangling(id, by string) string {
	return fmt.Sprintf("Resource %s referenced by resource %s was not found. Please make sure that the referenced resource exists, and that both resources are in the same region.", id, by)
}
