// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/adminstate"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
)

// leaves is the reason why a node takes no new flows; evicted marks an announced eviction.
const (
	leaves  = "out-of-service"
	evicted = adminstate.ValueSpotEviction
)

// doTaint starts or ends the draining of nodes. Without AdminState, taints are ignored.
func doTaint(s *Stage, a *reader) (string, error) {
	why := leaves
	if a.flag("announced") {
		why = evicted
	}
	if a.flag("end") || !s.opts.AdminState {
		why = ""
	}
	names := a.words()
	if err := a.err(); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := s.drains(name, why); err != nil {
			return "", err
		}
	}
	s.changed(named("Node", names)...)
	return "", nil
}

func (s *Stage) drains(name, why string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, nodes := range []map[string]membership.Node{s.cluster.nodes, s.cluster.lost} {
		if n, ok := nodes[name]; ok {
			if !n.EvictionAnnounced {
				n.EvictionAnnouncedAt = time.Now()
			}
			n.DrainReason, n.EvictionAnnounced = why, why == evicted
			nodes[name] = n
			return nil
		}
	}
	return fmt.Errorf("there is no node %s", name)
}

// doReplace replaces a node with a new one of the same name.
func doReplace(s *Stage, a *reader) (string, error) {
	same := a.flag("same")
	name := a.word("node")
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	n, ok := s.cluster.nodes[name]
	if !ok {
		s.mu.Unlock()
		return "", fmt.Errorf("there is no node %s", name)
	}
	n.DrainReason, n.EvictionAnnounced = "", false
	if !same {
		n.IPs = s.cluster.newAddresses()
	}
	s.cluster.nodes[name] = n
	s.mu.Unlock()
	s.changed(object{"Node", name})
	return "", nil
}

// newAddresses returns the addresses of the next node.
func (c *cluster) newAddresses() []netip.Addr {
	c.addresses++
	n := c.addresses
	return []netip.Addr{
		netip.AddrFrom4([4]byte{10, 0, byte(n / 250), byte(n%250 + 1)}),
		netip.MustParseAddr(fmt.Sprintf("fd00::%x", n)),
	}
}

// forgetDown drops foreign Down states of missing entries. The state of an address that is
// temporarily not desired is uncertain. The caller holds s.mu.
func (s *Stage) forgetDown(k *pool) {
	if len(k.foreignDown) == 0 {
		return
	}
	held, _ := s.holds(k)
	wanted := s.wants(k)
	for ip := range k.foreignDown {
		is := func(a lb.Address) bool { return a.IP == ip }
		at := slices.IndexFunc(held, is)
		switch {
		case at < 0, !k.foreignDown[ip] && held[at].AdminState != lb.Down:
			delete(k.foreignDown, ip)
		case !slices.ContainsFunc(wanted, is):
			k.foreignDown[ip] = false
		}
	}
}

// isForeignDown records that another writer set an address Down. If Weir recorded it as Down too,
// the origin is unknown. The caller holds s.mu.
func (s *Stage) isForeignDown(k *pool, ip netip.Addr) {
	if b := s.cluster.bindings[k.id.Name]; b != nil && slices.Contains(b.entry.down, ip) {
		return
	}
	if k.foreignDown == nil {
		k.foreignDown = map[netip.Addr]bool{}
	}
	k.foreignDown[ip] = true
}
