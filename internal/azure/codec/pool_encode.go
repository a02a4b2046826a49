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

const (
	keyAddresses   = "loadBalancerBackendAddresses"
	keyNetwork     = "virtualNetwork"
	keyDrainPeriod = "drainPeriodInSeconds"
)

// EncodePool returns the body that sets the addresses of a pool. An existing entry changes only its
// admin state.
func EncodePool(pool lb.Pool, fallback string) (any, error) {
	body, err := parseOrigin(pool.Origin)
	if err != nil {
		return nil, err
	}
	deleteKeys(body, "id", "name")
	return body, editPool(stripPool(body), pool.Addresses, fallback)
}

// stripPool keeps the read-only interfaces of entries.
func stripPool(body *jsonObject) *jsonObject {
	properties := removeReadOnly(body, "backendIPConfigurations", "inboundNatRules", "loadBalancingRules", "outboundRule", "outboundRules")
	entries := objectList(properties, keyAddresses)
	for _, entry := range entries {
		deleteKeys(entry, "id") // an entry only has a name
		removeReadOnly(entry, "inboundNatRulesPortMapping")
	}
	properties.set(keyAddresses, entries)
	return properties
}

// editPool sets the addresses of a pool. No addresses become an empty array, because Azure keeps
// them if it is absent.
func editPool(properties *jsonObject, addresses []lb.Address, fallback string) error {
	entries := objectList(properties, keyAddresses)
	network := entryNetwork(entries)
	existing := newEntryIndex(entries)
	items := make([]*jsonObject, 0, len(addresses))
	for _, address := range addresses {
		entry := existing.takeEntry(address)
		if entry == nil {
			switch {
			case referenceID(properties, keyNetwork) != "", network != "":
			case fallback == "":
				return ErrNoVirtualNetwork
			default:
				properties.set(keyNetwork, newObject("id", fallback))
			}
			added := newObject("ipAddress", address.IP.String())
			if referenceID(properties, keyNetwork) == "" {
				added.set(keyNetwork, newObject("id", network))
			}
			entry = newObject("name", address.Name)
			entry.set(keyProperties, added)
		}
		editEntry(entry, address)
		items = append(items, entry)
	}
	properties.set(keyAddresses, items)
	return nil
}

// editEntry removes the reference to an interface, because the name identifies the entry.
func editEntry(entry *jsonObject, a lb.Address) {
	properties := ensureObject(entry, keyProperties)
	deleteKeys(properties, "networkInterfaceIPConfiguration", "adminState")
	if a.AdminState != "" {
		properties.set("adminState", a.AdminState)
	}
}

// entryNetwork returns the virtual network of the first entry that has one, since Azure allows one
// per pool.
func entryNetwork(entries []*jsonObject) string {
	for _, entry := range entries {
		properties := childObject(entry, keyProperties)
		if id := referenceID(properties, keyNetwork); id != "" {
			return id
		}
		id := referenceID(properties, "subnet")
		if at := strings.LastIndex(strings.ToLower(id), "/subnets/"); at > 0 {
			return id[:at]
		}
	}
	return ""
}

// entryIndex indexes entries by address; each is taken once.
type entryIndex map[lb.Address][]*jsonObject

func newEntryIndex(entries []*jsonObject) entryIndex {
	s := make(entryIndex, len(entries))
	for _, entry := range entries {
		key := entryKey(entryAddress(entry))
		s[key] = append(s[key], entry)
	}
	return s
}

func entryAddress(entry *jsonObject) lb.Address {
	properties := childObject(entry, keyProperties)
	a := lb.Address{Name: stringValue(entry, "name")}
	a.IP, _ = netip.ParseAddr(stringValue(properties, "ipAddress"))
	if !a.IP.IsValid() {
		a.Interface = referenceID(properties, "networkInterfaceIPConfiguration")
	}
	return a
}

func (e entryIndex) takeEntry(a lb.Address) *jsonObject {
	key := entryKey(a)
	entries := e[key]
	if len(entries) == 0 {
		return nil
	}
	e[key] = entries[1:]
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
	body, err := parseOrigin(pool.Origin)
	if err != nil {
		return false
	}
	entries := objectList(childObject(body, keyProperties), keyAddresses)
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
