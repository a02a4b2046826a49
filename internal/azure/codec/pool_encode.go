// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"net/netip"
	"strings"

	"weir.dev/weir/internal/lb"
)

// ErrNoVirtualNetwork is of a pool of addresses of which nothing says in which network they are.
var ErrNoVirtualNetwork = errors.New("the pool has no virtual network and azure.json names none: set vnetName")

const keyAddresses = "loadBalancerBackendAddresses"

// EncodePool returns the body that gives a pool its addresses. All else that a client may set is sent back
// as it was read. An address that the pool held keeps all that its entry says but its admin state,
// which is the address's.
func EncodePool(pool lb.Pool, fallback string) (any, error) {
	body, err := read(pool.Origin)
	if err != nil {
		return nil, err
	}
	without(body, "id", "name")
	return body, editPool(stripPool(body), pool.Addresses, fallback)
}

// stripPool takes from a pool what only Azure sets, but the interfaces of its entries. It returns its properties.
func stripPool(body object) object {
	properties := strip(body, "backendIPConfigurations", "inboundNatRules", "loadBalancingRules", "outboundRule", "outboundRules")
	entries := list(properties[keyAddresses])
	for _, entry := range entries {
		without(entry, "id") // an entry has a name alone
		strip(entry, "inboundNatRulesPortMapping")
	}
	properties[keyAddresses] = entries
	return properties
}

// editPool gives a pool addresses. An empty pool has to be sent as an empty array: Azure would keep what
// it has.
func editPool(properties object, addresses []lb.Address, fallback string) error {
	entries, _ := properties[keyAddresses].([]object)
	network := entryNetwork(entries)
	stays := index(entries)
	all := make([]object, 0, len(addresses))
	for _, address := range addresses {
		entry := stays.take(address)
		if entry == nil {
			switch {
			case word(at(properties, "virtualNetwork"), "id") != "", network != "":
			case fallback == "":
				return ErrNoVirtualNetwork
			default:
				properties["virtualNetwork"] = object{"id": fallback}
			}
			entry = object{"name": address.Name, "properties": object{"ipAddress": address.IP.String()}}
			if word(at(properties, "virtualNetwork"), "id") == "" {
				at(entry, "properties")["virtualNetwork"] = object{"id": network}
			}
		}
		editEntry(entry, address)
		all = append(all, entry)
	}
	properties[keyAddresses] = all
	return nil
}

// editEntry gives an entry the admin state of its address. What refers to an interface is taken from it: the entry
// has a name.
func editEntry(entry object, a lb.Address) {
	properties := within(entry, "properties")
	without(properties, "networkInterfaceIPConfiguration", "adminState")
	if a.AdminState != "" {
		properties["adminState"] = a.AdminState
	}
}

// entryNetwork returns the virtual network that the entries of a pool carry
// themselves, by its id or by that of a subnet in it; empty if none does. Azure
// allows one virtual network a pool, so the first decides.
func entryNetwork(entries []object) string {
	for _, entry := range entries {
		properties := at(entry, "properties")
		if id := word(at(properties, "virtualNetwork"), "id"); id != "" {
			return id
		}
		id := word(at(properties, "subnet"), "id")
		if at := strings.LastIndex(strings.ToLower(id), "/subnets/"); at > 0 {
			return id[:at]
		}
	}
	return ""
}

// staying finds the entry of a pool that an address stands for, each once.
type staying map[lb.Address][]object

func index(entries []object) staying {
	s := make(staying, len(entries))
	for _, entry := range entries {
		key := identity(addressOf(entry))
		s[key] = append(s[key], entry)
	}
	return s
}

// addressOf returns what identifies an entry, as shownAddress.decode does.
func addressOf(entry object) lb.Address {
	properties := at(entry, "properties")
	a := lb.Address{Name: word(entry, "name")}
	a.IP, _ = netip.ParseAddr(word(properties, "ipAddress"))
	if !a.IP.IsValid() {
		a.Interface = word(at(properties, "networkInterfaceIPConfiguration"), "id")
	}
	return a
}

func (s staying) take(a lb.Address) object {
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

// SameInterfaces reports whether the addresses of a pool are just the interfaces that it was read with.
func SameInterfaces(pool lb.Pool) bool {
	shown, err := read(pool.Origin)
	if err != nil {
		return false
	}
	entries := list(at(shown, "properties")[keyAddresses])
	if len(entries) != len(pool.Addresses) {
		return false
	}
	stays := index(entries)
	for _, a := range pool.Addresses {
		if a.Interface == "" || stays.take(a) == nil {
			return false
		}
	}
	return true
}
