// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// owns reports whether a name is one of an owner's.
func owns(owner, name string) bool {
	if len(name) < len(owner) || !strings.EqualFold(name[:len(owner)], owner) {
		return false
	}
	return len(name) == len(owner) || name[len(owner)] == '-'
}

func owned[T any](owner string, name func(T) string) func(T) bool {
	return func(item T) bool { return owns(owner, name(item)) }
}

// merge replaces the owned items by the desired ones. One that stays keeps its place, and
// if it says the same it stays as it is, so that a write changes no more than it must.
func merge[T any](items, desired []T, owned func(T) bool, name func(T) string, same func(is, shall T) bool) []T {
	next := make([]T, 0, len(items)+len(desired))
	at, kept := byName(desired, name), map[string]bool{}
	strange := slices.ContainsFunc(desired, func(w T) bool { return !owned(w) }) // a shared probe
	for _, item := range items {
		ours := owned(item)
		if !ours && !strange {
			next = append(next, item)
			continue
		}
		lower := strings.ToLower(name(item))
		i, stays := at[lower]
		switch {
		case stays:
			kept[lower] = true
			if !same(item, desired[i]) {
				item = desired[i]
			}
		case ours:
			continue
		}
		next = append(next, item)
	}
	for _, w := range desired {
		if !kept[strings.ToLower(name(w))] {
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

// poolInUse reports whether something refers to a pool.
func poolInUse(b lb.LoadBalancer, p lb.Pool) bool {
	return b.Pinned[strings.ToLower(p.ID.Name)] ||
		slices.ContainsFunc(b.Rules, func(r lb.Rule) bool { return strings.EqualFold(r.Pool, p.ID.Name) })
}

// contains compares as Azure does, without regard to case.
func contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
