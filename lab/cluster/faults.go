// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	"weir.dev/weir/lab/apiserver"
)

// AzureFaults replaces what Azure does wrong; see lab/armemu for the rules. Each is one flow
// mapping of YAML.
func (s *Stage) AzureFaults(rules ...string) error {
	if len(rules) == 0 {
		return s.emu.SetFaults("")
	}
	return s.emu.SetFaults("rules:\n- " + strings.Join(rules, "\n- ") + "\n")
}

// APIFault has the API server go wrong for a replica.
func (s *Stage) APIFault(replica int, f apiserver.Fault) {
	f.Client = s.replicas[replica%len(s.replicas)].name
	s.apiFaults = append(s.apiFaults, s.api.Inject(f))
}

// BreakWatches breaks the connections of all watches of a resource; empty is of all.
func (s *Stage) BreakWatches(resource string) { s.api.BreakWatches("", resource) }

// ExpireWatches has all who watch a resource list it again; empty is all resources.
func (s *Stage) ExpireWatches(resource string) { s.api.ExpireWatches("", resource) }

// EndFaults ends all that goes wrong.
func (s *Stage) EndFaults() {
	if err := s.AzureFaults(); err != nil {
		panic(err) // no rules are good ones
	}
	for _, end := range s.apiFaults {
		end()
	}
	s.apiFaults = nil
}

// peoplesIP is the public IP that people made for the Services of a namespace.
func peoplesIP(namespace string) string { return "of-" + namespace }

// PublicIP makes a public IP that is a person's.
func (s *Stage) PublicIP(name string) error {
	id := network + "publicIPAddresses/" + name
	if err := s.emu.Put(id, []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4"}}`)); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	c, err := s.observe()
	if err != nil {
		return err
	}
	s.peoples[strings.ToLower(id)] = c.addresses[strings.ToLower(id)].Properties.IP
	return nil
}
