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
	body, err := readOrigin(pool.Origin)
	if err != nil {
		return nil, err
	}
	deleteKeys(body, "id", "name")
	return body, editPool(stripPool(body), pool.Addresses, fallback)
}

// stripPool keeps the read-only interfaces of entries.
func stripPool(body object) object {
	properties := removeReadOnly(body, "backendIPConfigurations", "inboundNatRules", "loadBalancingRules", "outboundRule", "outboundRules")
	entries := objectList(properties[keyAddresses])
	for _, entry := range entries {
		deleteKeys(entry, "id") // an entry only has a name
		removeReadOnly(entry, "inboundNatRulesPortMapping")
	}
	properties[keyAddresses] = entries
	return properties
}

// editPool sets the addresses of a pool. No addresses become an empty array, because Azure keeps
// them if it is absent.
func editPool(properties object, addresses []lb.Address, fallback string) error {
	entries, _ := properties[keyAddresses].([]object)
	network := entryNetwork(entries)
	existing := newEntryIndex(entries)
	all := make([]object, 0, len(addresses))
	for _, address := range addresses {
		entry := existing.takeEntry(address)
		if entry == nil {
			switch {
			case stringValue(childObject(properties, "virtualNetwork"), "id") != "", network != "":
			case fallback == "":
				return ErrNoVirtualNetwork
			default:
				properties["virtualNetwork"] = object{"id": fallback}
			}
			entry = object{"name": address.Name, "properties": object{"ipAddress": address.IP.String()}}
			if stringValue(childObject(properties, "virtualNetwork"), "id") == "" {
				childObject(entry, "properties")["virtualNetwork"] = object{"id": network}
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
	properties := ensureObject(entry, "properties")
	deleteKeys(properties, "networkInterfaceIPConfiguration", "adminState")
	if a.AdminState != "" {
		properties["adminState"] = a.AdminState
	}
}

// entryNetwork returns the virtual network of the first entry that has one, since Azure allows one
// per pool.
func entryNetwork(entries []object) string {
	for _, entry := range entries {
		properties := childObject(entry, "properties")
		if id := stringValue(childObject(properties, "virtualNetwork"), "id"); id != "" {
			return id
		}
		id := stringValue(childObject(properties, "subnet"), "id")
		if at := strings.LastIndex(strings.ToLower(id), "/subnets/"); at > 0 {
			return id[:at]
		}
	}
	return ""
}

// entryIndex indexes entries by address; each is taken once.
type entryIndex map[lb.Address][]object

func newEntryIndex(entries []object) entryIndex {
	s := make(entryIndex, len(entries))
	for _, entry := range entries {
		key := entryKey(entryAddress(entry))
		s[key] = append(s[key], entry)
	}
	return s
}

func entryAddress(entry object) lb.Address {
	properties := childObject(entry, "properties")
	a := lb.Address{Name: stringValue(entry, "name")}
	a.IP, _ = netip.ParseAddr(stringValue(properties, "ipAddress"))
	if !a.IP.IsValid() {
		a.Interface = stringValue(childObject(properties, "networkInterfaceIPConfiguration"), "id")
	}
	return a
}

func (s entryIndex) takeEntry(a lb.Address) object {
	key := entryKey(a)
	entries := s[key]
	if len(entries) == 0 {
		return nil
	}
	s[key] = entries[1:]
	return entries[0]
}

// entryKey is the key of an entry: the interface, or name and IP.
func entryKey(a lb.Address) lb.Address {
	if a.Interface != "" {
		return lb.Address{Interface: strings.ToLower(a.Interface)}
	}
	return lb.Address{Name: strings.ToLower(a.Name), IP: a.IP}
}

// SameInterfaces reports whether the pool has exactly the interfaces that were read.
func SameInterfaces(pool lb.Pool) bool {
	body, err := readOrigin(pool.Origin)
	if err != nil {
		return false
	}
	entries := objectList(childObject(body, "properties")[keyAddresses])
	if len(entries) != len(pool.Addresses) {
		return false
	}
	existing := newEntryIndex(entries)
	for _, a := range pool.Addresses {
		if a.Interface == "" || existing.takeEntry(a) == nil {
			return false
		}
	}
	return true
}
