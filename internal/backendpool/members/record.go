// SPDX-License-Identifier: Apache-2.0

// Package members has the status of a BackendPool speak of members: which are on record as Weir's, which
// are Down, and which keep the pool from being level.
//
//	record.go   addresses on record, and those that are Down
//	instances.go instances of uniform scale sets, by machine
//	unusable.go nodes whose machine cannot join
//	unite.go    what several processes have recorded, together
//	stake.go    what a change is about
//	words.go    sentences for people
//	differs.go  which are missing, surplus or foreign
package members

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/once"
	"weir.dev/weir/internal/words"
)

// Down returns the addresses that a status says are Down by us.
func Down(down []v1alpha1.DownAddress) []netip.Addr {
	names := make([]string, len(down))
	for i, d := range down {
		names[i] = d.Address
	}
	return Parse(names)
}

// OnRecord returns what a status has on record of a pool.
func OnRecord(s *v1alpha1.BackendPoolStatus) membership.OnRecord {
	has := membership.OnRecord{Written: Parse(s.WrittenAddresses), Down: make(map[netip.Addr]membership.DownRecord, len(s.Down))}
	for _, d := range s.Down {
		if ip, err := netip.ParseAddr(d.Address); err == nil {
			has.Down[ip] = membership.DownRecord{Since: d.Since.Time, Why: d.Reason}
		}
	}
	return has
}

// SetDown has a status say which addresses are Down by us.
func SetDown(s *v1alpha1.BackendPoolStatus, ips []netip.Addr, set membership.Set, now metav1.Time) {
	s.Down, s.DownCount = downNow(s.Down, ips, set, now), nil
	if len(s.Down) > 0 {
		s.DownCount = new(int32(len(s.Down))) //nolint:gosec // a pool has at most some thousands
	}
}

// downNow says which addresses are Down by us, why, and since when. The node and the reason
// of one that the members do not speak of any more stay.
func downNow(before []v1alpha1.DownAddress, ips []netip.Addr, set membership.Set, now metav1.Time) []v1alpha1.DownAddress {
	var down []v1alpha1.DownAddress
	for _, ip := range ips {
		d := v1alpha1.DownAddress{Address: ip.String(), Since: now}
		if i := slices.IndexFunc(before, func(b v1alpha1.DownAddress) bool { return b.Address == d.Address }); i >= 0 {
			d = before[i]
		}
		if i := slices.IndexFunc(set.Draining, func(m membership.Drain) bool { return m.IP == ip }); i >= 0 {
			d.Node, d.Reason = set.Draining[i].Node, words.Sentence(set.Draining[i].Why, words.MaxCode)
		}
		down = append(down, d)
	}
	return down
}

// Parse reads a status; what is no address was not written by Weir.
func Parse(written []string) []netip.Addr {
	ips := make([]netip.Addr, 0, len(written))
	for _, s := range written {
		if ip, err := netip.ParseAddr(s); err == nil {
			ips = append(ips, ip)
		}
	}
	return ips
}

// Format writes addresses into a status.
func Format(ips []netip.Addr) []string {
	out := make([]string, len(ips))
	for i, ip := range ips {
		out[i] = once.Text(ip.String()) // a thousand pools have the addresses of the same nodes
	}
	return out
}
