// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"fmt"
	"slices"
)

// ResolveDuplicate returns n as seen by its load balancer's pools when nodes on several load balancers are
// the same member. duplicates lists all of them including n; shared describes what they share. The eligible node
// that is first by name determines the load balancer, and the member is Down only while all of them drain.
func ResolveDuplicate(n Node, duplicates []Node, shared string) Node {
	eligible := slices.DeleteFunc(slices.Clone(duplicates), func(o Node) bool { return !o.isEligible() || o.Place == "" })
	if !slices.ContainsFunc(eligible, func(o Node) bool { return o.Place != n.Place }) {
		return n
	}
	chosen := slices.MinFunc(eligible, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	if chosen.Place != n.Place {
		n.StaysWhileServing = false // the member is on another load balancer
		n.Duplicate = fmt.Sprintf("%s is also that of node %s, which is on load balancer %s and counts: it is the first by name", shared, chosen.Name, chosen.Place)
		return n
	}
	if !n.isEligible() {
		return n
	}
	preferred := slices.MinFunc(eligible, compareDuplicates)
	n.DrainReason, n.DrainsAtOnce = preferred.DrainReason, preferred.DrainsAtOnce
	n.EvictionAnnounced, n.EvictionAnnouncedAt = preferred.EvictionAnnounced, preferred.EvictionAnnouncedAt
	return n
}

func (n Node) isEligible() bool { return n.Excluded == "" && n.NoMachine == "" }
