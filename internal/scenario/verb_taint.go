// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"net/netip"

	"weir.dev/weir/internal/membership"
)

// leaves is why a node is to take no new flows.
const leaves = "out-of-service"

// doTaint says that nodes leave, or that they do not. Without the feature nobody looks at
// taints.
func doTaint(s *Stage, a *reader) (string, error) {
	why := leaves
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
			n.Draining = why
			nodes[name] = n
			return nil
		}
	}
	return fmt.Errorf("there is no node %s", name)
}

// doReplace has a node be another one of its name, which nothing is known of.
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
	n.Draining = ""
	if !same {
		n.IPs = s.cluster.newAddresses()
	}
	s.cluster.nodes[name] = n
	s.mu.Unlock()
	s.changed(object{"Node", name})
	return "", nil
}

// newAddresses are those of the next node.
func (c *cluster) newAddresses() []netip.Addr {
	c.addresses++
	n := c.addresses
	return []netip.Addr{
		netip.AddrFrom4([4]byte{10, 0, byte(n / 250), byte(n%250 + 1)}),
		netip.MustParseAddr(fmt.Sprintf("fd00::%x", n)),
	}
}

// forgetDown drops what somebody else has set Down and is not there any more, or is not Down.
// The caller holds s.mu.
func (s *Stage) forgetDown(k *pool) {
	if len(k.foreignDown) == 0 {
		return
	}
	still := map[netip.Addr]bool{}
	held, _ := s.holds(k)
	for _, a := range held {
		still[a.IP] = a.AdminState == "Down"
	}
	maps.DeleteFunc(k.foreignDown, func(ip netip.Addr, _ bool) bool { return !still[ip] })
}
