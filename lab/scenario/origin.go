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

// leftovers are what Weir has put into a pool, or set Down there, and was told to leave: its
// BackendPool was deleted while it was paused.
type leftovers struct{ put, down map[netip.Addr]bool }

// traces returns the addresses that Weir put into a pool, and those that it set Down, as the
// emulator has it on record: Weir's own record is what is to be checked.
func (s *Stage) traces(k *pool) (put, down map[netip.Addr]bool) {
	put, down = map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, e := range s.emu.Entries(k.id.String()) {
		put[e.IP], down[e.IP] = s.weirs[e.PutBy], e.Down && s.weirs[e.DownBy]
	}
	return put, down
}

// sign has Azure see a request of a process of Weir: each has a token of its own there.
func (s *Stage) sign(req *http.Request, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.weirs[armemu.Caller(name)] = true
	req.Header.Set("Authorization", "Bearer "+name)
}

// nobody is who sends what arrives when its process has given it up.
const nobody = "weir-before-"

// others returns what stands in a pool and was put there by somebody else, or was left to
// others. The caller holds s.mu.
func (s *Stage) others(k *pool) []lb.Address {
	l := s.look(k)
	return slices.DeleteFunc(slices.Clone(l.held), func(a lb.Address) bool { return l.byWeir[a.IP] && !k.left.put[a.IP] })
}

// reclaimed drops what was left and is not there any more, or is wanted and on record again:
// from then on it is Weir's. The caller holds s.mu.
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

// leave notes that what Weir has in a pool stays there, and is nobody's. The caller holds s.mu.
func (s *Stage) leave(k *pool) {
	l := s.look(k)
	k.left = leftovers{maps.Clone(l.byWeir), maps.Clone(l.downByWeir)}
}
