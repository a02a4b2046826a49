// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"net/netip"

	"weir.dev/weir/internal/lb"
)

type armPool struct {
	Name       string             `json:"name"`
	Etag       string             `json:"etag"`
	Properties *armPoolProperties `json:"properties"`
}

type armPoolProperties struct {
	State          string         `json:"provisioningState"`
	VirtualNetwork armReference   `json:"virtualNetwork"`
	Addresses      []*armAddress  `json:"loadBalancerBackendAddresses"`
	Interfaces     []*armItem     `json:"backendIPConfigurations"`
	OutboundRule   *armReference  `json:"outboundRule"`
	OutboundRules  []armReference `json:"outboundRules"`
	DrainSeconds   *int32         `json:"drainPeriodInSeconds"`
}

type armItem struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type armAddress struct {
	Name       string `json:"name"`
	Properties struct {
		IP             string        `json:"ipAddress"`
		AdminState     string        `json:"adminState"`
		VirtualNetwork armReference  `json:"virtualNetwork"`
		Interface      *armReference `json:"networkInterfaceIPConfiguration"`
	} `json:"properties"`
}

// DecodePool decodes a pool. A foreign entry without an IP address, e.g. a frontend of another load
// balancer, gets a zero IP and is sent back unchanged.
func DecodePool(id lb.PoolID, doc Document) (lb.Pool, error) {
	if pool, ok := scanPool(id, doc); ok {
		pool.ID = id
		return pool, nil
	}
	var pool armPool
	if err := json.Unmarshal(doc.Text, &pool); err != nil {
		return lb.Pool{}, err
	}
	return pool.toPool(id, doc), nil
}

func (a armPool) toPool(id lb.PoolID, doc Document) lb.Pool {
	pool := lb.Pool{ID: id, Etag: etagOrAny(a.Etag), Origin: doc}
	p := a.Properties
	if p == nil {
		return pool
	}
	pool.Provisioning = provisioningState(p.State)
	pool.VirtualNetwork = p.VirtualNetwork.ID
	pool.NIC = p.hasInterfaces()
	pool.Outbound = p.OutboundRule != nil || len(p.OutboundRules) > 0
	pool.DrainSeconds = p.DrainSeconds
	if len(p.Addresses) > 0 {
		pool.Addresses = make([]lb.Address, 0, len(p.Addresses))
	}
	for _, entry := range p.Addresses {
		if entry != nil {
			pool.Addresses = append(pool.Addresses, entry.toAddress())
		}
	}
	return pool
}

func (a armAddress) toAddress() lb.Address {
	p := a.Properties
	next := lb.Address{Name: a.Name, VirtualNetwork: p.VirtualNetwork.ID, AdminState: p.AdminState}
	next.IP, _ = netip.ParseAddr(p.IP)
	if !next.IP.IsValid() && p.Interface != nil {
		next.Interface = p.Interface.ID
	}
	return next
}

// hasInterfaces looks for references instead of addresses. An entry with both is an IP entry
// (assumed).
func (p armPoolProperties) hasInterfaces() bool {
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

// provisioningState maps Deleting to Updating: the content is about to disappear.
func provisioningState(state string) lb.Provisioning {
	if lb.Provisioning(state) == lb.Deleting {
		return lb.Updating
	}
	return lb.Provisioning(state)
}

// PoolMembers returns the members of a pool. Older pools of network interfaces have only IP
// configurations, which a pool write cannot name.
func PoolMembers(pool lb.Pool) []lb.Address {
	var resource armPool
	doc, ok := pool.Origin.(Document)
	if len(pool.Addresses) > 0 || !ok || json.Unmarshal(doc.Text, &resource) != nil || resource.Properties == nil {
		return pool.Addresses
	}
	var addresses []lb.Address
	for _, c := range resource.Properties.Interfaces {
		if c != nil && c.ID != "" {
			addresses = append(addresses, lb.Address{Name: c.Name, Interface: c.ID})
		}
	}
	return addresses
}
