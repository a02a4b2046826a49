// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// SetMemberDiff sets status.members to the members that differ, as last read. It is nil if the pool is in sync,
// missing in Azure or not writable; an attempt that read nothing does not change it.
func SetMemberDiff(s *v1alpha1.BackendPoolStatus, r updater.Report, nodeAt func(netip.Addr) string) {
	switch {
	case r.InSync, r.Outcome == diff.Stale, r.Outcome == diff.Rejected:
		s.Members = nil
	case r.Diff != nil:
		s.Members = &v1alpha1.OutOfSyncMembers{
			Missing: limitedMembers(r.Diff.Missing, nodeAt), Surplus: limitedMembers(r.Diff.Unwanted, nodeAt), Foreign: limitedMembers(r.Diff.Foreign, nodeAt),
		}
		if *s.Members == (v1alpha1.OutOfSyncMembers{}) {
			s.Members = nil
		}
	}
}

// limitedMembers adds node names to members; nil if there are none.
func limitedMembers(m diff.MemberList, nodeAt func(netip.Addr) string) *v1alpha1.MemberSample {
	if m.Count == 0 {
		return nil
	}
	sample := &v1alpha1.MemberSample{Count: int32(m.Count)} //nolint:gosec // a pool has at most some thousands
	for _, ip := range m.Listed {
		sample.Named = append(sample.Named, v1alpha1.Member{Node: nodeAt(ip), Address: metadata.Intern(ip.String())})
	}
	return sample
}
