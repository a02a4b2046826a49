// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/membership"
)

// ParseDown returns the addresses that Weir set Down according to the status.
func ParseDown(down []v1alpha1.DownAddress) []netip.Addr {
	names := make([]string, len(down))
	for i, d := range down {
		names[i] = d.Address
	}
	return ParseAddresses(names)
}

// RecordOf returns the recorded members of a pool.
func RecordOf(s *v1alpha1.BackendPoolStatus) membership.MemberRecord {
	record := membership.MemberRecord{Written: ParseAddresses(s.WrittenAddresses), Down: make(map[netip.Addr]membership.DownRecord, len(s.Down))}
	for _, d := range s.Down {
		if ip, err := netip.ParseAddr(d.Address); err == nil {
			record.Down[ip] = membership.DownRecord{Since: d.Since.Time, Reason: d.Reason}
		}
	}
	return record
}

// SetDown sets the addresses that Weir set Down.
func SetDown(s *v1alpha1.BackendPoolStatus, ips []netip.Addr, set membership.Set, now metav1.Time) {
	s.Down, s.DownCount = downNow(s.Down, ips, set, now), nil
	if len(s.Down) > 0 {
		s.DownCount = new(int32(len(s.Down))) //nolint:gosec // a pool has at most some thousands
	}
}

// downNow returns the Down addresses with node, reason and since. Those no longer in set retain their node
// and reason.
func downNow(before []v1alpha1.DownAddress, ips []netip.Addr, set membership.Set, now metav1.Time) []v1alpha1.DownAddress {
	var down []v1alpha1.DownAddress
	for _, ip := range ips {
		d := v1alpha1.DownAddress{Address: ip.String(), Since: now}
		if i := slices.IndexFunc(before, func(b v1alpha1.DownAddress) bool { return b.Address == d.Address }); i >= 0 {
			d = before[i]
		}
		if i := slices.IndexFunc(set.Draining, func(m membership.Drain) bool { return m.IP == ip }); i >= 0 {
			d.Node, d.Reason = set.Draining[i].Node, humanize.FormatMessage(set.Draining[i].Reason, humanize.MaxCode)
		}
		down = append(down, d)
	}
	return down
}

// ParseAddresses parses addresses of a status and skips invalid ones.
func ParseAddresses(written []string) []netip.Addr {
	ips := make([]netip.Addr, 0, len(written))
	for _, s := range written {
		if ip, err := netip.ParseAddr(s); err == nil {
			ips = append(ips, ip)
		}
	}
	return ips
}

// FormatAddresses formats addresses for a status.
func FormatAddresses(ips []netip.Addr) []string {
	out := make([]string, len(ips))
	for i, ip := range ips {
		out[i] = metadata.Intern(ip.String()) // many pools contain the addresses of the same nodes
	}
	return out
}
