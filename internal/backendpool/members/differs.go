// SPDX-License-Identifier: Apache-2.0

package members

import (
	"net/netip"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/once"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// Differ sets status.members to the members that differ, as last read. It is nil if the pool is in sync,
// missing in Azure or not writable; an attempt that read nothing does not change it.
func Differ(s *v1alpha1.BackendPoolStatus, r poolupdate.Report, nodeAt func(netip.Addr) string) {
	switch {
	case r.Settled, r.Outcome == poolwrite.Stale, r.Outcome == poolwrite.Refused:
		s.Members = nil
	case r.Differs != nil:
		s.Members = &v1alpha1.MembersNotLevel{
			Missing: someMembers(r.Differs.Missing, nodeAt), Surplus: someMembers(r.Differs.Surplus, nodeAt), Foreign: someMembers(r.Differs.Foreign, nodeAt),
		}
		if *s.Members == (v1alpha1.MembersNotLevel{}) {
			s.Members = nil
		}
	}
}

// someMembers adds node names to members; nil if there are none.
func someMembers(m poolwrite.Members, nodeAt func(netip.Addr) string) *v1alpha1.SomeMembers {
	if m.Count == 0 {
		return nil
	}
	some := &v1alpha1.SomeMembers{Count: int32(m.Count)} //nolint:gosec // a pool has at most some thousands
	for _, ip := range m.Named {
		some.Named = append(some.Named, v1alpha1.Member{Node: nodeAt(ip), Address: once.Text(ip.String())})
	}
	return some
}
