// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"net/netip"

	"weir.dev/weir/internal/lb"
)

type shownPool struct {
	Name       string               `json:"name"`
	Etag       string               `json:"etag"`
	Properties *shownPoolProperties `json:"properties"`
}

type shownPoolProperties struct {
	State          string          `json:"provisioningState"`
	VirtualNetwork shownRef        `json:"virtualNetwork"`
	Addresses      []*shownAddress `json:"loadBalancerBackendAddresses"`
	Interfaces     []*shownPart    `json:"backendIPConfigurations"`
	Outbound       *shownRef       `json:"outboundRule"`
	Outbounds      []shownRef      `json:"outboundRules"`
}

type shownPart struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type shownAddress struct {
	Name       string `json:"name"`
	Properties struct {
		IP             string    `json:"ipAddress"`
		AdminState     string    `json:"adminState"`
		VirtualNetwork shownRef  `json:"virtualNetwork"`
		Interface      *shownRef `json:"networkInterfaceIPConfiguration"`
	} `json:"properties"`
}

// DecodePool decodes a pool. A foreign entry without an IP address, e.g. a frontend of another load
// balancer, gets a zero IP and is sent back unchanged.
func DecodePool(id lb.PoolID, doc Document) (lb.Pool, error) {
	var pool shownPool
	if err := json.Unmarshal(doc.Text, &pool); err != nil {
		return lb.Pool{}, err
	}
	return pool.decode(id, doc), nil
}

func (s shownPool) decode(id lb.PoolID, doc Document) lb.Pool {
	pool := lb.Pool{ID: id, Etag: etag(s.Etag), Origin: doc}
	p := s.Properties
	if p == nil {
		return pool
	}
	pool.Provisioning = provisioning(p.State)
	pool.VirtualNetwork = p.VirtualNetwork.ID
	pool.NIC = p.holdsInterfaces()
	pool.Outbound = p.Outbound != nil || len(p.Outbounds) > 0
	if len(p.Addresses) > 0 {
		pool.Addresses = make([]lb.Address, 0, len(p.Addresses))
	}
	for _, entry := range p.Addresses {
		if entry != nil {
			pool.Addresses = append(pool.Addresses, entry.decode())
		}
	}
	return pool
}

func (a shownAddress) decode() lb.Address {
	p := a.Properties
	next := lb.Address{Name: a.Name, VirtualNetwork: p.VirtualNetwork.ID, AdminState: p.AdminState}
	next.IP, _ = netip.ParseAddr(p.IP)
	if !next.IP.IsValid() && p.Interface != nil {
		next.Interface = p.Interface.ID
	}
	return next
}

// holdsInterfaces looks for references instead of addresses. An entry with both is an IP entry
// (assumed).
func (p shownPoolProperties) holdsInterfaces() bool {
	addresses := 0
	for _, entry := range p.Addresses {
		switch {
		case entry == nil:
		case entry.Properties.IP != "":
			addresses++
		case entry.Properties.Interface != nil:
			return true
		}
	}
	return len(p.Interfaces) > 0 && addresses == 0
}

// provisioning maps Deleting to Updating: the content is about to disappear.
func provisioning(state string) lb.Provisioning {
	if lb.Provisioning(state) == lb.Deleting {
		return lb.Updating
	}
	return lb.Provisioning(state)
}

// Members returns the members of a pool. Older pools of network interfaces have only IP
// configurations, which a pool write cannot name.
func Members(pool lb.Pool) []lb.Address {
	var resource shownPool
	doc, ok := pool.Origin.(Document)
	if len(pool.Addresses) > 0 || !ok || json.Unmarshal(doc.Text, &resource) != nil || resource.Properties == nil {
		return pool.Addresses
	}
	var all []lb.Address
	for _, c := range resource.Properties.Interfaces {
		if c != nil && c.ID != "" {
			all = append(all, lb.Address{Name: c.Name, Interface: c.ID})
		}
	}
	return all
}
