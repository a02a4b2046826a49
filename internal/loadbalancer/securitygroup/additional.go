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

// addressOwners determines the owners of additional addresses. A Service must not open an address of another owner.
// A free address belongs to the first Service that names it.
type addressOwners struct {
	nodes map[netip.Addr]bool
	// serving and named are the Services that have and that name an address.
	serving, naming map[netip.Addr][]string
	// firstNamed is the first Service that named an address, as seen by this process.
	firstNamed map[netip.Addr]string
}

// newAddressOwners combines the Services in the cluster with the known demands.
func newAddressOwners(nodes []netip.Addr, exposed []ExposedService, known map[string]Demand, holds map[netip.Addr]string) addressOwners {
	n := addressOwners{nodes: map[netip.Addr]bool{}, serving: map[netip.Addr][]string{}, naming: map[netip.Addr][]string{}, firstNamed: holds}
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
	for _, r := range exposed {
		put(n.serving, r.Service, r.Addresses)
		put(n.naming, r.Service, r.Additional)
	}
	for _, of := range known {
		put(n.serving, of.Service, of.Addresses)
		put(n.naming, of.Service, of.Desired.Access.Additional)
	}
	for _, owners := range n.naming {
		slices.Sort(owners)
	}
	return n
}

// otherOwner returns the other owner of an address, or "" if the Service may name it.
func (o addressOwners) otherOwner(of string, a netip.Addr) string {
	switch {
	case o.nodes[a]:
		return "a node's"
	case len(o.serving[a]) > 0 && !slices.Contains(o.serving[a], of):
		return "that of " + service.DescribeOwner(slices.Min(o.serving[a]))
	}
	return ""
}

// competingService returns another Service that names the address and may have been first, or "".
func (o addressOwners) competingService(of string, a netip.Addr) string {
	if o.firstNamed[a] == of {
		return ""
	}
	if first := o.firstNamed[a]; slices.Contains(o.naming[a], first) {
		return first
	}
	for _, other := range o.naming[a] {
		if other != of {
			return other
		}
	}
	return ""
}

func (o addressOwners) isOpened(of string, a netip.Addr) bool {
	return o.otherOwner(of, a) == "" && o.competingService(of, a) == ""
}

// filterDemand returns the demand without additional addresses that are not opened for it. Nodes and Services may
// have changed since it was checked.
func (o addressOwners) filterDemand(of Demand) Demand {
	if of.Desired == nil || !slices.ContainsFunc(of.Desired.Access.Additional, func(a netip.Addr) bool { return !o.isOpened(of.Service, a) }) {
		return of
	}
	spec := *of.Desired
	spec.Access.Additional = slices.DeleteFunc(slices.Clone(spec.Access.Additional), func(a netip.Addr) bool { return !o.isOpened(of.Service, a) })
	of.Desired = &spec
	return of
}

// withheldMessage describes the additional addresses that are not opened for a Service, or "".
func (o addressOwners) withheldMessage(of Demand) string {
	if of.Desired == nil {
		return ""
	}
	var texts []string
	for _, a := range of.Desired.Access.Additional {
		switch rival := o.competingService(of.Service, a); {
		case o.otherOwner(of.Service, a) != "":
			texts = append(texts, fmt.Sprintf("%s is %s", a, o.otherOwner(of.Service, a)))
		case rival != "" && o.firstNamed[a] == rival:
			texts = append(texts, fmt.Sprintf("%s is named by %s, which was first", a, service.DescribeOwner(rival)))
		case rival != "":
			texts = append(texts, fmt.Sprintf("%s is also named by %s, and it is unknown which was first", a, service.DescribeOwner(rival)))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return "nothing is changed for the Service at further addresses that it names (" + service.AdditionalIPs + "): " + strings.Join(texts, "; ")
}

// ownersByAddress returns the Service of each additional address that the group has.
func (o addressOwners) ownersByAddress(known map[string]Demand) map[netip.Addr]string {
	owners := map[netip.Addr]string{}
	for _, of := range known {
		if of.Desired != nil {
			for _, a := range o.filterDemand(of).Desired.Access.Additional {
				owners[a] = of.Service
			}
		}
	}
	return owners
}

func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(note string) bool { return note == "" }), "; ")
}

// CheckAdditional returns why a Service must not name one of its additional addresses. Call it before creating
// anything. publicIPs returns the owners of public IPs that are not the Service's.
func (g *Group) CheckAdditional(key string, access service.Access, publicIPs func() (map[netip.Addr]string, error)) error {
	if len(access.Additional) == 0 || access.NoSecurityRules {
		return nil
	}
	n := newAddressOwners(g.cfg.Cluster.NodeAddresses(), g.cfg.Cluster.ExposedServices(), nil, nil)
	taken, err := publicIPs()
	if err != nil {
		return err
	}
	for _, a := range access.Additional {
		if other := cmp.Or(n.otherOwner(key, a), taken[a]); other != "" {
			return service.Problem{Field: service.AdditionalIPs, Value: a.String(), Expected: "an address that no other resource uses: this is " + other}
		}
	}
	return nil
}
