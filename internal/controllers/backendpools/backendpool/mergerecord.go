// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"slices"

	"weir.dev/weir/api/v1alpha1"
)

// MergeRecord merges the record of another status into s. Otherwise addresses written by another process would
// become foreign. The next attempt removes surplus addresses.
func MergeRecord(s, other *v1alpha1.BackendPoolStatus) {
	if s.PoolID == "" {
		s.PoolID = other.PoolID
	}
	addresses := append(ParseAddresses(s.WrittenAddresses), ParseAddresses(other.WrittenAddresses)...)
	slices.SortFunc(addresses, netip.Addr.Compare)
	if addresses = slices.Compact(addresses); len(addresses) > len(s.WrittenAddresses) {
		s.WrittenAddresses = FormatAddresses(addresses)
	}
	s.WrittenInstances = mergeInstances(s.WrittenInstances, other.WrittenInstances)
	for _, d := range other.Down {
		if !slices.ContainsFunc(s.Down, func(known v1alpha1.DownAddress) bool { return known.Address == d.Address }) {
			s.Down = append(s.Down, d)
		}
	}
	if len(s.Down) > 0 {
		s.DownCount = new(int32(len(s.Down))) //nolint:gosec // a pool has at most some thousands
	}
}
