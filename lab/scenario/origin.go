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

// leftovers are addresses added or set Down by Weir and then left in the pool, because its
// BackendPool was deleted while paused.
type leftovers struct{ put, down map[netip.Addr]bool }

// traces returns the addresses added and those set Down by Weir, according to the emulator's log:
// Weir's own record is under test.
func (s *Stage) traces(k *pool) (put, down map[netip.Addr]bool) {
	put, down = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, e := range s.emu.Entries(k.id.String()) {
		put[e.IP], down[e.IP] = s.weirs[e.AddedBy], e.Down && s.weirs[e.DownBy]
	}
	return put, down
}

// sign marks a request with the token of its process.
func (s *Stage) sign(req *http.Request, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.weirs[armemu.CallerID(name)] = true
	req.Header.Set("Authorization", "Bearer "+name)
}

// nobody prefixes the sender of requests that arrive after their process gave them up.
const nobody = "weir-before-"

// others returns a pool's addresses that are foreign or were left behind. The caller holds s.mu.
func (s *Stage) others(k *pool) []lb.Address {
	l := s.look(k)
	return slices.DeleteFunc(slices.Clone(l.held), func(a lb.Address) bool { return l.byWeir[a.IP] && !k.left.put[a.IP] })
}

// reclaimed drops leftovers that are missing, or desired and recorded again and so managed by Weir.
// The caller holds s.mu.
func (s *Stage) reclaimed(k *pool) {
	if len(k.left.put)+len(k.left.down) == 0 {
		return
	}
	l, wanted := s.look(k), map[netip.Addr]bool{}
	b := s.cluster.bindings[k.id.Name]
	for _, a := range s.wants(k) {
		wanted[a.IP] = b != nil && slices.Contains(b.entry.written, a.IP)
	}
	maps.DeleteFunc(k.left.put, func(ip netip.Addr, _ bool) bool { return wanted[ip] || !l.byWeir[ip] })
	maps.DeleteFunc(k.left.down, func(ip netip.Addr, _ bool) bool { return !l.downByWeir[ip] })
}

// leave marks Weir's addresses in a pool as left behind. The caller holds s.mu.
func (s *Stage) leave(k *pool) {
	l := s.look(k)
	k.left = leftovers{maps.Clone(l.byWeir), maps.Clone(l.downByWeir)}
}
