// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
)

// memberRules returns the rules for pools of network interfaces.
func memberRules() []Rule {
	return []Rule{
		{
			Name: "interfaces-join-by-themselves", On: KindPut, Scopes: onlyPools,
			Code: "ModificationOfNICIpConfigBackendPoolNotSupported", CodeTag: Observed, Tag: Observed,
			Requires: "A PUT of a pool adds, renames and leaves out no IP configuration of a network interface; one that says nothing of addresses leaves them alone.",
			Source:   "hashicorp/terraform-provider-azurerm#10496, Azure/bicep-registry-modules#2512", check: sameInterfaces,
		},
		{
			Name: "interface-once", On: KindPut, Scopes: onlyPools, Under: "InvalidRequestFormat",
			Code: "DuplicateIpConfigurationReferenceOnBackendAddressPool", CodeTag: Observed, Tag: Observed,
			Requires: "A PUT of a load balancer names IP configurations that are in a pool as the pool does, and each once.",
			Source:   "Azure/azure-rest-api-specs#10104", check: interfacesOnce,
		},
		{
			Name: "interface-admin-state", On: KindPut, Scopes: onlyPools,
			Code: "ModificationOfNICIpConfigBackendPoolNotSupported", CodeTag: Assumed, Tag: Assumed,
			Requires: "With `interfaceAdminState` refused, no write changes the admin state of a network interface's address.",
			Source:   "none found", check: sameInterfaceStates,
		},
		{
			Name: "sync-mode-automatic", On: KindPut, Scopes: onlyPools, Code: "BackendAddressPoolSyncModeAutomaticNotSupportedForIPAddresses", CodeTag: Assumed, Tag: Observed,
			Requires: "A pool whose `syncMode` is Automatic has no IP addresses.",
			Source:   "Azure/azure-cli#29715", check: noAddressesIfAutomatic,
		},
		{
			Name: "parent-not-failed", On: KindPut, Scopes: onlyPools, Code: "ParentResourceIsInFailedState", CodeTag: Observed, Tag: Assumed,
			Requires: "With `failedParent` refused, a PUT of a pool finds its load balancer in another state than Failed.",
			Source:   "seen for express route circuits alone", check: parentNotFailed,
		},
	}
}

// ofPool reports whether the request targets the pool itself.
func (s *subject) ofPool() bool { return s.id.child == poolKind }

// sentPool returns the pool in the request.
func (s *subject) sentPool() fields {
	if s.ofPool() {
		return s.sent
	}
	return findChild(s.sent, s.self)
}

// shown returns the pool's addresses by IP configuration ID.
func (s *subject) shown() map[string]fields {
	by := map[string]fields{}
	for _, a := range entriesOf(s.e.index(), s.self, findChild(s.before, s.self)) {
		if isNIC(a) {
			by[nicOf(a)] = a
		}
	}
	return by
}

// bare reports whether an address has only a name.
func bare(a fields) bool {
	return text(properties(a), "ipAddress") == "" && !isNIC(a) && !isFrontend(a)
}

func sameInterfaces(s *subject) string {
	if !s.ofPool() || !s.lists {
		return ""
	}
	has := s.shown()
	left := maps.Clone(has)
	for _, a := range objects(properties(s.sentPool()), addresses) {
		id := nicOf(a)
		if bare(a) {
			for known, is := range has {
				if sameName(text(is, "name"), text(a, "name")) {
					id = known
				}
			}
		}
		if id == "" {
			continue
		}
		if is, known := has[id]; !known || !sameName(text(is, "name"), text(a, "name")) {
			return modifiesInterfaces(s.self)
		}
		delete(left, id)
	}
	if len(left) > 0 {
		return modifiesInterfaces(s.self)
	}
	return ""
}

func modifiesInterfaces(pool resourceID) string {
	return fmt.Sprintf("Operation on backend pool %s not allowed since it adds/modifies/deletes backend address pool members that are specified with a network interface IP configuration.", pool)
}

func interfacesOnce(s *subject) string {
	has, seen := s.shown(), map[string]bool{}
	for _, a := range objects(properties(s.sentPool()), addresses) {
		id := nicOf(a)
		if id == "" {
			continue
		}
		if is, known := has[id]; seen[id] || known && !sameName(text(is, "name"), text(a, "name")) {
			return fmt.Sprintf("Backend address pool %s refers to IP configuration %s more than once.", s.self, id)
		}
		seen[id] = true
	}
	return ""
}

func sameInterfaceStates(s *subject) string {
	if s.e.opts.Behaviour.InterfaceAdminState != behaviour.Refused {
		return ""
	}
	has := s.shown()
	for _, a := range s.addresses() {
		if is, known := has[nicOf(a)]; known && !sameState(is, a) {
			return modifiesInterfaces(s.self)
		}
	}
	return ""
}

// sameState compares admin states; absent equals None.
func sameState(a, b fields) bool {
	of := func(a fields) string {
		return strings.TrimPrefix(strings.ToLower(text(properties(a), adminState)), "none")
	}
	return of(a) == of(b)
}

func noAddressesIfAutomatic(s *subject) string {
	if sameName(text(properties(s.body), "syncMode"), "Automatic") && slices.ContainsFunc(s.addresses(), ipBased) {
		return fmt.Sprintf("Backend address pool %s has syncMode Automatic and cannot have IP addresses.", s.self)
	}
	return ""
}

func parentNotFailed(s *subject) string {
	parent := s.e.aggregates[s.self.rootKey()]
	if !s.ofPool() || s.e.opts.Behaviour.FailedParent != behaviour.Refused || parent == nil || parent.state != stateFailed {
		return ""
	}
	return fmt.Sprintf("Parent resource %s of %s is in Failed state. Run PUT operation on the parent, then retry operation on the child.", parent.id, s.self)
}
