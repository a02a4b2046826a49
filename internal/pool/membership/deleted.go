// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// ProbeWait is two intervals of the default probe. The member of a deleted node is Down for this long before it leaves,
// and another member must be up for this long before the last one becomes Down.
const ProbeWait = 10 * time.Second

// ReasonDeleted is the Down reason of such a member.
const ReasonDeleted = "deleted"

// WaitRecord records since when a member is to leave, and when it may become Down: zero while no other member is up.
type WaitRecord struct{ Since, DownAt time.Time }

// RetainDeleted returns the set in which recorded members without a node are Down before they leave. While no other
// recorded member is up they stay up, until LeavingTimeout. hasNode reports whether a node has the address. records are
// those of the pool, next replaces them. recheckAt is when the next member changes; zero if none does.
func (s Set) RetainDeleted(records map[netip.Addr]WaitRecord, recorded MemberRecord, hasNode func(netip.Addr) bool, now time.Time) (kept Set, next map[netip.Addr]WaitRecord, recheckAt time.Time) {
	kept = s
	if !s.DeletedMayServe {
		return kept, nil, recheckAt
	}
	othersUp := s.hasRecordedUp(recorded)
	for _, ip := range recorded.Written {
		if s.hasAddress(ip) || hasNode(ip) {
			continue
		}
		record := records[ip].update(othersUp, now)
		if next == nil {
			next = map[netip.Addr]WaitRecord{}
		}
		next[ip] = record
		down, isDown := recorded.Down[ip]
		until := record.Since.Add(LeavingTimeout)
		if isDown {
			until = down.Since.Add(ProbeWait)
		}
		if !now.Before(until) {
			continue
		}
		switch {
		case isDown || record.DownAt.IsZero():
		case now.Before(record.DownAt):
			until = earlier(until, record.DownAt)
		default:
			down.Reason, isDown = ReasonDeleted, true
		}
		kept = kept.addRetained(Drain{Node: ip.String(), IP: ip, Reason: down.Reason}, isDown)
		recheckAt = earlier(recheckAt, until)
	}
	return kept, next, recheckAt
}

// earlier returns the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// update returns the record as of now. Members that are already up when this one is first to leave need not be up for
// ProbeWait.
func (r WaitRecord) update(othersUp bool, now time.Time) WaitRecord {
	switch {
	case r.Since.IsZero():
		r.Since = now
		if othersUp {
			r.DownAt = now
		}
	case !othersUp:
		r.DownAt = time.Time{}
	case r.DownAt.IsZero():
		r.DownAt = now.Add(ProbeWait)
	}
	return r
}

// hasRecordedUp reports whether a recorded member of the set takes new flows.
func (s Set) hasRecordedUp(record MemberRecord) bool {
	return slices.ContainsFunc(s.Addresses, func(a lb.Address) bool {
		_, isDown := record.Down[a.IP]
		starts := slices.ContainsFunc(s.Starting, func(b lb.Address) bool { return b.IP == a.IP })
		return a.AdminState != lb.Down && !isDown && !starts && slices.Contains(record.Written, a.IP)
	})
}
