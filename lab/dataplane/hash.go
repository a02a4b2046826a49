// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"hash/fnv"
	"net/netip"
	"strings"

	"weir.dev/weir/lab/armemu"
)

// flow is a five-tuple.
type flow struct {
	protocol Protocol
	from, to netip.AddrPort
}

// chooseMember returns the member for a new flow, and false if none takes new flows. The choice for a
// flow changes only if its member leaves or one joins that is chosen instead (rendezvous hashing).
func chooseMember(rule *armemu.ForwardingRule, f flow, isUp func(armemu.ForwardingMember) bool) (armemu.ForwardingMember, bool) {
	best, found := uint64(0), -1
	takes := rule.TakesNewFlows(func(i int) bool { return isUp(rule.Members[i]) })
	for i, m := range rule.Members {
		if !takes[i] || !m.IP.IsValid() {
			continue
		}
		if weight := f.hash(rule.LoadBalance, m.IP); found < 0 || weight > best {
			best, found = weight, i
		}
	}
	if found < 0 {
		return armemu.ForwardingMember{}, false
	}
	return rule.Members[found], true
}

// hash combines a member with what the load distribution uses of a flow.
func (f flow) hash(distribution string, member netip.Addr) uint64 {
	h := fnv.New64a()
	write := func(parts ...string) {
		for _, p := range parts {
			_, _ = h.Write(append([]byte(p), 0))
		}
	}
	write(f.from.Addr().String(), f.to.Addr().String())
	switch {
	case strings.EqualFold(distribution, "SourceIP"):
	case strings.EqualFold(distribution, "SourceIPProtocol"):
		write(string(f.protocol))
	default:
		write(string(f.protocol), f.from.String(), f.to.String())
	}
	write(member.String())
	// FNV's last bytes hardly change its high bits; this is the finalizer of MurmurHash3.
	sum := h.Sum64()
	for _, factor := range []uint64{0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53} {
		sum = (sum ^ sum>>33) * factor
	}
	return sum ^ sum>>33
}
