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

// Change is what apply found to do.
type Change struct {
	// Next is the pool as it shall become; equal to the observed one if nothing
	// is to be written.
	Next lb.Pool
	// add, remove and alter count addresses; alter those that change their admin state.
	add, remove, alter int
	Foreign            int
	// states are the admin states of next that are ours: Down, or empty for one that is
	// taken back.
	states map[netip.Addr]string
	// down are the addresses that are Down by us afterwards; downed and restored are those
	// that become so, or are taken back.
	down, Downed, restored []netip.Addr
	// added are the addresses that were not there, removed those that do not belong there, and foreign
	// those of others, as far as they are addresses.
	added, removed, foreign []netip.Addr
	// compared is true once the pool was compared with what is wanted.
	compared bool
	// unseen is true if there is nothing to do, and yet the ledger holds an address
	// that is neither wanted nor in the pool, or one as Down that is neither: a write of
	// ours may still be on its way.
	unseen bool
	// joinable is true of a pool that others fill and empty meanwhile: of it a write brings admin
	// states alone.
	joinable bool
}

func (c Change) none() bool { return c.add == 0 && c.remove == 0 && c.alter == 0 }

// apply computes what a pool has to become: the wanted addresses, and of the
// others those that are not ours. Addresses are compared by IP. An entry that
// stays keeps its name and its place, so that a write changes no more than it must,
// and its admin state, unless that is ours.
func apply(observed lb.Pool, wanted []lb.Address, has ours) Change {
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
		_, mine := has.written[a.IP]
		_, twice := present[a.IP]
		switch {
		case mine && !wantedHere, wantedHere && twice:
			c.remove++
			c.removed = append(c.removed, a.IP)
			continue
		case !wantedHere:
			c.Foreign++
			c.foreign = append(c.foreign, a.IP)
		case has.down != nil:
			a.AdminState = c.direct(a, state, has.down)
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
		if has.down != nil && a.AdminState == lb.Down {
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
	c.unseen = missing(has, want)
	return c
}

// direct returns the admin state of an address that stays. What somebody else set Down
// stays so, and is not ours to take back.
func (c *Change) direct(a lb.Address, state string, down map[netip.Addr]struct{}) string {
	_, byUs := down[a.IP]
	isDown, toBe := a.AdminState == lb.Down, state == lb.Down
	switch {
	case toBe && !isDown:
		c.alter++
		c.takeDown(a.IP)
		return lb.Down
	case toBe && byUs:
		c.down = append(c.down, a.IP)
		c.state(a.IP, lb.Down)
	case isDown && byUs && !toBe:
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

// missing reports whether a pool that is as it has to be lacks something that the ledger
// holds.
func missing(has ours, want map[netip.Addr]string) bool {
	for ip := range has.written {
		if _, wanted := want[ip]; !wanted {
			return true
		}
	}
	for ip := range has.down {
		if want[ip] != lb.Down {
			return true
		}
	}
	return false
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

// ShownBy reports whether got holds exactly the addresses that were written, and has the
// admin states of those that are ours. Azure has been seen to report success and to leave a
// pool empty, so a write is done only when what came back shows it.
func (c Change) ShownBy(got lb.Pool) bool {
	for _, a := range got.Addresses {
		if state, mine := c.states[a.IP]; mine && (state == lb.Down) != (a.AdminState == lb.Down) {
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

// sorted returns the addresses in order, each once.
func sorted(ips []netip.Addr) []netip.Addr {
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}
