// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"
)

// addresses is a set of IP addresses, each with the name it goes by.
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

// inFlight is how long an address has to have been wanted before its
// disappearance counts as a loss: a write that was on its way when the address
// became wanted may still take it out.
const inFlight = 2 * time.Second

// poolHistory follows one pool: what the cluster wants in it, and what Azure
// shows. It is fed in the order of time and reads no clock. Its verdicts do not
// depend on what the controller says or counts.
type poolHistory struct {
	// foreign addresses stand in the pool from the start and have to stay.
	foreign addresses

	wanted addresses
	since  map[netip.Addr]time.Time // when a wanted address became wanted
	shown  addresses                // all that Azure shows, foreign ones included
	busy   bool                     // Azure is still working on the pool

	changes int
	pending []change // those that the pool has not caught up with
	lags    []lag
	storm   bool // changes from here on happen in a storm
	// taken counts addresses that were taken out of the pool while the cluster
	// wanted them; foreignGone counts disappearances of foreign ones.
	taken, foreignGone int
}

// change is when the cluster wanted something else.
type change struct {
	at    time.Time
	storm bool
}

// lag is how long the pool took to catch up with a change.
type lag struct {
	time.Duration
	storm bool
}

func newPoolHistory(foreign addresses) *poolHistory {
	return &poolHistory{foreign: foreign, wanted: addresses{}, since: map[netip.Addr]time.Time{}, shown: maps.Clone(foreign)}
}

// want takes note of what the cluster wants from now on.
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

// show takes note of what Azure shows. A pool has caught up when Azure is done
// and it holds what the cluster wants by then: every change since it last had is
// as late as that.
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

// lagsAt returns the lags of the changes in a storm, or of all others; one that the
// pool has not caught up with at now is at least as late as that.
func (h *poolHistory) lagsAt(now time.Time, storm bool) []time.Duration {
	var lags []time.Duration
	for _, l := range h.allLags(now) {
		if l.storm == storm {
			lags = append(lags, l.Duration)
		}
	}
	return lags
}

// gap is how a pool differs from what it has to hold.
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

// percentile returns the smallest of the durations that at least the fraction p
// of them does not exceed; 0 if there are none.
func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
