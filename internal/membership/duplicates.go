// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"fmt"
	"slices"
)

// AcrossLoadBalancers returns a node as it is to the pools of its load balancer, where nodes of several load
// balancers are one member. same are all of them, the node included, and shared says what they have in common. The
// first by name of those that may be members counts: the member is on its load balancer alone, and is Down while
// all of them leave.
func AcrossLoadBalancers(n Node, same []Node, shared string) Node {
	may := slices.DeleteFunc(slices.Clone(same), func(o Node) bool { return !o.mayBeMember() || o.Place == "" })
	if !slices.ContainsFunc(may, func(o Node) bool { return o.Place != n.Place }) {
		return n
	}
	counts := slices.MinFunc(may, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	if counts.Place != n.Place {
		n.Leaves = false // the member is elsewhere already
		n.Duplicate = fmt.Sprintf("%s is also that of node %s, which is on load balancer %s and counts: it is the first by name", shared, counts.Name, counts.Place)
		return n
	}
	if !n.mayBeMember() {
		return n
	}
	decides := slices.MinFunc(may, compareTwins)
	n.Draining, n.Announced, n.AnnouncedAt = decides.Draining, decides.Announced, decides.AnnouncedAt
	return n
}

// mayBeMember reports whether nothing keeps a node out of the pools of its load balancer.
func (n Node) mayBeMember() bool { return n.Excluded == "" && n.NoMachine == "" }
