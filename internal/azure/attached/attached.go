// SPDX-License-Identifier: Apache-2.0

// Package attached caches the virtual machines of network interfaces, because a lookup lists a
// whole resource group.
package attached

import (
	"maps"
	"net/netip"
	"path"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
)

// Cache lifetimes. Interfaces rarely move between machines; unattached ones are looked up sooner.
const (
	attachedTTL   = time.Hour
	unattachedTTL = time.Minute
)

// Interface is a network interface. Machine is empty if unattached; Addresses are keyed by the
// lower-case name of the IP configuration.
type Interface struct {
	Machine   string
	Addresses map[string]netip.Addr
}

// InterfaceMap are interfaces by lower-case name.
type InterfaceMap map[string]Interface

// Cache is a cache, safe for concurrent use. The zero value is empty.
type Cache struct {
	mu     sync.Mutex // not held during a list
	groups map[lb.ResourceID]group
}

type group struct {
	listTime time.Time
	machines InterfaceMap
}

// ResolveMachines resolves the machines of a pool's interfaces. Uniform instances are in the ID; for others,
// list is called at most once per resource group.
func (i *Cache) ResolveMachines(pool lb.Pool, now time.Time, list func(subscription, resourceGroup string) (InterfaceMap, error)) (lb.Pool, error) {
	addresses := make([]lb.Address, len(pool.Addresses))
	copy(addresses, pool.Addresses)
	listed := map[lb.ResourceID]InterfaceMap{} // by this call
	for n := range addresses {
		machine, nic, err := lb.MachineOfInterface(addresses[n].Interface)
		if machine != "" || err != nil {
			addresses[n].Machine = machine
			continue
		}
		key := lb.ResourceID{SubscriptionID: strings.ToLower(nic.SubscriptionID), ResourceGroup: strings.ToLower(nic.ResourceGroup)}
		name := strings.ToLower(nic.Name)
		one, known := i.cachedInterface(key, name, now)
		if !known && listed[key] == nil {
			if listed[key], err = list(nic.SubscriptionID, nic.ResourceGroup); err != nil {
				return lb.Pool{}, err
			}
			i.storeGroup(key, maps.Clone(listed[key]), now)
		}
		if !known {
			one = listed[key][name]
			if one.Machine == "" {
				i.storeMissing(key, name, one)
			}
		}
		addresses[n].Machine = one.Machine
		addresses[n].IP = one.Addresses[strings.ToLower(path.Base(addresses[n].Interface))]
	}
	pool.Addresses = addresses
	return pool, nil
}

func (i *Cache) cachedInterface(key lb.ResourceID, name string, now time.Time) (found Interface, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	g := i.groups[key]
	found, known = g.machines[name]
	last := attachedTTL
	if found.Machine == "" {
		last = unattachedTTL
	}
	return found, known && now.Sub(g.listTime) < last
}

func (i *Cache) storeGroup(key lb.ResourceID, machines InterfaceMap, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.groups == nil {
		i.groups = map[lb.ResourceID]group{}
	}
	i.groups[key] = group{now, machines}
}

// storeMissing prevents an immediate second list for a missing interface.
func (i *Cache) storeMissing(key lb.ResourceID, name string, entry Interface) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.groups[key].machines[name] = entry
}
