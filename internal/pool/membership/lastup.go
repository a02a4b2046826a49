// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"slices"
	"time"
)

// KeepLastUp returns the set in which recorded members that drain remain up while no other recorded member is up. It ends
// once another has been up for ProbeWait, or after LeavingTimeout. It does not apply to members that are Down already,
// drain at once, or were not written by Weir. records are those of the pool, next replaces them. recheckAt is when the next member changes; zero if none does.
func (s Set) KeepLastUp(records map[netip.Addr]WaitRecord, record MemberRecord, now time.Time) (kept Set, next map[netip.Addr]WaitRecord, recheckAt time.Time) {
	var up []Drain
	othersUp := s.hasRecordedUp(record)
	for _, d := range s.Draining {
		if _, isDown := record.Down[d.IP]; isDown || d.AtOnce || !slices.Contains(record.Written, d.IP) {
			continue
		}
		record := records[d.IP].update(othersUp, now)
		if next == nil {
			next = map[netip.Addr]WaitRecord{}
		}
		next[d.IP] = record
		until := earlier(record.Since.Add(LeavingTimeout), record.DownAt)
		if !now.Before(until) {
			continue
		}
		up, recheckAt = append(up, d), earlier(recheckAt, until)
	}
	if len(up) == 0 {
		return s, next, recheckAt
	}
	s = s.keepUp(up)
	s.LastUp = up
	return s, next, recheckAt
}

// MayKeepLastUp reports whether a member may drain later.
func (s Set) MayKeepLastUp() bool {
	return slices.ContainsFunc(s.Draining, func(d Drain) bool { return !d.AtOnce })
}
