// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"net/netip"
)

// keepPrivateAddresses retains a Dynamic address while its IP configuration remains in its subnet.
func keepPrivateAddresses(k *childKind, before, after fields) fields {
	old := objects(properties(before), k.collection)
	list := objects(properties(after), k.collection)
	for i, c := range list {
		props := properties(c)
		j := indexByName(old, text(c, "name"))
		if j < 0 || isStatic(props) || reference(props, "subnet") == "" {
			continue
		}
		was := properties(old[j])
		addr := text(was, "privateIPAddress")
		if addr != "" && reference(was, "subnet") == reference(props, "subnet") && versionOf(was) == versionOf(props) {
			list[i] = with(c, "properties", with(props, "privateIPAddress", addr))
		}
	}
	return with(after, "properties", with(properties(after), k.collection, array(list)))
}

// versionOf returns 1 for an IPv6 configuration, else 0.
func versionOf(props fields) int { return family(text(props, "privateIPAddressVersion")) }

// allocatePrivate gives every Dynamic IP configuration without an address the lowest free one of
// its subnet.
func (e *Emulator) allocatePrivate(id resourceID, root fields) fields {
	k := id.root.configs
	list := objects(properties(root), k.collection)
	taken := map[string]map[netip.Addr]bool{}
	assigned := false
	for i, c := range list {
		props := properties(c)
		subnet := reference(props, "subnet")
		if subnet == "" || isStatic(props) || text(props, "privateIPAddress") != "" {
			continue
		}
		if taken[subnet] == nil {
			taken[subnet] = e.privateTaken(id, subnet, list)
		}
		addr := firstUsable(e.subnetPrefix(subnet, versionOf(props)), taken[subnet])
		if !addr.IsValid() {
			continue
		}
		taken[subnet][addr] = true
		assigned = true
		list[i] = with(c, "properties", with(props, "privateIPAddress", addr.String()))
	}
	if !assigned {
		return root
	}
	return with(root, "properties", with(properties(root), k.collection, array(list)))
}

// privateTaken returns the addresses in use in a subnet. It includes addresses in pools, because
// their network interfaces may not be modeled (assumed).
func (e *Emulator) privateTaken(id resourceID, subnet string, configs []fields) map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	for addr := range e.index().private[subnet] {
		taken[addr] = true
	}
	add := func(text string) {
		if addr, err := netip.ParseAddr(text); err == nil {
			taken[addr] = true
		}
	}
	for _, c := range configs {
		if reference(properties(c), "subnet") == subnet {
			add(text(properties(c), "privateIPAddress"))
		}
	}
	for _, agg := range e.aggregates {
		if agg.id.root != loadBalancerKind {
			continue
		}
		for _, pool := range objects(properties(agg.body), pools) {
			for _, a := range objects(properties(pool), addresses) {
				add(text(properties(a), "ipAddress"))
			}
		}
	}
	return taken
}

// subnetPrefix returns the range of a subnet for one IP family; invalid if there is none.
func (e *Emulator) subnetPrefix(key string, version int) netip.Prefix {
	id, err := parseID(key)
	if err != nil || id.child != subnetKind {
		return netip.Prefix{}
	}
	agg := e.aggregates[id.rootKey()]
	if agg == nil {
		return netip.Prefix{}
	}
	props := properties(findChild(agg.body, id))
	list, _ := props["addressPrefixes"].([]any)
	for _, v := range append([]any{props["addressPrefix"]}, list...) {
		s, _ := v.(string)
		if p, err := netip.ParsePrefix(s); err == nil && p.Addr().Is6() == (version == 1) {
			return p.Masked()
		}
	}
	return netip.Prefix{}
}

// reserved reports whether Azure reserves the address: the first four of a subnet and the last.
func reserved(p netip.Prefix, addr netip.Addr) bool {
	first := p.Masked().Addr()
	for range 4 {
		if addr == first {
			return true
		}
		first = first.Next()
	}
	return addr == last(p)
}

func firstUsable(p netip.Prefix, taken map[netip.Addr]bool) netip.Addr {
	if !p.IsValid() {
		return netip.Addr{}
	}
	addr := p.Addr()
	for range 4 {
		addr = addr.Next()
	}
	for end := last(p); p.Contains(addr) && addr != end; addr = addr.Next() {
		if !taken[addr] {
			return addr
		}
	}
	return netip.Addr{}
}

// configsOf iterates over a subject's IP configurations by ID.
func (s *subject) configsOf(yield func(id string, props fields) bool) {
	for id, props := range memberConfigs(s.self.String(), properties(s.body)) {
		if !yield(id, props) {
			return
		}
	}
	k := s.self.root.configs
	if k == nil {
		return
	}
	prefix := s.self.String() + "/" + k.collection + "/"
	for _, c := range objects(properties(s.body), k.collection) {
		if !yield(prefix+text(c, "name"), properties(c)) {
			return
		}
	}
}
