// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
)

// The reserved ranges of RFC 2544 and RFC 3849, separate ones for prefixes. Addresses are not
// reused before the range is exhausted, so a re-allocation is visible.
var (
	singleRanges = [2]netip.Prefix{netip.MustParsePrefix("198.18.0.0/16"), netip.MustParsePrefix("2001:db8::/112")}
	prefixRanges = [2]netip.Prefix{netip.MustParsePrefix("198.19.0.0/16"), netip.MustParsePrefix("2001:db8:0:1::/112")}
)

type publicIPCursor struct{ single, prefix [2]netip.Addr }

// singleRange is the range of public IPs outside prefixes.
func (e *Emulator) singleRange(family int) netip.Prefix {
	if family == 0 && e.opts.PublicIPv4Range.IsValid() {
		return e.opts.PublicIPv4Range
	}
	return singleRanges[family]
}

// ipFamily is 1 for IPv6, else 0.
func ipFamily(version string) int {
	if strings.EqualFold(version, "IPv6") {
		return 1
	}
	return 0
}

func isStatic(props fields) bool {
	method := stringField(props, "publicIPAllocationMethod")
	if method == "" {
		method = stringField(props, "privateIPAllocationMethod")
	}
	return strings.EqualFold(method, "Static")
}

func dnsName(body fields) string {
	label := stringField(objectField(propertyFields(body), "dnsSettings"), "domainNameLabel")
	if label == "" {
		return ""
	}
	location := strings.ReplaceAll(stringField(body, "location"), " ", "")
	return strings.ToLower(label + "." + location + ".cloudapp.azure.com")
}

// allocateAddresses reserves nothing: the write may still be rejected.
func (e *Emulator) allocateAddresses(id resourceID, root fields) fields {
	props := propertyFields(root)
	switch {
	case id.root == publicIPKind && stringField(props, "ipAddress") == "":
		if addr := e.publicAddress(id, props); addr.IsValid() {
			return withField(root, "properties", withField(props, "ipAddress", addr.String()))
		}
	case id.root == publicIPPrefixKind && stringField(props, "ipPrefix") == "":
		if p := e.freePrefix(props); p.IsValid() {
			return withField(root, "properties", withField(props, "ipPrefix", p.String()))
		}
	case id.root == privateLinkServiceKind:
		return e.allocatePrivate(id, e.withAlias(id, root))
	case id.root.ipConfigs != nil:
		return e.allocatePrivate(id, root)
	case id.root == instanceKind:
		return e.allocateInstance(id, root)
	}
	return root
}

func (e *Emulator) markAllocated(id resourceID, root fields) {
	props := propertyFields(root)
	v := ipFamily(stringField(props, "publicIPAddressVersion"))
	switch id.root {
	case publicIPKind:
		if addr, err := netip.ParseAddr(stringField(props, "ipAddress")); err == nil && e.singleRange(v).Contains(addr) && e.lastPublicIP.single[v].Less(addr) {
			e.lastPublicIP.single[v] = addr
		}
	case publicIPPrefixKind:
		if p, err := netip.ParsePrefix(stringField(props, "ipPrefix")); err == nil && prefixRanges[v].Contains(p.Addr()) && e.lastPublicIP.prefix[v].Less(lastAddress(p)) {
			e.lastPublicIP.prefix[v] = lastAddress(p)
		}
	}
}

// publicAddress allocates Static addresses at once, Dynamic ones when in use.
func (e *Emulator) publicAddress(id resourceID, props fields) netip.Addr {
	if !isStatic(props) && len(e.references().publicIP[id.key()]) == 0 {
		return netip.Addr{}
	}
	taken := e.usedPublicIPs()
	if key := referenceID(props, "publicIPPrefix"); key != "" {
		return firstFree(e.publicPrefix(key), taken)
	}
	v := ipFamily(stringField(props, "publicIPAddressVersion"))
	return nextFree(e.singleRange(v), e.lastPublicIP.single[v], taken)
}

func (e *Emulator) usedPublicIPs() map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	for _, agg := range e.aggregates {
		if agg.id.root == publicIPKind {
			if addr, err := netip.ParseAddr(stringField(propertyFields(agg.body), "ipAddress")); err == nil {
				taken[addr] = true
			}
		}
	}
	return taken
}

func (e *Emulator) publicPrefix(key string) netip.Prefix {
	agg := e.aggregates[key]
	if agg == nil || agg.id.root != publicIPPrefixKind {
		return netip.Prefix{}
	}
	p, _ := netip.ParsePrefix(stringField(propertyFields(agg.body), "ipPrefix"))
	return p
}

func (e *Emulator) freePrefix(props fields) netip.Prefix {
	bits, ok := intField(props, "prefixLength")
	v := ipFamily(stringField(props, "publicIPAddressVersion"))
	if !ok || bits < prefixRanges[v].Bits() || bits > prefixRanges[v].Addr().BitLen() {
		return netip.Prefix{}
	}
	start := prefixRanges[v].Addr()
	if after := e.lastPublicIP.prefix[v]; after.IsValid() {
		start = after.Next()
	}
	p := netip.PrefixFrom(start, bits)
	if p.Masked().Addr() != start { // align the range
		p = netip.PrefixFrom(lastAddress(p).Next(), bits)
	}
	if !prefixRanges[v].Contains(p.Addr()) {
		return netip.Prefix{}
	}
	return p
}

func firstFree(p netip.Prefix, taken map[netip.Addr]bool) netip.Addr {
	for addr := p.Masked().Addr(); p.IsValid() && p.Contains(addr); addr = addr.Next() {
		if !taken[addr] {
			return addr
		}
	}
	return netip.Addr{}
}

func nextFree(p netip.Prefix, after netip.Addr, taken map[netip.Addr]bool) netip.Addr {
	if !after.IsValid() {
		after = p.Addr()
	}
	if addr := after.Next(); p.Contains(addr) {
		return addr
	}
	return firstFree(p, taken)
}

func lastAddress(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

func (e *Emulator) updateDynamicIPs(k *childKind, body fields) {
	for _, c := range objectList(propertyFields(body), k.collection) {
		agg := e.aggregates[referenceID(propertyFields(c), "publicIPAddress")]
		if agg == nil || agg.id.root != publicIPKind || isStatic(propertyFields(agg.body)) {
			continue
		}
		if len(e.references().publicIP[agg.id.key()]) == 0 {
			agg.body = withoutAddress(publicIPKind, agg.body)
		}
		agg.body = e.allocateAddresses(agg.id, agg.body)
		e.markAllocated(agg.id, agg.body)
	}
}

func (e *Emulator) allocateMissing(agg *aggregate) {
	agg.body = e.allocateAddresses(agg.id, agg.body)
	e.markAllocated(agg.id, agg.body)
	e.updateReferences(agg.id, nil, agg.body)
}

func withoutAddress(k *rootKind, body fields) fields {
	return withField(body, "properties", withoutFields(propertyFields(body), k.serverState...))
}

func intField(m fields, key string) (int, bool) {
	n, ok := m[key].(json.Number)
	if !ok {
		return 0, false
	}
	v, err := n.Int64()
	return int(v), err == nil
}

// equalLists ignores order; absent is empty.
func equalLists(a, b any) bool {
	return slices.Equal(sortedValues(a), sortedValues(b))
}

func sortedValues(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, w := range list {
		out = append(out, string(encodeJSON(w)))
	}
	slices.Sort(out)
	return out
}
