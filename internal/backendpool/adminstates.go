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

// Turned are the nodes that an attempt turned in one pool.
type Turned struct {
	Down, Back []string
	// Owed are those that it should have turned.
	Owed []string
}

// AdminFails reports whether an attempt failed to set admin states.
func AdminFails(r poolupdate.Report) bool {
	return r.AdminTried && (r.Outcome == poolwrite.Retriable || r.Outcome == poolwrite.Terminal)
}

// turnedBy returns which nodes an attempt turned, and which it should have.
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

// Owes returns the members whose admin state in the pool is another than it has to be, as far
// as is known: those that have to be Down, and those that are Down by us and need not.
func (e *Entry) Owes(set membership.Set) (down, back []string) {
	e.mu.Lock()
	shown := e.shownDown // replaced, never changed
	are := shown
	if shown == nil {
		are = setOf(members.Down(e.status.Down))
	}
	e.mu.Unlock()
	drain := drainingIn(set)
	for _, a := range set.Addresses {
		_, drains := drain[a.IP]
		_, isShown := shown[a.IP]
		_, isDown := are[a.IP]
		switch {
		case drains && !isShown:
			down = append(down, a.Name)
		case !drains && isDown:
			back = append(back, a.Name)
		}
	}
	return down, back
}

// shows keeps which members are Down, whoever set them so, once a pool is level.
func (e *Entry) shows(set membership.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shownDown = drainingIn(set)
}

// drainingIn returns the addresses that are to be Down; never nil.
func drainingIn(set membership.Set) map[netip.Addr]struct{} {
	ips := make([]netip.Addr, len(set.Draining))
	for i, d := range set.Draining {
		ips[i] = d.IP
	}
	return setOf(ips)
}

// none is that of most pools. Nobody changes such a set.
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
