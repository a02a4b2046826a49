// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ipConfiguration is an address of an interface and its pools.
type ipConfiguration struct {
	Name       string `json:"name"`
	Properties struct {
		IP    string      `json:"privateIPAddress"`
		Pools []reference `json:"loadBalancerBackendAddressPools"`
	} `json:"properties"`
}

// interfaceBody is a network interface, or the instance section that creates one.
type interfaceBody struct {
	Name       string `json:"name"`
	Properties struct {
		Configurations []ipConfiguration `json:"ipConfigurations"`
	} `json:"properties"`
}

// addMembership records the pool addresses of an interface. The interfaces, not the pools, are
// authoritative.
func (s azureState) addMembership(id string, nic interfaceBody) {
	for i, ip := range nic.Properties.Configurations {
		if i == 0 && !strings.Contains(id, "/theirs-") {
			*s.firstConfigIDs = append(*s.firstConfigIDs, strings.ToLower(id+"/ipConfigurations/"+ip.Name))
		}
		for _, pool := range ip.Properties.Pools {
			key := strings.ToLower(pool.ID)
			if s.interfaceMembers[key] == nil {
				s.interfaceMembers[key] = map[string]string{}
			}
			s.interfaceMembers[key][strings.ToLower(id+"/ipConfigurations/"+ip.Name)] = ip.Properties.IP
		}
	}
}

// addMemberships does the same for a resource of any type.
func (s azureState) addMemberships(id string, raw json.RawMessage) error {
	kind := strings.ToLower(id)
	switch {
	case strings.Contains(kind, "/virtualmachinescalesets/") && strings.Contains(kind, "/virtualmachines/"):
		var instance struct {
			Properties struct {
				Network struct {
					Interfaces []interfaceBody `json:"networkInterfaceConfigurations"`
				} `json:"networkProfileConfiguration"`
			} `json:"properties"`
		}
		err := json.Unmarshal(raw, &instance)
		for _, nic := range instance.Properties.Network.Interfaces {
			s.addMembership(id+"/networkInterfaces/"+nic.Name, nic)
		}
		return err
	case strings.Contains(kind, "/networkinterfaces/"):
		var nic interfaceBody
		err := json.Unmarshal(raw, &nic)
		s.addMembership(id, nic)
		return err
	}
	return nil
}

// withMembers adds the joined interface addresses to a load balancer's pools, Down where the pool
// entry is.
func (s azureState) withMembers(b loadBalancer) loadBalancer {
	for i, p := range b.Properties.Pools {
		down := map[string]string{}
		shown := p.Properties.Addresses[:0:0]
		for _, a := range p.Properties.Addresses {
			if a.Properties.Interface == nil {
				shown = append(shown, a)
				continue
			}
			down[strings.ToLower(a.Properties.Interface.ID)] = a.Properties.Admin
		}
		for _, id := range slices.Sorted(maps.Keys(s.interfaceMembers[strings.ToLower(network+"loadBalancers/"+b.Name+"/backendAddressPools/"+p.Name)])) {
			var a member
			a.Properties.Interface = &reference{ID: id}
			a.Properties.IP, a.Properties.Admin = s.interfaceMembers[strings.ToLower(network+"loadBalancers/"+b.Name+"/backendAddressPools/"+p.Name)][id], down[id]
			shown = append(shown, a)
		}
		b.Properties.Pools[i].Properties.Addresses = shown
	}
	return b
}

// checkOutbound checks that every machine is in the outbound pool.
func (s azureState) checkOutbound() []error {
	in := s.interfaceMembers[strings.ToLower(outboundPool)]
	var errs []error
	for _, id := range *s.firstConfigIDs {
		if in[id] == "" {
			errs = append(errs, fmt.Errorf("%s has no way out: another owner's pool is lost", id))
		}
	}
	return errs
}
