// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"net/netip"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// DecodePool turns what Azure shows into the vocabulary. An entry whose address is no
// IP address (a frontend of another load balancer, say) is kept with a zero IP: it
// is somebody else's, and a write sends it back as it was.
func DecodePool(id lb.PoolID, shown *armnetwork.BackendAddressPool) lb.Pool {
	pool := lb.Pool{ID: id, Etag: etag(shown.Etag), Origin: shown}
	if shown.Properties == nil {
		return pool
	}
	pool.Provisioning = provisioning(Value(shown.Properties.ProvisioningState))
	pool.VirtualNetwork = SubResourceID(shown.Properties.VirtualNetwork)
	pool.NIC = holdsInterfaces(shown.Properties)
	pool.Outbound = shown.Properties.OutboundRule != nil || len(shown.Properties.OutboundRules) > 0
	for _, entry := range shown.Properties.LoadBalancerBackendAddresses {
		if entry == nil {
			continue
		}
		pool.Addresses = append(pool.Addresses, decodeAddress(entry))
	}
	return pool
}

func decodeAddress(entry *armnetwork.LoadBalancerBackendAddress) lb.Address {
	a := lb.Address{Name: Value(entry.Name)}
	if p := entry.Properties; p != nil {
		a.IP, _ = netip.ParseAddr(Value(p.IPAddress)) // zero if it is none
		a.VirtualNetwork = SubResourceID(p.VirtualNetwork)
		a.AdminState = string(Value(p.AdminState))
		if !a.IP.IsValid() {
			a.Interface = nicOf(p)
		}
	}
	return a
}

// holdsInterfaces reports whether a pool's entries are network interfaces. Those
// have a reference to the interface in place of an address; an entry with an
// address is an IP entry even if Azure adds whose interface bears it (assumed).
func holdsInterfaces(p *armnetwork.BackendAddressPoolPropertiesFormat) bool {
	addresses := 0
	for _, entry := range p.LoadBalancerBackendAddresses {
		switch {
		case entry == nil || entry.Properties == nil:
		case Value(entry.Properties.IPAddress) != "":
			addresses++
		case entry.Properties.NetworkInterfaceIPConfiguration != nil:
			return true
		}
	}
	return len(p.BackendIPConfigurations) > 0 && addresses == 0
}

// nicOf returns the IP configuration of a network interface that an entry refers to.
func nicOf(p *armnetwork.LoadBalancerBackendAddressPropertiesFormat) string {
	return SubResourceID(p.NetworkInterfaceIPConfiguration)
}

// SubResourceID is the ARM id of a reference; empty if there is none.
func SubResourceID(r *armnetwork.SubResource) string {
	if r == nil {
		return ""
	}
	return Value(r.ID)
}

// Value returns what p points to, or zero.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// provisioning returns how far Azure is with the last write. A delete that runs is one: what it
// is about is still shown, and will not be.
func provisioning(shown armnetwork.ProvisioningState) lb.Provisioning {
	if shown == armnetwork.ProvisioningStateDeleting {
		return lb.Updating
	}
	return lb.Provisioning(shown)
}
