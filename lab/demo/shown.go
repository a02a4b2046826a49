// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"net/netip"
	"path"
	"strings"
)

// shownAzure is a snapshot of Azure's load balancers and public IPs. Ids and names are in lower
// case.
type shownAzure struct {
	pools     map[string]shownPool  // by name
	frontends map[string]string     // public IP by frontend
	publicIPs map[string]netip.Addr // by id; no address while it is created
	rules     []shownRule
	probes    int
}

// shownPool is a pool in Azure.
type shownPool struct {
	addresses addresses
	busy      bool // a write is in progress
}

// shownRule forwards a frontend to a pool.
type shownRule struct {
	frontend, pool string
	idleMinutes    int
}

// behind follows Azure's references from a public IP to its frontend and the rules and pools. Names
// are ignored.
func (a *shownAzure) behind(ip netip.Addr) []shownRule {
	var found []shownRule
	for _, r := range a.rules {
		publicIP := a.frontends[r.frontend]
		if at, ok := a.publicIPs[publicIP]; ok && at == ip && ip.IsValid() {
			found = append(found, r)
		}
	}
	return found
}

func (a *shownAzure) has(pool string) bool {
	_, ok := a.pools[pool]
	return ok
}

// shownResource is the part of an emulator resource that is needed here.
type shownResource struct {
	ID   string `json:"id"`
	Body struct {
		Properties struct {
			IP        netip.Addr `json:"ipAddress"`
			Frontends []struct {
				Name       string `json:"name"`
				Properties struct {
					PublicIP reference `json:"publicIPAddress"`
				} `json:"properties"`
			} `json:"frontendIPConfigurations"`
			Pools []struct {
				Name       string `json:"name"`
				Properties struct {
					State     string `json:"provisioningState"`
					Addresses []struct {
						Name       string `json:"name"`
						Properties struct {
							IP netip.Addr `json:"ipAddress"`
						} `json:"properties"`
					} `json:"loadBalancerBackendAddresses"`
				} `json:"properties"`
			} `json:"backendAddressPools"`
			Rules []struct {
				Properties struct {
					Frontend reference `json:"frontendIPConfiguration"`
					Pool     reference `json:"backendAddressPool"`
					Idle     int       `json:"idleTimeoutInMinutes"`
				} `json:"properties"`
			} `json:"loadBalancingRules"`
			Probes []struct{} `json:"probes"`
		} `json:"properties"`
	} `json:"body"`
}

type reference struct {
	ID string `json:"id"`
}

func (r reference) key() string { return strings.ToLower(r.ID) }

func newShownAzure(resources []shownResource) *shownAzure {
	a := &shownAzure{pools: map[string]shownPool{}, frontends: map[string]string{}, publicIPs: map[string]netip.Addr{}}
	for i := range resources {
		a.add(&resources[i])
	}
	return a
}

func (a *shownAzure) add(r *shownResource) {
	id, properties := strings.ToLower(r.ID), &r.Body.Properties
	if strings.Contains(id, "/publicipaddresses/") {
		a.publicIPs[id] = properties.IP
	}
	for _, f := range properties.Frontends {
		a.frontends[id+"/frontendipconfigurations/"+strings.ToLower(f.Name)] = f.Properties.PublicIP.key()
	}
	for _, p := range properties.Pools {
		shown := shownPool{addresses: addresses{}, busy: p.Properties.State != "Succeeded"}
		for _, entry := range p.Properties.Addresses {
			shown.addresses[entry.Properties.IP] = entry.Name
		}
		a.pools[strings.ToLower(p.Name)] = shown
	}
	a.probes += len(properties.Probes)
	for _, rule := range properties.Rules {
		a.rules = append(a.rules, shownRule{
			frontend: rule.Properties.Frontend.key(), pool: path.Base(rule.Properties.Pool.key()), idleMinutes: rule.Properties.Idle,
		})
	}
}
