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

func (a addresses) equalSet(b addresses) bool {
	return len(a) == len(b) && len(a.subtractSet(b)) == 0
}

// subtractSet returns the addresses of a that are not in b, sorted.
func (a addresses) subtractSet(b addresses) []netip.Addr {
	var out []netip.Addr
	for ip := range a {
		if _, ok := b[ip]; !ok {
			out = append(out, ip)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return out
}

// writeDelay is how long an address must have been desired before its removal counts as a loss: a
// write sent earlier may still remove it. The controller may also see a change that much before this observer does.
const writeDelay = 2 * time.Second

// poolHistory compares the desired and actual members of one pool over time. Its input is in time
// order; it reads no clock. It does not depend on the controller's reports.
type poolHistory struct {
	// foreign addresses are present from the start and must remain.
	foreign addresses

	desired    addresses
	since      map[netip.Addr]time.Time // when each desired address became desired
	actual     addresses                // all members, including foreign ones
	isUpdating bool                     // an Azure operation is in progress

	changes   int
	pending   []change // changes not yet in Azure
	syncTimes []syncTime
	inStorm   bool // a storm is in progress
	// removed holds when desired addresses were removed that are still desired and not back.
	removed map[netip.Addr]time.Time
	// Removed desired addresses, and removed foreign ones.
	removedCount, foreignRemoved int
}

// change is a change of the desired members.
type change struct {
	at      time.Time
	inStorm bool
}

// syncTime is the time until a change was in Azure.
type syncTime struct {
	time.Duration
	inStorm bool
}

func newPoolHistory(foreign addresses) *poolHistory {
	return &poolHistory{foreign: foreign, desired: addresses{}, since: map[netip.Addr]time.Time{}, removed: map[netip.Addr]time.Time{}, actual: maps.Clone(foreign)}
}

func (h *poolHistory) recordDesired(now time.Time, wanted addresses) {
	if h.desired.equalSet(wanted) {
		return
	}
	for _, ip := range h.desired.subtractSet(wanted) {
		delete(h.since, ip)
		if at, ok := h.removed[ip]; ok && now.Sub(at) > writeDelay {
			h.removedCount++
		}
		delete(h.removed, ip)
	}
	for _, ip := range wanted.subtractSet(h.desired) {
		h.since[ip] = now
	}
	h.desired = maps.Clone(wanted)
	h.changes++
	h.pending = append(h.pending, change{now, h.inStorm})
}

// recordActual records the actual members. A pool has caught up when Azure is idle and the pool holds what
// is desired now; all pending changes end there.
func (h *poolHistory) recordActual(now time.Time, shown addresses, busy bool) {
	for _, ip := range h.actual.subtractSet(shown) {
		since, wanted := h.since[ip]
		_, foreign := h.foreign[ip]
		switch {
		case foreign:
			h.foreignRemoved++
		case wanted && now.Sub(since) > writeDelay:
			h.removed[ip] = now
		}
	}
	for ip := range h.removed {
		if _, ok := shown[ip]; ok {
			h.removedCount++
			delete(h.removed, ip)
		}
	}
	h.actual, h.isUpdating = shown, busy
	if !h.isInSync() {
		return
	}
	h.syncTimes, h.pending = h.allSyncTimes(now), nil
}

func (h *poolHistory) allSyncTimes(now time.Time) []syncTime {
	times := slices.Clone(h.syncTimes)
	for _, c := range h.pending {
		times = append(times, syncTime{now.Sub(c.at), c.inStorm})
	}
	return times
}

// syncTimesAt returns the lags of the changes in a storm, or of all others; pending changes last until
// now.
func (h *poolHistory) syncTimesAt(now time.Time, storm bool) []time.Duration {
	var lags []time.Duration
	for _, l := range h.allSyncTimes(now) {
		if l.inStorm == storm {
			lags = append(lags, l.Duration)
		}
	}
	return lags
}

// difference is the difference between desired and actual members.
type difference struct {
	missing, extra, foreignMissing []netip.Addr
}

func (h *poolHistory) memberDiff() difference {
	expected := maps.Clone(h.desired)
	maps.Copy(expected, h.foreign)
	return difference{
		missing:        h.desired.subtractSet(h.actual),
		extra:          h.actual.subtractSet(expected),
		foreignMissing: h.foreign.subtractSet(h.actual),
	}
}

func (h *poolHistory) isInSync() bool {
	g := h.memberDiff()
	return !h.isUpdating && len(g.missing)+len(g.extra)+len(g.foreignMissing) == 0
}

// durationQuantile returns the p-quantile of the durations by nearest rank; 0 if there are none.
func durationQuantile(durations []time.Duration, p float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
