// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

const maxPoolSize = 5000

var poolScopes = []Scope{ScopePool}

func poolRules() []Rule {
	return []Rule{
		{
			Name: "address-names-unique", On: KindPut, Scopes: poolScopes, Code: "DuplicateResourceName", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No two addresses of a pool have the same name; case does not matter.",
			Source:   "public issues", check: uniqueAddressNames,
		},
		{
			Name: "pool-size", On: KindPut, Scopes: poolScopes, Code: "BackendAddressPoolSizeLimitExceeded", CodeCertainty: Assumed, Certainty: Observed,
			Requires: fmt.Sprintf("A pool has at most %d IP configurations.", maxPoolSize),
			Source:   "MicrosoftDocs/azure-docs#101329", check: poolSize,
		},
		{
			Name: "address-has-target", On: KindPut, Scopes: poolScopes, Code: "InvalidIPAddress", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "An address has a well-formed IP address, unless it refers to a NIC or to another load balancer's frontend.",
			Source:   "API description of ipAddress", check: wellFormedAddresses,
		},
		{
			Name: "address-ips-unique", On: KindPut, Scopes: poolScopes, Code: "DuplicateIPAddressInBackendAddressPool", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "No two addresses of a pool have the same IP address.",
			Source:   "none found; duplicates by NIC are refused as DuplicateIpConfigurationReferenceOnBackendAddressPool", check: uniqueAddressIPs,
		},
		{
			Name: "admin-state", On: KindPut, Scopes: poolScopes, Code: "InvalidAdminState", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "`adminState` is None, Up, Down or Drain.",
			Source:   "API description, versions 2022-05-01 and 2025-05-01; Drain in recordings of Azure/azure-cli", check: adminStates,
		},
		{
			Name: "admin-state-after-creation", On: KindPut, Scopes: poolScopes, Code: "AdminStateNotSupportedOnCreation", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A write that creates a pool sets no admin state on addresses of NICs.",
			Source:   "admin state page, limitations", check: checkInitialAdminState,
		},
		{
			Name: "ip-and-nic-not-mixed", On: KindPut, Scopes: poolScopes,
			Code:          "CannotMixIPBasedAddressesAndIPConfigurationsOnLoadBalancerBackendAddressPool",
			CodeCertainty: Observed, Certainty: Observed,
			Requires: "A pool holds IP addresses or NICs, never both.",
			Source:   "backend pool management page; code from hashicorp/terraform-provider-azurerm#25962", check: checkMixedMembers,
		},
		{
			Name: "ip-pool-needs-standard", On: KindPut, Scopes: poolScopes, Code: "IPBasedBackendPoolNotSupportedForBasicSku", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A pool of IP addresses needs a Standard load balancer.",
			Source:   "backend pool management page", check: requireStandardForIPs,
		},
		{
			Name: "address-needs-network", On: KindPut, Scopes: poolScopes, Code: "VirtualNetworkRequiredForIPBasedAddress", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "An IP address has a virtual network or a subnet, its own or the pool's.",
			Source:   "backend pool management page; Azure/azure-cli#30535", check: requireNetwork,
		},
		{
			Name: "one-network", On: KindPut, Scopes: poolScopes, Code: "BackendAddressPoolVirtualNetworkMismatch", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "All IP addresses of a pool lie in one virtual network, and in the pool's if it names one.",
			Source:   "backend pool management page, limitations", check: checkSameNetwork,
		},
		{
			Name: "network-exists", On: KindPut, Scopes: poolScopes, Code: "InvalidResourceReference", CodeCertainty: Observed, Certainty: Assumed,
			Requires: "The virtual networks and subnets that a pool names exist.",
			Source:   "none found for pools; the code is what other dangling references get", check: networkExists,
		},
	}
}

func uniqueAddressNames(s *validationTarget) string {
	seen := map[string]bool{}
	for _, a := range s.addresses() {
		name := strings.ToLower(stringField(a, "name"))
		if seen[name] {
			return fmt.Sprintf("Resource %s has two child resources with the same name (%s).", s.self, stringField(a, "name"))
		}
		seen[name] = true
	}
	return ""
}

func poolSize(s *validationTarget) string {
	nics := s.e.references().poolNICs(s.self, s.body)
	n := max(len(s.addresses()), len(nics))
	if n > maxPoolSize {
		return fmt.Sprintf("Backend address pool %s has %d IP configurations; the limit is %d.", s.self, n, maxPoolSize)
	}
	return ""
}

func wellFormedAddresses(s *validationTarget) string {
	for _, a := range s.addresses() {
		ip := stringField(propertyFields(a), "ipAddress")
		if ip == "" && (isNIC(a) || isFrontend(a)) {
			continue
		}
		if addr, err := netip.ParseAddr(ip); err != nil || addr.Zone() != "" {
			return fmt.Sprintf("Address %s of backend address pool %s: %q is not an IP address.", stringField(a, "name"), s.self, ip)
		}
	}
	return ""
}

func uniqueAddressIPs(s *validationTarget) string {
	seen := map[netip.Addr]string{}
	for _, a := range s.addresses() {
		ip, err := netip.ParseAddr(stringField(propertyFields(a), "ipAddress"))
		if err != nil {
			continue
		}
		if other, ok := seen[ip]; ok {
			return fmt.Sprintf("Addresses %s and %s of backend address pool %s have the same IP address %s.", other, stringField(a, "name"), s.self, ip)
		}
		seen[ip] = stringField(a, "name")
	}
	return ""
}

func adminStates(s *validationTarget) string {
	for _, a := range s.addresses() {
		state, given := propertyFields(a)[adminState]
		if given && !slices.Contains([]any{"None", "Up", "Down", "Drain"}, state) {
			return fmt.Sprintf("Address %s of backend address pool %s: adminState %v is not one of None, Up, Down, Drain.", stringField(a, "name"), s.self, state)
		}
	}
	return ""
}

func checkInitialAdminState(s *validationTarget) string {
	if findChild(s.before, s.self) != nil {
		return ""
	}
	for _, a := range s.addresses() {
		if state := stringField(propertyFields(a), adminState); isNIC(a) && state != "" && state != "None" {
			return fmt.Sprintf("Address %s of backend address pool %s: adminState %s cannot be set while a pool of network interfaces is created.", stringField(a, "name"), s.self, state)
		}
	}
	return ""
}

// isIPBased is false for a network interface's entry, which may also show an IP address.
func isIPBased(a fields) bool { return stringField(propertyFields(a), "ipAddress") != "" && !isNIC(a) }

func checkMixedMembers(s *validationTarget) string {
	nics := s.e.references().poolNICs(s.self, s.body)
	nic := len(nics) > 0 || slices.ContainsFunc(s.addresses(), isNIC)
	if nic && slices.ContainsFunc(s.addresses(), isIPBased) {
		return fmt.Sprintf("Backend address pool %s cannot hold both IP addresses and IP configurations of network interfaces.", s.self)
	}
	return ""
}

func requireStandardForIPs(s *validationTarget) string {
	if slices.ContainsFunc(s.addresses(), isIPBased) && isBasic(s.root) {
		return fmt.Sprintf("Backend address pool %s has IP addresses, but its load balancer's SKU is %s: IP addresses need Standard.", s.self, skuName(s.root))
	}
	return ""
}

// virtualNetworkID reads virtualNetwork or subnet.
func virtualNetworkID(props fields) string {
	if id := stringField(objectField(props, "virtualNetwork"), "id"); id != "" {
		return strings.ToLower(id)
	}
	network, _, _ := strings.Cut(strings.ToLower(stringField(objectField(props, "subnet"), "id")), "/"+subnets+"/")
	return network
}

func requireNetwork(s *validationTarget) string {
	if virtualNetworkID(propertyFields(s.body)) != "" {
		return ""
	}
	for _, a := range s.addresses() {
		if isIPBased(a) && virtualNetworkID(propertyFields(a)) == "" {
			return fmt.Sprintf("Address %s of backend address pool %s has an IP address and no virtual network: set virtualNetwork on the pool or on the address.",
				stringField(a, "name"), s.self)
		}
	}
	return ""
}

func checkSameNetwork(s *validationTarget) string {
	want := virtualNetworkID(propertyFields(s.body))
	for _, a := range s.addresses() {
		got := virtualNetworkID(propertyFields(a))
		switch {
		case got == "" || !isIPBased(a):
		case want == "":
			want = got
		case got != want:
			return fmt.Sprintf("Address %s of backend address pool %s lies in virtual network %s, the others in %s: a pool has one.",
				stringField(a, "name"), s.self, got, want)
		}
	}
	return ""
}

func networkExists(s *validationTarget) string {
	for _, props := range append([]fields{propertyFields(s.body)}, listProperties(s.addresses())...) {
		for _, key := range []string{"virtualNetwork", "subnet"} {
			if id := stringField(objectField(props, key), "id"); id != "" && !s.e.resourceExists(id) {
				return missingReference(id, s.self.String())
			}
		}
	}
	return ""
}

func listProperties(list []fields) []fields {
	out := make([]fields, len(list))
	for i, o := range list {
		out[i] = propertyFields(o)
	}
	return out
}

func missingReference(id, by string) string {
	return fmt.Sprintf("Resource %s referenced by resource %s was not found. Please make sure that the referenced resource exists, and that both resources are in the same region.", id, by)
}
