// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"net/netip"
)

func retainPrivateAddresses(k *childKind, before, after fields) fields {
	old := newNameIndex(objectList(propertyFields(before), k.collection))
	list := objectList(propertyFields(after), k.collection)
	for i, c := range list {
		props := propertyFields(c)
		former, found := lookUpName(old, stringField(c, "name"))
		if !found || isStatic(props) || referenceID(props, "subnet") == "" {
			continue
		}
		before := propertyFields(former)
		addr := stringField(before, "privateIPAddress")
		if addr != "" && referenceID(before, "subnet") == referenceID(props, "subnet") && ipVersion(before) == ipVersion(props) {
			list[i] = withField(c, "properties", withField(props, "privateIPAddress", addr))
		}
	}
	return withField(after, "properties", withField(propertyFields(after), k.collection, toArray(list)))
}

func ipVersion(props fields) int { return ipFamily(stringField(props, "privateIPAddressVersion")) }

func (e *Emulator) allocatePrivate(id resourceID, root fields) fields {
	k := id.root.ipConfigs
	list := objectList(propertyFields(root), k.collection)
	taken := map[string]map[netip.Addr]bool{}
	assigned := false
	for i, c := range list {
		props := propertyFields(c)
		subnet := referenceID(props, "subnet")
		if subnet == "" || isStatic(props) || stringField(props, "privateIPAddress") != "" {
			continue
		}
		if taken[subnet] == nil {
			taken[subnet] = e.usedPrivateIPs(id, subnet, list)
		}
		addr := firstUsable(e.subnetPrefix(subnet, ipVersion(props)), taken[subnet])
		if !addr.IsValid() {
			continue
		}
		taken[subnet][addr] = true
		assigned = true
		list[i] = withField(c, "properties", withField(props, "privateIPAddress", addr.String()))
	}
	if !assigned {
		return root
	}
	return withField(root, "properties", withField(propertyFields(root), k.collection, toArray(list)))
}

// usedPrivateIPs includes addresses in pools: their network interfaces may not be modeled (assumed).
func (e *Emulator) usedPrivateIPs(id resourceID, subnet string, configs []fields) map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	for addr := range e.references().privateIPs[subnet] {
		taken[addr] = true
	}
	add := func(text string) {
		if addr, err := netip.ParseAddr(text); err == nil {
			taken[addr] = true
		}
	}
	for _, c := range configs {
		if referenceID(propertyFields(c), "subnet") == subnet {
			add(stringField(propertyFields(c), "privateIPAddress"))
		}
	}
	for _, agg := range e.aggregates {
		if agg.id.root != loadBalancerKind {
			continue
		}
		for _, pool := range objectList(propertyFields(agg.body), pools) {
			for _, a := range objectList(propertyFields(pool), addresses) {
				add(stringField(propertyFields(a), "ipAddress"))
			}
		}
	}
	return taken
}

func (e *Emulator) subnetPrefix(key string, version int) netip.Prefix {
	id, err := parseID(key)
	if err != nil || id.child != subnetKind {
		return netip.Prefix{}
	}
	agg := e.aggregates[id.rootKey()]
	if agg == nil {
		return netip.Prefix{}
	}
	props := propertyFields(findChild(agg.body, id))
	list, _ := props["addressPrefixes"].([]any)
	for _, v := range append([]any{props["addressPrefix"]}, list...) {
		s, _ := v.(string)
		if p, err := netip.ParsePrefix(s); err == nil && p.Addr().Is6() == (version == 1) {
			return p.Masked()
		}
	}
	return netip.Prefix{}
}

// isReserved reports true for the first four addresses of a subnet and the last.
func isReserved(p netip.Prefix, addr netip.Addr) bool {
	first := p.Masked().Addr()
	for range 4 {
		if addr == first {
			return true
		}
		first = first.Next()
	}
	return addr == lastAddress(p)
}

func firstUsable(p netip.Prefix, taken map[netip.Addr]bool) netip.Addr {
	if !p.IsValid() {
		return netip.Addr{}
	}
	addr := p.Addr()
	for range 4 {
		addr = addr.Next()
	}
	for end := lastAddress(p); p.Contains(addr) && addr != end; addr = addr.Next() {
		if !taken[addr] {
			return addr
		}
	}
	return netip.Addr{}
}

func (v *validationTarget) ipConfigs(yield func(id string, props fields) bool) {
	for id, props := range instanceIPConfigs(v.self.String(), propertyFields(v.body)) {
		if !yield(id, props) {
			return
		}
	}
	k := v.self.root.ipConfigs
	if k == nil {
		return
	}
	prefix := v.self.String() + "/" + k.collection + "/"
	for _, c := range objectList(propertyFields(v.body), k.collection) {
		if !yield(prefix+stringField(c, "name"), propertyFields(c)) {
			return
		}
	}
}
