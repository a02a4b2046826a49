// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"weir.dev/weir/lab/apiserver"
)

// AzureFaults replaces the fault rules of the Azure emulator; see lab/armemu. Each rule is a YAML
// flow mapping.
func (s *Stage) AzureFaults(rules ...string) error {
	if len(rules) == 0 {
		return s.emulator.SetFaults("")
	}
	return s.emulator.SetFaults("rules:\n- " + strings.Join(rules, "\n- ") + "\n")
}

// APIFault injects a fault of the API server for a replica.
func (s *Stage) APIFault(replica int, f apiserver.Fault) {
	f.Client = s.replicas[replica%len(s.replicas)].name
	s.endAPIFaults = append(s.endAPIFaults, s.api.Inject(f))
}

// BreakWatches breaks all watch connections of a resource; empty means every resource.
func (s *Stage) BreakWatches(resource string) { s.api.BreakWatches("", resource) }

// ExpireWatches forces a relist of a resource; empty means every resource.
func (s *Stage) ExpireWatches(resource string) { s.api.ExpireWatches("", resource) }

// EndFaults ends all faults.
func (s *Stage) EndFaults() {
	if err := s.AzureFaults(); err != nil {
		panic(err) // no rules are always valid
	}
	for _, end := range s.endAPIFaults {
		end()
	}
	s.endAPIFaults = nil
}

// namespaceIPName returns the name of the user's public IP for the Services of a namespace.
func namespaceIPName(namespace string) string { return "of-" + namespace }

// CreatePublicIP creates a public IP owned by a user.
func (s *Stage) CreatePublicIP(name string) error {
	id := network + "publicIPAddresses/" + name
	if err := s.emulator.Put(id, []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4"}}`)); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	c, err := s.readAzure()
	if err != nil {
		return err
	}
	s.userIPs[strings.ToLower(id)] = c.addresses[strings.ToLower(id)].Properties.IP
	return nil
}
