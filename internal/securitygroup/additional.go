// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/service"
)

// naming determines the owners of additional addresses. A Service must not open an address of another owner.
// A free address belongs to the first Service that names it.
type naming struct {
	nodes map[netip.Addr]bool
	// served and named are the Services that have and that name an address.
	served, named map[netip.Addr][]string
	// holds is the first Service that named an address, as seen by this process.
	holds map[netip.Addr]string
}

// namingOf combines the Services in the cluster with the known demands.
func namingOf(nodes []netip.Addr, there []Reached, known map[string]Demand, holds map[netip.Addr]string) naming {
	n := naming{nodes: map[netip.Addr]bool{}, served: map[netip.Addr][]string{}, named: map[netip.Addr][]string{}, holds: holds}
	for _, a := range nodes {
		n.nodes[a] = true
	}
	put := func(in map[netip.Addr][]string, of string, addresses []netip.Addr) {
		for _, a := range addresses {
			if a.IsValid() && !slices.Contains(in[a], of) {
				in[a] = append(in[a], of)
			}
		}
	}
	for _, r := range there {
		put(n.served, r.Service, r.Addresses)
		put(n.named, r.Service, r.Additional)
	}
	for _, of := range known {
		put(n.served, of.Service, of.Addresses)
		put(n.named, of.Service, of.Desired.Access.Additional)
	}
	for _, all := range n.named {
		slices.Sort(all)
	}
	return n
}

// taken returns the other owner of an address, or "" if the Service may name it.
func (n naming) taken(of string, a netip.Addr) string {
	switch {
	case n.nodes[a]:
		return "a node's"
	case len(n.served[a]) > 0 && !slices.Contains(n.served[a], of):
		return "that of Service " + slices.Min(n.served[a])
	}
	return ""
}

// rival returns another Service that names the address and may have been first, or "".
func (n naming) rival(of string, a netip.Addr) string {
	if n.holds[a] == of {
		return ""
	}
	if first := n.holds[a]; slices.Contains(n.named[a], first) {
		return first
	}
	for _, other := range n.named[a] {
		if other != of {
			return other
		}
	}
	return ""
}

func (n naming) opens(of string, a netip.Addr) bool {
	return n.taken(of, a) == "" && n.rival(of, a) == ""
}

// lawful returns the demand without additional addresses that are not opened for it. Nodes and Services may
// have changed since it was checked.
func (n naming) lawful(of Demand) Demand {
	if of.Desired == nil || !slices.ContainsFunc(of.Desired.Access.Additional, func(a netip.Addr) bool { return !n.opens(of.Service, a) }) {
		return of
	}
	spec := *of.Desired
	spec.Access.Additional = slices.DeleteFunc(slices.Clone(spec.Access.Additional), func(a netip.Addr) bool { return !n.opens(of.Service, a) })
	of.Desired = &spec
	return of
}

// withheld describes the additional addresses that are not opened for a Service, or "".
func (n naming) withheld(of Demand) string {
	if of.Desired == nil {
		return ""
	}
	var texts []string
	for _, a := range of.Desired.Access.Additional {
		switch rival := n.rival(of.Service, a); {
		case n.taken(of.Service, a) != "":
			texts = append(texts, fmt.Sprintf("%s is %s", a, n.taken(of.Service, a)))
		case rival != "" && n.holds[a] == rival:
			texts = append(texts, fmt.Sprintf("%s is named by Service %s, which was first", a, rival))
		case rival != "":
			texts = append(texts, fmt.Sprintf("%s is named by Service %s, too, and it is not known who was first", a, rival))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "nothing is changed for the Service at further addresses that it names (" + service.AdditionalIPs + "): " + strings.Join(texts, "; ")
}

// holders returns the Service of each additional address that the group has.
func (n naming) holders(known map[string]Demand) map[netip.Addr]string {
	all := map[netip.Addr]string{}
	for _, of := range known {
		if of.Desired != nil {
			for _, a := range n.lawful(of).Desired.Access.Additional {
				all[a] = of.Service
			}
		}
	}
	return all
}

func joined(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

// MayName returns why a Service must not name one of its additional addresses. Call it before creating
// anything. publicIPs returns the owners of public IPs that are not the Service's.
func (g *Group) MayName(key string, access service.Access, publicIPs func() (map[netip.Addr]string, error)) error {
	if len(access.Additional) == 0 || access.Unruled {
		return nil
	}
	n := namingOf(g.cfg.Cluster.Nodes(), g.cfg.Cluster.Reached(), nil, nil)
	taken, err := publicIPs()
	if err != nil {
		return err
	}
	for _, a := range access.Additional {
		if whose := cmp.Or(n.taken(key, a), taken[a]); whose != "" {
			return service.Problem{Field: service.AdditionalIPs, Value: a.String(), Want: "an address that is nobody else's: this is " + whose}
		}
	}
	return nil
}
