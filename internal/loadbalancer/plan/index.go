// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

type ownerIndex struct {
	of map[string]string // the owner as given, by lower case
	at map[string]int    // its first index in the list
}

func indexOwners(list []string) ownerIndex {
	o := ownerIndex{of: make(map[string]string, len(list)), at: make(map[string]int, len(list))}
	for i, owner := range list {
		lower := strings.ToLower(owner)
		if _, exists := o.of[lower]; !exists {
			o.of[lower], o.at[lower] = owner, i
		}
	}
	return o
}

func indexServices(services []ServiceParts) ownerIndex {
	list := make([]string, len(services))
	for i, s := range services {
		list[i] = s.Owner
	}
	return indexOwners(list)
}

func (o ownerIndex) ownerOf(name string) string {
	if len(o.of) == 0 {
		return ""
	}
	lower, first := strings.ToLower(name), ""
	for end := range len(lower) + 1 {
		if end < len(lower) && lower[end] != '-' {
			continue
		}
		if _, exists := o.of[lower[:end]]; exists && (first == "" || o.at[lower[:end]] < o.at[first]) {
			first = lower[:end]
		}
	}
	return o.of[first]
}

// ruleIndex are the rules of a plan at their frontends, indexed to find conflicts.
type ruleIndex struct {
	all []placedRule
	// byPort and behind hold the first rule per frontend port and per backend port; rules for all ports have
	// transport lb.All.
	byPort, byBackendPort map[portKey]int
	byPool                map[string][]int
	at                    map[string][]int
	frontends             map[string][]string
	// machinePools are the other pools with a network interface of a pool.
	machinePools map[string][]string
}

// portKey is a port of a place or pool. Transport lb.All means all ports; an empty transport means any.
type portKey struct {
	place     string
	transport lb.Transport
	port      int32
}

func newRuleIndex() *ruleIndex {
	return &ruleIndex{byPort: map[portKey]int{}, byBackendPort: map[portKey]int{}, byPool: map[string][]int{}, at: map[string][]int{}, frontends: map[string][]string{}}
}

func (i *ruleIndex) addRule(r placedRule) {
	at := len(i.all)
	i.all = append(i.all, r)
	pool := strings.ToLower(r.Pool)
	i.byPool[pool] = append(i.byPool[pool], at)
	i.at[r.place] = append(i.at[r.place], at)
	recordFirst(i.byPort, r.place, r.Transport, r.FrontendPort, at)
	if !r.FloatingIP {
		recordFirst(i.byBackendPort, pool, r.Transport, r.BackendPort, at)
	}
}

func recordFirst(first map[portKey]int, place string, transport lb.Transport, port int32, at int) {
	if transport == lb.All {
		port = 0
	}
	for _, d := range []portKey{{place, transport, port}, {place: place}} {
		if _, exists := first[d]; !exists {
			first[d] = at
		}
	}
}

// findMachinePort returns the first rule with the same backend port in another pool of the machines, or -1.
func (i *ruleIndex) findMachinePort(r placedRule) int {
	found := -1
	for _, pool := range i.machinePools[strings.ToLower(r.Pool)] {
		if at, exists := i.byBackendPort[portKey{pool, r.Transport, r.BackendPort}]; exists && (found < 0 || at < found) {
			found = at
		}
	}
	return found
}

// findPort returns the first seat with the same port, or -1.
func findPort(first map[portKey]int, place string, transport lb.Transport, port int32) int {
	keys := []portKey{{place, transport, port}, {place, lb.All, 0}}
	if transport == lb.All {
		keys = []portKey{{place: place}}
	}
	found := -1
	for _, d := range keys {
		if at, exists := first[d]; exists && (found < 0 || at < found) {
			found = at
		}
	}
	return found
}

// byName returns the index of the first item with each name.
func byName[T any](items []T, name func(T) string) map[string]int {
	at := make(map[string]int, len(items))
	for i, item := range items {
		lower := strings.ToLower(name(item))
		if _, exists := at[lower]; !exists {
			at[lower] = i
		}
	}
	return at
}

// machinePools returns, by lower-case name, the other pools with a network interface of a pool.
func machinePools(pools []lb.Pool) map[string][]string {
	pools = slices.DeleteFunc(slices.Clone(pools), func(p lb.Pool) bool { return !p.NIC || len(p.Addresses) == 0 })
	if len(pools) < 2 {
		return nil
	}
	others, of := map[string][]string{}, map[string][]string{} // of is by interface
	for _, p := range pools {
		name := strings.ToLower(p.ID.Name)
		for _, a := range p.Addresses {
			on := strings.ToLower(a.Interface)
			for _, other := range of[on] {
				if !slices.Contains(others[name], other) {
					others[name], others[other] = append(others[name], other), append(others[other], name)
				}
			}
			if on != "" {
				of[on] = append(of[on], name)
			}
		}
	}
	return others
}

func hasOwner(owner, name string) bool {
	if len(name) < len(owner) || !strings.EqualFold(name[:len(owner)], owner) {
		return false
	}
	return len(name) == len(owner) || name[len(owner)] == '-'
}

func ownedBy[T any](owner string, name func(T) string) func(T) bool {
	return func(item T) bool { return hasOwner(owner, name(item)) }
}

// mergeParts replaces the owned items by the desired ones. Retained items keep their position, and equal items are
// unchanged, to keep writes minimal.
func mergeParts[T any](items, desired []T, owned func(T) bool, name func(T) string, isSame func(current, want T) bool, keep func(current, want T) T) []T {
	next := make([]T, 0, len(items)+len(desired))
	at, retained := byName(desired, name), map[string]bool{}
	hasShared := slices.ContainsFunc(desired, func(w T) bool { return !owned(w) }) // a shared probe
	for _, item := range items {
		managed := owned(item)
		if !managed && !hasShared {
			next = append(next, item)
			continue
		}
		lower := strings.ToLower(name(item))
		i, ok := at[lower]
		switch {
		case ok:
			retained[lower] = true
			if want := keep(item, desired[i]); !isSame(item, want) {
				item = want
			}
		case managed:
			continue
		}
		next = append(next, item)
	}
	for _, w := range desired {
		if !retained[strings.ToLower(name(w))] {
			next = append(next, w)
		}
	}
	return next
}

func frontendName(f lb.Frontend) string { return f.Name }
func probeName(p lb.Probe) string       { return p.Name }
func ruleName(r lb.Rule) string         { return r.Name }
func poolName(p lb.Pool) string         { return p.ID.Name }

func poolNames(pools []lb.Pool) []string {
	names := make([]string, len(pools))
	for i, p := range pools {
		names[i] = p.ID.Name
	}
	return names
}

// poolInUse reports whether anything refers to a pool, network interfaces included.
func poolInUse(b lb.LoadBalancer, p lb.Pool) bool {
	return p.NIC || b.Pinned[strings.ToLower(p.ID.Name)] ||
		slices.ContainsFunc(b.Rules, func(r lb.Rule) bool { return strings.EqualFold(r.Pool, p.ID.Name) })
}

// Azure names are case-insensitive.
func containsName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
