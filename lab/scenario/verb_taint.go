// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
)

// The reason why a node takes no new flows, and the mark of an announced eviction.
const (
	leaveTaint    = "out-of-service"
	evictionTaint = lb.ValueSpotEviction
)

// doTaint starts or ends the draining of nodes. Without AdminState, taints are ignored.
func doTaint(s *Stage, a *argReader) (string, error) {
	reason := leaveTaint
	if a.flagArg("announced") {
		reason = evictionTaint
	}
	if a.flagArg("end") || !s.opts.AdminState {
		reason = ""
	}
	names := a.wordArgs()
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	for _, name := range names {
		if err := s.isDrainSet(name, reason); err != nil {
			return "", err
		}
	}
	s.notifyChange(newObjects("Node", names)...)
	return "", nil
}

func (s *Stage) isDrainSet(name, reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, nodes := range []map[string]membership.Node{s.cluster.nodes, s.cluster.lostNodes} {
		if n, ok := nodes[name]; ok {
			if !n.EvictionAnnounced {
				n.EvictionAnnouncedAt = time.Now()
			}
			n.DrainReason, n.EvictionAnnounced = reason, reason == evictionTaint
			nodes[name] = n
			return nil
		}
	}
	return fmt.Errorf("there is no node %s", name)
}

// doReplace replaces a node with a new one of the same name.
func doReplace(s *Stage, a *argReader) (string, error) {
	same := a.flagArg("same")
	name := a.wordArg("node")
	if err := a.joinErrors(); err != nil {
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
	s.notifyChange(object{"Node", name})
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

// pruneForeignDown drops foreign Down states of missing entries. The state of an address that is
// temporarily not desired is uncertain. The caller holds s.mu.
func (s *Stage) pruneForeignDown(k *pool) {
	if len(k.foreignDown) == 0 {
		return
	}
	held, _ := s.azureAddresses(k)
	wanted := s.desiredAddresses(k)
	for ip := range k.foreignDown {
		matches := func(a lb.Address) bool { return a.IP == ip }
		at := slices.IndexFunc(held, matches)
		switch {
		case at < 0, !k.foreignDown[ip] && held[at].AdminState != lb.Down:
			delete(k.foreignDown, ip)
		case !slices.ContainsFunc(wanted, matches):
			k.foreignDown[ip] = false
		}
	}
}

// recordForeignDown records that another writer set an address Down. If Weir recorded it as Down too,
// the origin is unknown. The caller holds s.mu.
func (s *Stage) recordForeignDown(k *pool, ip netip.Addr) {
	if b := s.cluster.bindings[k.id.Name]; b != nil && slices.Contains(b.entry.down, ip) {
		return
	}
	if k.foreignDown == nil {
		k.foreignDown = map[netip.Addr]bool{}
	}
	k.foreignDown[ip] = true
}
