// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// ErrNoVirtualNetwork is of a pool of addresses of which nothing says in which network they are.
var ErrNoVirtualNetwork = errors.New("the pool has no virtual network and azure.json names none: set vnetName")

// EncodePool returns the body that gives a pool these addresses. It is built anew from
// what was read, which is not changed: everything that a client may set is sent
// back as it was, what only Azure sets is left out. An address that the pool held
// keeps all that its entry says but its admin state, which is the address's.
func EncodePool(read *armnetwork.BackendAddressPool, addresses []lb.Address, fallback string) (armnetwork.BackendAddressPool, error) {
	observed := read.Properties
	if observed == nil {
		observed = &armnetwork.BackendAddressPoolPropertiesFormat{}
	}
	next := &armnetwork.BackendAddressPoolPropertiesFormat{
		DrainPeriodInSeconds: observed.DrainPeriodInSeconds,
		Location:             observed.Location,
		SyncMode:             observed.SyncMode,
		TunnelInterfaces:     observed.TunnelInterfaces,
		VirtualNetwork:       observed.VirtualNetwork,
		// An empty pool has to be sent as an empty array: the SDK leaves a nil one
		// out, and Azure would keep what it has.
		LoadBalancerBackendAddresses: make([]*armnetwork.LoadBalancerBackendAddress, 0, len(addresses)),
	}
	network := entryNetwork(observed)
	stays := index(observed.LoadBalancerBackendAddresses)
	for _, address := range addresses {
		entry := stays.take(address)
		if entry == nil {
			switch {
			case next.VirtualNetwork != nil, network != nil:
			case fallback == "":
				return armnetwork.BackendAddressPool{}, ErrNoVirtualNetwork
			default:
				next.VirtualNetwork = &armnetwork.SubResource{ID: &fallback}
			}
			entry = newEntry(address)
			if next.VirtualNetwork == nil {
				entry.Properties.VirtualNetwork = network
			}
		}
		next.LoadBalancerBackendAddresses = append(next.LoadBalancerBackendAddresses, withAdminState(entry, address))
	}
	return armnetwork.BackendAddressPool{Properties: next}, nil
}

func newEntry(a lb.Address) *armnetwork.LoadBalancerBackendAddress {
	ip := a.IP.String()
	return &armnetwork.LoadBalancerBackendAddress{
		Name:       &a.Name,
		Properties: &armnetwork.LoadBalancerBackendAddressPropertiesFormat{IPAddress: &ip},
	}
}

// withAdminState returns a copy of an entry without what only Azure sets, in the
// admin state of the address.
func withAdminState(entry *armnetwork.LoadBalancerBackendAddress, a lb.Address) *armnetwork.LoadBalancerBackendAddress {
	next := &armnetwork.LoadBalancerBackendAddress{Name: entry.Name}
	if p := entry.Properties; p != nil {
		next.Properties = &armnetwork.LoadBalancerBackendAddressPropertiesFormat{
			IPAddress:                           p.IPAddress,
			LoadBalancerFrontendIPConfiguration: p.LoadBalancerFrontendIPConfiguration,
			Subnet:                              p.Subnet,
			VirtualNetwork:                      p.VirtualNetwork,
		}
	}
	if a.AdminState != "" {
		if next.Properties == nil {
			next.Properties = &armnetwork.LoadBalancerBackendAddressPropertiesFormat{}
		}
		state := armnetwork.LoadBalancerBackendAddressAdminState(a.AdminState)
		next.Properties.AdminState = &state
	}
	return next
}

// entryNetwork returns the virtual network that the entries of a pool carry
// themselves, by its id or by that of a subnet in it; nil if none does. Azure
// allows one virtual network a pool, so the first decides.
func entryNetwork(observed *armnetwork.BackendAddressPoolPropertiesFormat) *armnetwork.SubResource {
	for _, entry := range observed.LoadBalancerBackendAddresses {
		if entry == nil || entry.Properties == nil {
			continue
		}
		if id := SubResourceID(entry.Properties.VirtualNetwork); id != "" {
			return &armnetwork.SubResource{ID: &id}
		}
		id := SubResourceID(entry.Properties.Subnet)
		if at := strings.LastIndex(strings.ToLower(id), "/subnets/"); at > 0 {
			network := id[:at]
			return &armnetwork.SubResource{ID: &network}
		}
	}
	return nil
}

// staying finds the entry of a pool that an address stands for, each once.
type staying map[lb.Address][]*armnetwork.LoadBalancerBackendAddress

func index(entries []*armnetwork.LoadBalancerBackendAddress) staying {
	s := make(staying, len(entries))
	for _, entry := range entries {
		if entry != nil {
			key := identity(decodeAddress(entry))
			s[key] = append(s[key], entry)
		}
	}
	return s
}

func (s staying) take(a lb.Address) *armnetwork.LoadBalancerBackendAddress {
	key := identity(a)
	entries := s[key]
	if len(entries) == 0 {
		return nil
	}
	s[key] = entries[1:]
	return entries[0]
}

// identity is what makes an address the same entry: name and IP, or the interface.
func identity(a lb.Address) lb.Address {
	if a.Interface != "" {
		return lb.Address{Interface: strings.ToLower(a.Interface)}
	}
	return lb.Address{Name: strings.ToLower(a.Name), IP: a.IP}
}

// SameInterfaces reports whether addresses are just the interfaces that a pool was read with.
func SameInterfaces(read *armnetwork.BackendAddressPool, addresses []lb.Address) bool {
	if read.Properties == nil || len(read.Properties.LoadBalancerBackendAddresses) != len(addresses) {
		return false
	}
	entries := index(read.Properties.LoadBalancerBackendAddresses)
	for _, a := range addresses {
		if a.Interface == "" || entries.take(a) == nil {
			return false
		}
	}
	return true
}
