// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/updater"
)

// AdminChanges lists the admin state changes of an attempt in one pool, by node.
type AdminChanges struct {
	Down, Back []string
	// Failed nodes should have changed, but the attempt failed.
	Failed []string
}

// HasAdminFailure reports whether an attempt failed to set admin states.
func HasAdminFailure(r updater.Report) bool {
	return r.AdminAttempted && (r.Outcome == diff.Retriable || r.Outcome == diff.Terminal)
}

func (e *Entry) adminChanges(r updater.Report, set membership.Set) AdminChanges {
	var t AdminChanges
	for _, a := range set.Addresses {
		switch {
		case slices.Contains(r.MarkedDown, a.IP):
			t.Down = append(t.Down, a.Name)
		case slices.Contains(r.MarkedUp, a.IP):
			t.Back = append(t.Back, a.Name)
		}
	}
	if HasAdminFailure(r) {
		down, back := e.PendingAdminChanges(set)
		t.Failed = slices.Concat(down, back)
	}
	return t
}

// PendingAdminChanges returns the members with a wrong admin state, as far as known: those that must become Down, and those
// that Weir set Down and that must come back up.
func (e *Entry) PendingAdminChanges(set membership.Set) (down, back []string) {
	e.mu.Lock()
	shown := e.observedDown // replaced, never modified
	current := shown
	if shown == nil {
		current = setOf(ParseDown(e.status.Down))
	}
	e.mu.Unlock()
	drain := drainingAddresses(set)
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

func (e *Entry) recordDown(set membership.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.observedDown = drainingAddresses(set)
}

// drainingAddresses returns the addresses that must be Down; never nil.
func drainingAddresses(set membership.Set) map[netip.Addr]struct{} {
	ips := make([]netip.Addr, len(set.Draining))
	for i, d := range set.Draining {
		ips[i] = d.IP
	}
	return setOf(ips)
}

// emptyAddressSet is the shared empty set. Do not modify it.
var emptyAddressSet = map[netip.Addr]struct{}{}

func setOf(ips []netip.Addr) map[netip.Addr]struct{} {
	if len(ips) == 0 {
		return emptyAddressSet
	}
	set := make(map[netip.Addr]struct{}, len(ips))
	for _, ip := range ips {
		set[ip] = struct{}{}
	}
	return set
}
