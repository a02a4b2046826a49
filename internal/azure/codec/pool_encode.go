// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"net/netip"
	"strings"

	"weir.dev/weir/internal/lb"
)

// ErrNoVirtualNetwork rejects a pool of addresses without a known virtual network.
var ErrNoVirtualNetwork = errors.New("the pool has no virtual network and azure.json names none: set vnetName")

const keyAddresses = "loadBalancerBackendAddresses"

// EncodePool returns the body that sets the addresses of a pool. An existing entry changes only its
// admin state.
func EncodePool(pool lb.Pool, fallback string) (any, error) {
	body, err := read(pool.Origin)
	if err != nil {
		return nil, err
	}
	without(body, "id", "name")
	return body, editPool(stripPool(body), pool.Addresses, fallback)
}

// stripPool keeps the read-only interfaces of entries.
func stripPool(body object) object {
	properties := strip(body, "backendIPConfigurations", "inboundNatRules", "loadBalancingRules", "outboundRule", "outboundRules")
	entries := list(properties[keyAddresses])
	for _, entry := range entries {
		without(entry, "id") // an entry only has a name
		strip(entry, "inboundNatRulesPortMapping")
	}
	properties[keyAddresses] = entries
	return properties
}

// editPool sets the addresses of a pool. No addresses become an empty array, because Azure keeps
// them if it is absent.
func editPool(properties object, addresses []lb.Address, fallback string) error {
	entries, _ := properties[keyAddresses].([]object)
	network := entryNetwork(entries)
	existing := index(entries)
	all := make([]object, 0, len(addresses))
	for _, address := range addresses {
		entry := existing.take(address)
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

// editEntry removes the reference to an interface, because the name identifies the entry.
func editEntry(entry object, a lb.Address) {
	properties := within(entry, "properties")
	without(properties, "networkInterfaceIPConfiguration", "adminState")
	if a.AdminState != "" {
		properties["adminState"] = a.AdminState
	}
}

// entryNetwork returns the virtual network of the first entry that has one, since Azure allows one
// per pool.
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

// staying indexes entries by address; each is taken once.
type staying map[lb.Address][]object

func index(entries []object) staying {
	s := make(staying, len(entries))
	for _, entry := range entries {
		key := identity(addressOf(entry))
		s[key] = append(s[key], entry)
	}
	return s
}

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

// identity is the key of an entry: the interface, or name and IP.
func identity(a lb.Address) lb.Address {
	if a.Interface != "" {
		return lb.Address{Interface: strings.ToLower(a.Interface)}
	}
	return lb.Address{Name: strings.ToLower(a.Name), IP: a.IP}
}

// SameInterfaces reports whether the pool has exactly the interfaces that were read.
func SameInterfaces(pool lb.Pool) bool {
	body, err := read(pool.Origin)
	if err != nil {
		return false
	}
	entries := list(at(body, "properties")[keyAddresses])
	if len(entries) != len(pool.Addresses) {
		return false
	}
	existing := index(entries)
	for _, a := range pool.Addresses {
		if a.Interface == "" || existing.take(a) == nil {
			return false
		}
	}
	return true
}
