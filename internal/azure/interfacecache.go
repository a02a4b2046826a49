// SPDX-License-Identifier: Apache-2.0

package azure

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

// cachedInterface is a network interface. Machine is empty if unattached; Addresses are keyed by the
// lower-case name of the IP configuration.
type cachedInterface struct {
	Machine   string
	Addresses map[string]netip.Addr
}

// interfaceMap are interfaces by lower-case name.
type interfaceMap map[string]cachedInterface

// interfaceCache is a cache, safe for concurrent use. The zero value is empty.
type interfaceCache struct {
	mu     sync.Mutex // not held during a list
	groups map[lb.ResourceID]interfaceGroup
}

type interfaceGroup struct {
	listTime time.Time
	machines interfaceMap
}

// ResolveMachines resolves the machines of a pool's interfaces. Uniform instances are in the ID; for others,
// list is called at most once per resource group.
func (i *interfaceCache) ResolveMachines(pool lb.Pool, now time.Time, list func(subscription, resourceGroup string) (interfaceMap, error)) (lb.Pool, error) {
	addresses := make([]lb.Address, len(pool.Addresses))
	copy(addresses, pool.Addresses)
	listed := map[lb.ResourceID]interfaceMap{} // by this call
	for n := range addresses {
		machine, nic, err := lb.MachineOfInterface(addresses[n].Interface)
		if machine != "" || err != nil {
			addresses[n].Machine = machine
			continue
		}
		key := lb.ResourceID{SubscriptionID: strings.ToLower(nic.SubscriptionID), ResourceGroup: strings.ToLower(nic.ResourceGroup)}
		name := strings.ToLower(nic.Name)
		cached, known := i.cachedInterface(key, name, now)
		if !known && listed[key] == nil {
			if listed[key], err = list(nic.SubscriptionID, nic.ResourceGroup); err != nil {
				return lb.Pool{}, err
			}
			i.storeGroup(key, maps.Clone(listed[key]), now)
		}
		if !known {
			cached = listed[key][name]
			if cached.Machine == "" {
				i.storeMissing(key, name, cached)
			}
		}
		addresses[n].Machine = cached.Machine
		addresses[n].IP = cached.Addresses[strings.ToLower(path.Base(addresses[n].Interface))]
	}
	pool.Addresses = addresses
	return pool, nil
}

func (i *interfaceCache) cachedInterface(key lb.ResourceID, name string, now time.Time) (found cachedInterface, known bool) {
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

func (i *interfaceCache) storeGroup(key lb.ResourceID, machines interfaceMap, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.groups == nil {
		i.groups = map[lb.ResourceID]interfaceGroup{}
	}
	i.groups[key] = interfaceGroup{now, machines}
}

// storeMissing prevents an immediate second list for a missing interface.
func (i *interfaceCache) storeMissing(key lb.ResourceID, name string, entry cachedInterface) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.groups[key].machines[name] = entry
}
