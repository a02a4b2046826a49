// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// change is what apply found to do.
type change struct {
	// next is the pool as it shall become; equal to the observed one if nothing
	// is to be written.
	next        lb.Pool
	add, remove int
	foreign     int
	// unseen is true if there is nothing to do, and yet the ledger holds an address
	// that is neither wanted nor in the pool: a write of ours that adds it may still
	// be on its way.
	unseen bool
}

func (c change) none() bool { return c.add == 0 && c.remove == 0 }

// apply computes what a pool has to become: the wanted addresses, and of the
// others those that are not ours. Addresses are compared by IP. An entry that
// stays keeps its name and its place, so that a write changes no more than it must.
//
// written are the addresses that Weir put there (the ledger).
func apply(observed lb.Pool, wanted []lb.Address, written map[netip.Addr]struct{}) change {
	want := make(map[netip.Addr]struct{}, len(wanted))
	for _, a := range wanted {
		want[a.IP] = struct{}{}
	}
	c := change{next: observed}
	next := make([]lb.Address, 0, len(observed.Addresses)+len(wanted))
	present := make(map[netip.Addr]struct{}, len(observed.Addresses))
	names := make(map[string]struct{}, len(observed.Addresses))
	for _, a := range observed.Addresses {
		_, wantedHere := want[a.IP]
		_, ours := written[a.IP]
		_, twice := present[a.IP]
		switch {
		case ours && !wantedHere, wantedHere && twice:
			c.remove++
			continue
		case !wantedHere:
			c.foreign++
		}
		present[a.IP] = struct{}{}
		names[strings.ToLower(a.Name)] = struct{}{}
		next = append(next, a)
	}
	kept := len(next)
	for _, a := range wanted {
		if _, ok := present[a.IP]; ok {
			continue
		}
		present[a.IP] = struct{}{}
		next = append(next, lb.Address{Name: uniqueName(names, a), IP: a.IP})
		c.add++
	}
	slices.SortFunc(next[kept:], func(a, b lb.Address) int { return cmp.Compare(a.Name, b.Name) })
	if !c.none() {
		c.next.Addresses = next
		return c
	}
	for ip := range written { // none of those that nobody wants stands in the pool
		if _, wantedHere := want[ip]; !wantedHere {
			c.unseen = true
		}
	}
	return c
}

// uniqueName returns the address's name, or one made from it where an entry that
// stays already has that name: Azure refuses two entries of one name
// (DuplicateResourceName) and compares names without regard to case.
func uniqueName(taken map[string]struct{}, a lb.Address) string {
	name := a.Name
	for i := 0; ; i++ {
		if _, ok := taken[strings.ToLower(name)]; !ok {
			taken[strings.ToLower(name)] = struct{}{}
			return name
		}
		name = a.Name + "-" + strings.NewReplacer(".", "-", ":", "-").Replace(a.IP.String())
		if i > 0 {
			name += "-" + strconv.Itoa(i)
		}
	}
}

// shows reports whether got holds exactly the addresses of put. Azure has been seen
// to report success and to leave a pool empty, so a write is done only when what
// came back shows it.
func shows(got, put lb.Pool) bool {
	return slices.Equal(sortedIPs(got.Addresses), sortedIPs(put.Addresses))
}

func sortedIPs(addresses []lb.Address) []netip.Addr {
	ips := make([]netip.Addr, len(addresses))
	for i, a := range addresses {
		ips[i] = a.IP
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}
