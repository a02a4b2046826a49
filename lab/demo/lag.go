// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"
)

// addresses maps IP addresses to display names.
type addresses map[netip.Addr]string

func (a addresses) equal(b addresses) bool {
	return len(a) == len(b) && len(a.minus(b)) == 0
}

// minus returns the addresses of a that are not in b, sorted.
func (a addresses) minus(b addresses) []netip.Addr {
	var out []netip.Addr
	for ip := range a {
		if _, ok := b[ip]; !ok {
			out = append(out, ip)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// inFlight is how long an address must have been desired before its removal counts as a loss: a
// write sent earlier may still remove it.
const inFlight = 2 * time.Second

// poolHistory compares the desired and actual members of one pool over time. Its input is in time
// order; it reads no clock. It does not depend on the controller's reports.
type poolHistory struct {
	// foreign addresses are present from the start and must remain.
	foreign addresses

	wanted addresses
	since  map[netip.Addr]time.Time // when each desired address became desired
	shown  addresses                // all members, including foreign ones
	busy   bool                     // an Azure operation is in progress

	changes int
	pending []change // changes not yet in Azure
	lags    []lag
	storm   bool // a storm is in progress
	// taken counts desired addresses that were removed; foreignGone counts removals of foreign
	// ones.
	taken, foreignGone int
}

// change is a change of the desired members.
type change struct {
	at    time.Time
	storm bool
}

// lag is the time until a change was in Azure.
type lag struct {
	time.Duration
	storm bool
}

func newPoolHistory(foreign addresses) *poolHistory {
	return &poolHistory{foreign: foreign, wanted: addresses{}, since: map[netip.Addr]time.Time{}, shown: maps.Clone(foreign)}
}

// want records the desired members.
func (h *poolHistory) want(now time.Time, wanted addresses) {
	if h.wanted.equal(wanted) {
		return
	}
	for _, ip := range h.wanted.minus(wanted) {
		delete(h.since, ip)
	}
	for _, ip := range wanted.minus(h.wanted) {
		h.since[ip] = now
	}
	h.wanted = maps.Clone(wanted)
	h.changes++
	h.pending = append(h.pending, change{now, h.storm})
}

// show records the actual members. A pool has caught up when Azure is idle and the pool holds what
// is desired now; all pending changes end there.
func (h *poolHistory) show(now time.Time, shown addresses, busy bool) {
	for _, ip := range h.shown.minus(shown) {
		since, wanted := h.since[ip]
		_, foreign := h.foreign[ip]
		switch {
		case foreign:
			h.foreignGone++
		case wanted && now.Sub(since) > inFlight:
			h.taken++
		}
	}
	h.shown, h.busy = shown, busy
	if !h.level() {
		return
	}
	h.lags, h.pending = h.allLags(now), nil
}

func (h *poolHistory) allLags(now time.Time) []lag {
	all := slices.Clone(h.lags)
	for _, c := range h.pending {
		all = append(all, lag{now.Sub(c.at), c.storm})
	}
	return all
}

// lagsAt returns the lags of the changes in a storm, or of all others; pending changes last until
// now.
func (h *poolHistory) lagsAt(now time.Time, storm bool) []time.Duration {
	var lags []time.Duration
	for _, l := range h.allLags(now) {
		if l.storm == storm {
			lags = append(lags, l.Duration)
		}
	}
	return lags
}

// gap is the difference between desired and actual members.
type gap struct {
	missing, surplus, foreignMissing []netip.Addr
}

func (h *poolHistory) gap() gap {
	expected := maps.Clone(h.wanted)
	maps.Copy(expected, h.foreign)
	return gap{
		missing:        h.wanted.minus(h.shown),
		surplus:        h.shown.minus(expected),
		foreignMissing: h.foreign.minus(h.shown),
	}
}

func (h *poolHistory) level() bool {
	g := h.gap()
	return !h.busy && len(g.missing)+len(g.surplus)+len(g.foreignMissing) == 0
}

// percentile returns the p-quantile of the durations by nearest rank; 0 if there are none.
func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
