// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"net/netip"
	"path"
	"strings"
)

// azureSnapshot is a snapshot of Azure's load balancers and public IPs. Ids and names are in lower
// case.
type azureSnapshot struct {
	pools     map[string]poolSnapshot // by name
	frontends map[string]string       // public IP by frontend
	publicIPs map[string]netip.Addr   // by id; no address while it is created
	rules     []ruleSnapshot
	probes    int
}

// poolSnapshot is a pool in Azure.
type poolSnapshot struct {
	addresses  addresses
	isUpdating bool // a write is in progress
}

// ruleSnapshot forwards a frontend to a pool.
type ruleSnapshot struct {
	frontend, pool string
	idleTimeout    int
}

// rulesFor follows Azure's references from a public IP to its frontend and the rules and pools. Names
// are ignored.
func (a *azureSnapshot) rulesFor(ip netip.Addr) []ruleSnapshot {
	var found []ruleSnapshot
	for _, r := range a.rules {
		publicIP := a.frontends[r.frontend]
		if at, ok := a.publicIPs[publicIP]; ok && at == ip && ip.IsValid() {
			found = append(found, r)
		}
	}
	return found
}

func (a *azureSnapshot) hasPool(pool string) bool {
	_, ok := a.pools[pool]
	return ok
}

// resourceSnapshot is the part of an emulator resource that is needed here.
type resourceSnapshot struct {
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

func (r reference) lowerID() string { return strings.ToLower(r.ID) }

func newAzureSnapshot(resources []resourceSnapshot) *azureSnapshot {
	a := &azureSnapshot{pools: map[string]poolSnapshot{}, frontends: map[string]string{}, publicIPs: map[string]netip.Addr{}}
	for i := range resources {
		a.addResource(&resources[i])
	}
	return a
}

func (a *azureSnapshot) addResource(r *resourceSnapshot) {
	id, properties := strings.ToLower(r.ID), &r.Body.Properties
	if strings.Contains(id, "/publicipaddresses/") {
		a.publicIPs[id] = properties.IP
	}
	for _, f := range properties.Frontends {
		a.frontends[id+"/frontendipconfigurations/"+strings.ToLower(f.Name)] = f.Properties.PublicIP.lowerID()
	}
	for _, p := range properties.Pools {
		shown := poolSnapshot{addresses: addresses{}, isUpdating: p.Properties.State != "Succeeded"}
		for _, entry := range p.Properties.Addresses {
			shown.addresses[entry.Properties.IP] = entry.Name
		}
		a.pools[strings.ToLower(p.Name)] = shown
	}
	a.probes += len(properties.Probes)
	for _, rule := range properties.Rules {
		a.rules = append(a.rules, ruleSnapshot{
			frontend: rule.Properties.Frontend.lowerID(), pool: path.Base(rule.Properties.Pool.lowerID()), idleTimeout: rule.Properties.Idle,
		})
	}
}
