// SPDX-License-Identifier: Apache-2.0

// Package attached remembers which virtual machines have the network interfaces of pools: a pool
// names interfaces alone, and to ask Azure whose they are is a list of a resource group.
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

// How long a list is believed. An interface is made for a machine and goes with it, so it is asked
// again for those alone that can be moved by hand; one that no machine had is asked for sooner.
const (
	knownFor   = time.Hour
	unknownFor = time.Minute
)

// Interface is what is known of one: its machine, empty if none has it, and its addresses by the names
// of its IP configurations in lower case.
type Interface struct {
	Machine   string
	Addresses map[string]netip.Addr
}

// Machines are interfaces by their names in lower case.
type Machines map[string]Interface

// Interfaces is what is remembered. Its zero value is nothing; it is asked from several goroutines
// at once.
type Interfaces struct {
	mu     sync.Mutex // never held while a resource group is listed
	groups map[lb.ResourceID]group
}

// group is a resource group as it was listed.
type group struct {
	at       time.Time
	machines Machines
}

// Of returns a pool with the machine of each of its interfaces. One of a scale set's uniform instance
// names it; for the others list is asked, once for each resource group, unless it was before.
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

// of returns the machine of an interface, if it is known well enough.
func (i *Interfaces) of(key lb.ResourceID, name string, now time.Time) (is Interface, known bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	g := i.groups[key]
	is, known = g.machines[name]
	last := knownFor
	if is.Machine == "" {
		last = unknownFor
	}
	return is, known && now.Sub(g.at) < last
}

func (i *Interfaces) learn(key lb.ResourceID, machines Machines, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.groups == nil {
		i.groups = map[lb.ResourceID]group{}
	}
	i.groups[key] = group{now, machines}
}

// misses notes an interface that a list does not show, so that it is not listed for again at once.
func (i *Interfaces) misses(key lb.ResourceID, name string, is Interface) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.groups[key].machines[name] = is
}
