// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// StartTimeout is how long a node may be a member while its endpoints start and none is ready.
const StartTimeout = 10 * time.Minute

// EarlyJoin is whether nodes join a pool before an endpoint on them is ready. They may only where the probe of every
// rule reports whether this Service serves on the node.
type EarlyJoin int

const (
	// JoinWhenReady is for pools without such probes: a node joins once an endpoint on it is ready.
	JoinWhenReady EarlyJoin = iota
	// JoinWhileStarting is for pools with such probes: a node joins while its endpoints start.
	JoinWhileStarting
	// JoinUnknown is for pools before their rules are read: recorded members stay, and no node joins early.
	JoinUnknown
)

// StartRecord is kept for a node without a ready endpoint. Since is when its first endpoint started; GoneAt is when its
// last endpoint went away, or zero while it has one.
type StartRecord struct{ Since, GoneAt time.Time }

// JoinEarly returns the set plus the nodes that start, until StartTimeout after the first endpoint there. A node that
// timed out joins once an endpoint is ready. starts are the records of the pool, next replaces them. recheckAt is when
// the next node times out; zero if none does.
func (s Set) JoinEarly(starts map[netip.Addr]StartRecord, record MemberRecord, now time.Time) (joined Set, next map[netip.Addr]StartRecord, recheckAt time.Time) {
	next = s.nextStarts(starts, now)
	if joined = s; s.EarlyJoin == JoinWhenReady {
		return joined, next, recheckAt
	}
	written := make(map[netip.Addr]struct{}, len(record.Written))
	for _, ip := range record.Written {
		written[ip] = struct{}{}
	}
	var early []lb.Address
	for _, a := range s.Starting {
		until := next[a.IP].Since.Add(StartTimeout)
		_, isMember := written[a.IP]
		if !now.Before(until) || s.EarlyJoin == JoinUnknown && !isMember {
			continue
		}
		if early = append(early, a); recheckAt.IsZero() || until.Before(recheckAt) {
			recheckAt = until
		}
	}
	if len(early) == 0 {
		return joined, next, recheckAt
	}
	joined.Addresses = slices.Concat(joined.Addresses, early)
	return joined.sortByName(), next, recheckAt
}

// nextStarts adds the nodes that start and drops those with an endpoint that serves, and those that have had no
// endpoint for StartTimeout: a recreated pod does not restart the time.
func (s Set) nextStarts(starts map[netip.Addr]StartRecord, now time.Time) map[netip.Addr]StartRecord {
	if len(starts)+len(s.Starting) == 0 {
		return nil
	}
	next := maps.Clone(starts)
	if next == nil {
		next = make(map[netip.Addr]StartRecord, len(s.Starting))
	}
	for _, a := range s.Addresses {
		delete(next, a.IP)
	}
	for ip, record := range next {
		if record.GoneAt.IsZero() {
			record.GoneAt = now
		}
		if next[ip] = record; !now.Before(record.GoneAt.Add(StartTimeout)) {
			delete(next, ip)
		}
	}
	for _, a := range s.Starting {
		record, known := next[a.IP]
		if !known {
			record.Since = now
		}
		record.GoneAt = time.Time{}
		next[a.IP] = record
	}
	return next
}
