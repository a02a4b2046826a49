// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb/behavior"
)

func memberRules() []Rule {
	return []Rule{
		{
			Name: "interfaces-join-by-themselves", On: KindPut, Scopes: poolScopes,
			Code: "ModificationOfNICIpConfigBackendPoolNotSupported", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A PUT of a pool adds, renames and leaves out no IP configuration of a NIC; one without addresses leaves them alone.",
			Source:   "hashicorp/terraform-provider-azurerm#10496, Azure/bicep-registry-modules#2512", check: checkInterfacesUnchanged,
		},
		{
			Name: "interface-once", On: KindPut, Scopes: poolScopes, Under: "InvalidRequestFormat",
			Code: "DuplicateIpConfigurationReferenceOnBackendAddressPool", CodeCertainty: Observed, Certainty: Observed,
			Requires: "A PUT of a load balancer names IP configurations that are in a pool as the pool does, and each once.",
			Source:   "Azure/azure-rest-api-specs#10104", check: checkDuplicateInterfaces,
		},
		{
			Name: "interface-admin-state", On: KindPut, Scopes: poolScopes,
			Code: "ModificationOfNICIpConfigBackendPoolNotSupported", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "With `interfaceAdminState` refused, no write changes the admin state of a NIC's address.",
			Source:   "none found", check: checkInterfaceStates,
		},
		{
			Name: "sync-mode-automatic", On: KindPut, Scopes: poolScopes, Code: "BackendAddressPoolSyncModeAutomaticNotSupportedForIPAddresses", CodeCertainty: Assumed, Certainty: Observed,
			Requires: "A pool with `syncMode` Automatic has no IP addresses.",
			Source:   "Azure/azure-cli#29715", check: checkSyncMode,
		},
		{
			Name: "parent-not-failed", On: KindPut, Scopes: poolScopes, Code: "ParentResourceIsInFailedState", CodeCertainty: Observed, Certainty: Assumed,
			Requires: "With `failedParent` refused, a PUT of a pool finds its load balancer in another state than Failed.",
			Source:   "seen for express route circuits alone", check: checkParentState,
		},
	}
}

func (v *validationTarget) isPoolRequest() bool { return v.id.child == poolKind }

func (v *validationTarget) requestedPool() fields {
	if v.isPoolRequest() {
		return v.requestBody
	}
	return findChild(v.requestBody, v.self)
}

func (v *validationTarget) entriesByIPConfig() map[string]fields {
	by := map[string]fields{}
	for _, a := range poolEntries(v.e.references(), v.self, findChild(v.before, v.self)) {
		if isNIC(a) {
			by[nicIPConfigID(a)] = a
		}
	}
	return by
}

func hasOnlyName(a fields) bool {
	return stringField(propertyFields(a), "ipAddress") == "" && !isNIC(a) && !isFrontend(a)
}

func checkInterfacesUnchanged(s *validationTarget) string {
	if !s.isPoolRequest() || !s.hasAddressList {
		return ""
	}
	present := s.entriesByIPConfig()
	remaining := maps.Clone(present)
	for _, a := range objectList(propertyFields(s.requestedPool()), addresses) {
		id := nicIPConfigID(a)
		if hasOnlyName(a) {
			for known, got := range present {
				if sameName(stringField(got, "name"), stringField(a, "name")) {
					id = known
				}
			}
		}
		if id == "" {
			continue
		}
		if got, known := present[id]; !known || !sameName(stringField(got, "name"), stringField(a, "name")) {
			return modifiesInterfaces(s.self)
		}
		delete(remaining, id)
	}
	if len(remaining) > 0 {
		return modifiesInterfaces(s.self)
	}
	return ""
}

func modifiesInterfaces(pool resourceID) string {
	return fmt.Sprintf("Operation on backend pool %s not allowed since it adds/modifies/deletes backend address pool members that are specified with a network interface IP configuration.", pool)
}

func checkDuplicateInterfaces(s *validationTarget) string {
	present, seen := s.entriesByIPConfig(), map[string]bool{}
	for _, a := range objectList(propertyFields(s.requestedPool()), addresses) {
		id := nicIPConfigID(a)
		if id == "" {
			continue
		}
		if got, known := present[id]; seen[id] || known && !sameName(stringField(got, "name"), stringField(a, "name")) {
			return fmt.Sprintf("Backend address pool %s refers to IP configuration %s more than once.", s.self, id)
		}
		seen[id] = true
	}
	return ""
}

func checkInterfaceStates(s *validationTarget) string {
	if s.e.opts.Behavior.InterfaceAdminState != behavior.Rejected {
		return ""
	}
	present := s.entriesByIPConfig()
	for _, a := range s.addresses() {
		if got, known := present[nicIPConfigID(a)]; known && !equalAdminStates(got, a) {
			return modifiesInterfaces(s.self)
		}
	}
	return ""
}

// equalAdminStates: absent equals None.
func equalAdminStates(a, b fields) bool {
	of := func(a fields) string {
		return strings.TrimPrefix(strings.ToLower(stringField(propertyFields(a), adminState)), "none")
	}
	return of(a) == of(b)
}

func checkSyncMode(s *validationTarget) string {
	if sameName(stringField(propertyFields(s.body), "syncMode"), "Automatic") && slices.ContainsFunc(s.addresses(), isIPBased) {
		return fmt.Sprintf("Backend address pool %s has syncMode Automatic and cannot have IP addresses.", s.self)
	}
	return ""
}

func checkParentState(s *validationTarget) string {
	parent := s.e.aggregates[s.self.rootKey()]
	if !s.isPoolRequest() || s.e.opts.Behavior.FailedParent != behavior.Rejected || parent == nil || parent.state != stateFailed {
		return ""
	}
	return fmt.Sprintf("Parent resource %s of %s is in Failed state. Run PUT operation on the parent, then retry operation on the child.", parent.id, s.self)
}
