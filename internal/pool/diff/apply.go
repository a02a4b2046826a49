// SPDX-License-Identifier: Apache-2.0

// Package diff decides what an attempt writes to a backend pool, and what Azure's response means. The caller reads,
// persists the Intent, and writes the pool. Memory keeps what is known of lost writes, Down addresses and conflicts.
package diff

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
	Next         lb.Pool
	ForeignCount int
	updateCount  int
	// managedStates are the admin states that Weir manages in Next; empty is reset.
	managedStates                     map[netip.Addr]string
	managedDown, MarkedDown, markedUp []netip.Addr
	addedIPs, removedIPs, foreignIPs  []netip.Addr
	isCompared                        bool
	// hasExtraRecords is true if the pool is in sync but the record has further addresses: a write may be in flight.
	hasExtraRecords bool
	// statesOnly is true if machines' own writes change the members.
	statesOnly bool
}

// IsEmpty reports whether nothing changes.
func (c Change) IsEmpty() bool {
	return c.updateCount == 0 && (c.statesOnly || len(c.addedIPs)+len(c.removedIPs) == 0)
}

// computeChange keeps foreign addresses. Remaining members keep their name, their position, and an admin state that Weir
// does not manage.
func computeChange(observed lb.Pool, wanted []lb.Address, managed managedSets, mark string) Change {
	want := statesByIP(wanted)
	c := Change{Next: observed, isCompared: true}
	next := make([]lb.Address, 0, len(observed.Addresses)+len(wanted))
	present := make(map[netip.Addr]struct{}, len(observed.Addresses))
	names := make(map[string]struct{}, len(observed.Addresses))
	for _, a := range observed.Addresses {
		state, wantedHere := want[a.IP]
		_, isManaged := managed.written[a.IP]
		_, duplicate := present[a.IP]
		switch {
		case isManaged && !wantedHere, wantedHere && duplicate:
			c.removedIPs = append(c.removedIPs, a.IP)
			continue
		case !wantedHere:
			c.ForeignCount++
			c.foreignIPs = append(c.foreignIPs, a.IP)
		case managed.down != nil:
			a.AdminState = c.setAdminState(a, state, managed.down)
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
		joins := lb.Address{Name: uniqueName(names, a, mark), IP: a.IP}
		if managed.down != nil && a.AdminState == lb.Down {
			joins.AdminState = lb.Down
			c.markDown(a.IP)
		}
		next = append(next, joins)
		c.addedIPs = append(c.addedIPs, a.IP)
	}
	slices.SortFunc(next[kept:], func(a, b lb.Address) int { return cmp.Compare(a.Name, b.Name) })
	if !c.IsEmpty() {
		c.Next.Addresses = next
		return c
	}
	c.hasExtraRecords = exceedsPool(managed, want)
	return c
}

// setAdminState never resets a Down that Weir did not set.
func (c *Change) setAdminState(a lb.Address, state string, down map[netip.Addr]struct{}) string {
	_, byWeir := down[a.IP]
	isDown, wantDown := a.AdminState == lb.Down, state == lb.Down
	switch {
	case wantDown && !isDown:
		c.updateCount++
		c.markDown(a.IP)
		return lb.Down
	case wantDown && byWeir:
		c.managedDown = append(c.managedDown, a.IP)
		c.recordState(a.IP, lb.Down)
	case isDown && byWeir && !wantDown:
		c.updateCount++
		c.markedUp = append(c.markedUp, a.IP)
		c.recordState(a.IP, "")
		return lb.None
	}
	return a.AdminState
}

func (c *Change) markDown(ip netip.Addr) {
	c.managedDown, c.MarkedDown = append(c.managedDown, ip), append(c.MarkedDown, ip)
	c.recordState(ip, lb.Down)
}

func (c *Change) recordState(ip netip.Addr, state string) {
	if c.managedStates == nil {
		c.managedStates = map[netip.Addr]string{}
	}
	c.managedStates[ip] = state
}

func exceedsPool(managed managedSets, want map[netip.Addr]string) bool {
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

// uniqueName derives an unused name: Azure rejects duplicates, ignoring case (DuplicateResourceName).
func uniqueName(taken map[string]struct{}, a lb.Address, mark string) string {
	name := markName(a.Name, mark)
	for i := 0; ; i++ {
		if _, ok := taken[strings.ToLower(name)]; !ok {
			taken[strings.ToLower(name)] = struct{}{}
			return name
		}
		suffix := "-" + strings.NewReplacer(".", "-", ":", "-").Replace(a.IP.String())
		if i > 0 {
			suffix += "-" + strconv.Itoa(i)
		}
		name = a.Name + suffix
		if mark != "" {
			room := maxAddressName - len(markPrefix) - markLength - len(suffix)
			name = markName(a.Name[:min(len(a.Name), room)]+suffix, mark)
		}
	}
}

// IsAppliedIn reports whether got shows what was written: Azure has been seen to report success and leave a pool empty.
func (c Change) IsAppliedIn(got lb.Pool) bool {
	for _, a := range got.Addresses {
		if state, isManaged := c.managedStates[a.IP]; isManaged && (state == lb.Down) != (a.AdminState == lb.Down) {
			return false
		}
	}
	return c.statesOnly || slices.Equal(sortedIPs(got.Addresses), sortedIPs(c.Next.Addresses))
}

func statesByIP(addresses []lb.Address) map[netip.Addr]string {
	states := make(map[netip.Addr]string, len(addresses))
	for _, a := range addresses {
		states[a.IP] = a.AdminState
	}
	return states
}

func sortedIPs(addresses []lb.Address) []netip.Addr {
	ips := make([]netip.Addr, len(addresses))
	for i, a := range addresses {
		ips[i] = a.IP
	}
	slices.SortFunc(ips, netip.Addr.Compare)
	return ips
}

func sortIPs(ips []netip.Addr) []netip.Addr {
	slices.SortFunc(ips, netip.Addr.Compare)
	return slices.Compact(ips)
}

// MaxListed is the number of members listed per kind.
const MaxListed = 50

// Difference is how a pool differs from its desired state.
type Difference struct {
	Missing, Unwanted, Foreign MemberList
}

// MemberList is a count with the first addresses. Network interfaces of other owners have none.
type MemberList struct {
	Count  int
	Listed []netip.Addr
}

func newMemberList(ips []netip.Addr, count int) MemberList {
	ips = sortIPs(slices.Clone(ips))
	return MemberList{max(count, len(ips)), slices.Clone(ips[:min(len(ips), MaxListed)])}
}

// Difference returns nil if the pool was not compared. Like DesiredCount it does not count machines that cannot join.
func (r Result) Difference() *Difference {
	c := r.Change
	if !c.isCompared {
		return nil
	}
	unusable := r.unusableIPs()
	return &Difference{
		Missing: newMemberList(slices.DeleteFunc(slices.Clone(c.addedIPs), func(ip netip.Addr) bool { return unusable[ip] }), 0), Unwanted: newMemberList(c.removedIPs, 0), Foreign: newMemberList(c.foreignIPs, c.ForeignCount),
	}
}

func missingIPs(wanted, present []lb.Address) (ips []netip.Addr) {
	states := statesByIP(present)
	for _, a := range wanted {
		if _, ok := states[a.IP]; !ok {
			ips = append(ips, a.IP)
		}
	}
	return ips
}
