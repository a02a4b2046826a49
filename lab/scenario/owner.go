// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"net/http"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
)

// orphanedMembers are addresses added or set Down by Weir and then left in the pool, because its
// BackendPool was deleted while paused.
type orphanedMembers struct{ added, down map[netip.Addr]bool }

// weirAddresses returns the addresses added and those set Down by Weir, according to the emulator's log:
// Weir's own record is under test.
func (s *Stage) weirAddresses(k *pool) (put, down map[netip.Addr]bool) {
	put, down = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, e := range s.emulator.Entries(k.id.String()) {
		put[e.IP], down[e.IP] = s.processTokens[e.AddedBy], e.Down && s.processTokens[e.DownBy]
	}
	return put, down
}

// setToken marks a request with the token of its process.
func (s *Stage) setToken(req *http.Request, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processTokens[armemu.CallerID(name)] = true
	req.Header.Set("Authorization", "Bearer "+name)
}

// expiredPrefix prefixes the sender of requests that arrive after their process gave them up.
const expiredPrefix = "weir-before-"

// foreignAddresses returns a pool's addresses that are foreign or were left behind. The caller holds s.mu.
func (s *Stage) foreignAddresses(k *pool) []lb.Address {
	l := s.readSnapshot(k)
	return slices.DeleteFunc(slices.Clone(l.addresses), func(a lb.Address) bool { return l.addedByWeir[a.IP] && !k.orphaned.added[a.IP] })
}

// pruneOrphaned drops leftovers that are missing, or desired and recorded again and so managed by Weir.
// The caller holds s.mu.
func (s *Stage) pruneOrphaned(k *pool) {
	if len(k.orphaned.added)+len(k.orphaned.down) == 0 {
		return
	}
	l, wanted := s.readSnapshot(k), map[netip.Addr]bool{}
	b := s.cluster.bindings[k.id.Name]
	for _, a := range s.desiredAddresses(k) {
		wanted[a.IP] = b != nil && slices.Contains(b.entry.written, a.IP)
	}
	maps.DeleteFunc(k.orphaned.added, func(ip netip.Addr, _ bool) bool { return wanted[ip] || !l.addedByWeir[ip] })
	maps.DeleteFunc(k.orphaned.down, func(ip netip.Addr, _ bool) bool { return !l.downByWeir[ip] })
}

// markOrphaned marks Weir's addresses in a pool as left behind. The caller holds s.mu.
func (s *Stage) markOrphaned(k *pool) {
	l := s.readSnapshot(k)
	k.orphaned = orphanedMembers{maps.Clone(l.addedByWeir), maps.Clone(l.downByWeir)}
}
