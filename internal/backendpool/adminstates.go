// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/backendpool/members"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// Turned lists the admin state changes of an attempt in one pool, by node.
type Turned struct {
	Down, Back []string
	// Owed nodes should have changed, but the attempt failed.
	Owed []string
}

// AdminFails reports whether an attempt failed to set admin states.
func AdminFails(r poolupdate.Report) bool {
	return r.AdminTried && (r.Outcome == poolwrite.Retriable || r.Outcome == poolwrite.Terminal)
}

func (e *Entry) turnedBy(r poolupdate.Report, set membership.Set) Turned {
	var t Turned
	for _, a := range set.Addresses {
		switch {
		case slices.Contains(r.Downed, a.IP):
			t.Down = append(t.Down, a.Name)
		case slices.Contains(r.Restored, a.IP):
			t.Back = append(t.Back, a.Name)
		}
	}
	if AdminFails(r) {
		down, back := e.Owes(set)
		t.Owed = slices.Concat(down, back)
	}
	return t
}

// Owes returns the members with a wrong admin state, as far as known: those that must become Down, and those
// that Weir set Down and that must come back up.
func (e *Entry) Owes(set membership.Set) (down, back []string) {
	e.mu.Lock()
	shown := e.shownDown // replaced, never modified
	current := shown
	if shown == nil {
		current = setOf(members.Down(e.status.Down))
	}
	e.mu.Unlock()
	drain := drainingIn(set)
	for _, a := range set.Addresses {
		_, drains := drain[a.IP]
		_, isShown := shown[a.IP]
		_, isDown := current[a.IP]
		switch {
		case drains && !isShown:
			down = append(down, a.Name)
		case !drains && isDown:
			back = append(back, a.Name)
		}
	}
	return down, back
}

func (e *Entry) shows(set membership.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shownDown = drainingIn(set)
}

// drainingIn returns the addresses that must be Down; never nil.
func drainingIn(set membership.Set) map[netip.Addr]struct{} {
	ips := make([]netip.Addr, len(set.Draining))
	for i, d := range set.Draining {
		ips[i] = d.IP
	}
	return setOf(ips)
}

// none is the shared empty set. Do not modify it.
var none = map[netip.Addr]struct{}{}

func setOf(ips []netip.Addr) map[netip.Addr]struct{} {
	if len(ips) == 0 {
		return none
	}
	set := make(map[netip.Addr]struct{}, len(ips))
	for _, ip := range ips {
		set[ip] = struct{}{}
	}
	return set
}
