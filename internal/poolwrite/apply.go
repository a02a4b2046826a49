// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Change is the difference to write.
type Change struct {
	// Next is the desired pool.
	Next lb.Pool
	// Numbers of addresses; the last one is of changed admin states.
	add, remove, alter int
	Foreign            int
	// states are the admin states that Weir manages in Next; empty is reset.
	states map[netip.Addr]string
	// down are Weir's Down addresses, followed by those that become Down and those that are reset.
	down, Downed, restored []netip.Addr
	// Addresses that are missing, surplus, or foreign.
	added, removed, foreign []netip.Addr
	// compared is false if the pool was not compared.
	compared bool
	// unseen is true for a pool in sync with additional records: a write may be in flight.
	unseen bool
	// joinable is true if machines' own writes change the members, and a pool write only sets admin
	// states.
	joinable bool
}

func (c Change) none() bool { return c.add == 0 && c.remove == 0 && c.alter == 0 }

// apply computes the wanted plus the foreign addresses, compared by IP. Remaining entries keep
// their name, position and unmanaged admin state, to keep the write minimal.
func apply(observed lb.Pool, wanted []lb.Address, managed ours) Change {
	want := make(map[netip.Addr]string, len(wanted))
	for _, a := range wanted {
		want[a.IP] = a.AdminState
	}
	c := Change{Next: observed, compared: true}
	next := make([]lb.Address, 0, len(observed.Addresses)+len(wanted))
	present := make(map[netip.Addr]struct{}, len(observed.Addresses))
	names := make(map[string]struct{}, len(observed.Addresses))
	for _, a := range observed.Addresses {
		state, wantedHere := want[a.IP]
		_, isManaged := managed.written[a.IP]
		_, duplicate := present[a.IP]
		switch {
		case isManaged && !wantedHere, wantedHere && duplicate:
			c.remove++
			c.removed = append(c.removed, a.IP)
			continue
		case !wantedHere:
			c.Foreign++
			c.foreign = append(c.foreign, a.IP)
		case managed.down != nil:
			a.AdminState = c.direct(a, state, managed.down)
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
		joins := lb.Address{Name: uniqueName(names, a), IP: a.IP}
		if managed.down != nil && a.AdminState == lb.Down {
			joins.AdminState = lb.Down
			c.takeDown(a.IP)
		}
		next = append(next, joins)
		c.add++
		c.added = append(c.added, a.IP)
	}
	slices.SortFunc(next[kept:], func(a, b lb.Address) int { return cmp.Compare(a.Name, b.Name) })
	if !c.none() {
		c.Next.Addresses = next
		return c
	}
	c.unseen = missing(managed, want)
	return c
}

// direct returns the admin state of a remaining address. It never resets a Down that Weir did not
// set.
func (c *Change) direct(a lb.Address, state string, down map[netip.Addr]struct{}) string {
	_, byWeir := down[a.IP]
	isDown, wantDown := a.AdminState == lb.Down, state == lb.Down
	switch {
	case wantDown && !isDown:
		c.alter++
		c.takeDown(a.IP)
		return lb.Down
	case wantDown && byWeir:
		c.down = append(c.down, a.IP)
		c.state(a.IP, lb.Down)
	case isDown && byWeir && !wantDown:
		c.alter++
		c.restored = append(c.restored, a.IP)
		c.state(a.IP, "")
		return lb.None
	}
	return a.AdminState
}

func (c *Change) takeDown(ip netip.Addr) {
	c.down, c.Downed = append(c.down, ip), append(c.Downed, ip)
	c.state(ip, lb.Down)
}

func (c *Change) state(ip netip.Addr, state string) {
	if c.states == nil {
		c.states = map[netip.Addr]string{}
	}
	c.states[ip] = state
}

// missing reports whether the record has more than a pool in sync.
func missing(managed ours, want map[netip.Addr]string) bool {
	for ip := range managed.written {
		if _, wanted := want[ip]; !wanted {
			return true
		}
	}
	for ip := range managed.down {
		if want[ip] != lb.Down {
			return true
		}
	}
	return false
}

// uniqueName returns the address's name, or derives an unused one: Azure rejects duplicates
// (DuplicateResourceName), ignoring case.
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

// ShownBy reports whether got has what was written. Azure has been seen to report success and leave
// a pool empty.
func (c Change) ShownBy(got lb.Pool) bool {
	for _, a := range got.Addresses {
		if state, isManaged := c.states[a.IP]; isManaged && (state == lb.Down) != (a.AdminState == lb.Down) {
			return false
		}
	}
	return c.joinable || slices.Equal(sortedIPs(got.Addresses), sortedIPs(c.Next.Addresses))
}

func sortedIPs(addresses []lb.Address) []netip.Addr {
	ips := make([]netip.Addr, len(addresses))
	for i, a := range addresses {
		ips[i] = a.IP
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}

func sorted(ips []netip.Addr) []netip.Addr {
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}
