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
	knownFor   = time.Hour
	unknownFor = time.Minute
)

// Interface is a network interface. Machine is empty if unattached; Addresses are keyed by the
// lower-case name of the IP configuration.
type Interface struct {
	Machine   string
	Addresses map[string]netip.Addr
}

// Machines are interfaces by lower-case name.
type Machines map[string]Interface

// Interfaces is a cache, safe for concurrent use. The zero value is empty.
type Interfaces struct {
	mu     sync.Mutex // not held during a list
	groups map[lb.ResourceID]group
}

type group struct {
	at       time.Time
	machines Machines
}

// Of resolves the machines of a pool's interfaces. Uniform instances are in the ID; for others,
// list is called at most once per resource group.
func (i *Interfaces) Of(pool lb.Pool, now time.Time, list func(subscription, resourceGroup string) (Machines, error)) (lb.Pool, error) {
	addresses := make([]lb.Address, len(pool.Addresses))
	copy(addresses, pool.Addresses)
	listed := map[lb.ResourceID]Machines{} // by this call
	for n := range addresses {
		machine, nic, err := lb.MachineOfInterface(addresses[n].Interface)
		if machine != "" || err != nil {
			addresses[n].Machine = machine
			continue
		}
		key := lb.ResourceID{SubscriptionID: strings.ToLower(nic.SubscriptionID), ResourceGroup: strings.ToLower(nic.ResourceGroup)}
		name := strings.ToLower(nic.Name)
		one, known := i.of(key, name, now)
		if !known && listed[key] == nil {
			if listed[key], err = list(nic.SubscriptionID, nic.ResourceGroup); err != nil {
				return lb.Pool{}, err
			}
			i.learn(key, maps.Clone(listed[key]), now)
		}
		if !known {
			one = listed[key][name]
			if one.Machine == "" {
				i.misses(key, name, one)
			}
		}
		addresses[n].Machine = one.Machine
		addresses[n].IP = one.Addresses[strings.ToLower(path.Base(addresses[n].Interface))]
	}
	pool.Addresses = addresses
	return pool, nil
}

func (i *Interfaces) of(key lb.ResourceID, name string, now time.Time) (found Interface, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	g := i.groups[key]
	found, known = g.machines[name]
	last := knownFor
	if found.Machine == "" {
		last = unknownFor
	}
	return found, known && now.Sub(g.at) < last
}

func (i *Interfaces) learn(key lb.ResourceID, machines Machines, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.groups == nil {
		i.groups = map[lb.ResourceID]group{}
	}
	i.groups[key] = group{now, machines}
}

// misses prevents an immediate second list for a missing interface.
func (i *Interfaces) misses(key lb.ResourceID, name string, entry Interface) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.groups[key].machines[name] = entry
}
