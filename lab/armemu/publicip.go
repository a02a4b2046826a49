// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
)

// Public addresses come from the reserved ranges of RFC 2544 (benchmarks) and RFC 3849
// (documentation), separate ones for prefixes. They are allocated in order and not reused before
// the range is exhausted, so a re-allocation is visible.
var (
	singles  = [2]netip.Prefix{netip.MustParsePrefix("198.18.0.0/16"), netip.MustParsePrefix("2001:db8::/112")}
	prefixes = [2]netip.Prefix{netip.MustParsePrefix("198.19.0.0/16"), netip.MustParsePrefix("2001:db8:0:1::/112")}
)

// publicCursor holds the last address allocated from each range, by IP family.
type publicCursor struct{ single, prefix [2]netip.Addr }

// family returns 1 for IPv6, else 0.
func family(version string) int {
	if strings.EqualFold(version, "IPv6") {
		return 1
	}
	return 0
}

func isStatic(props fields) bool {
	method := text(props, "publicIPAllocationMethod")
	if method == "" {
		method = text(props, "privateIPAllocationMethod")
	}
	return strings.EqualFold(method, "Static")
}

// fqdn returns the DNS name of a public IP.
func fqdn(body fields) string {
	label := text(object(properties(body), "dnsSettings"), "domainNameLabel")
	if label == "" {
		return ""
	}
	location := strings.ReplaceAll(text(body, "location"), " ", "")
	return strings.ToLower(label + "." + location + ".cloudapp.azure.com")
}

// allocate adds server-assigned addresses. It reserves none, in case the write is rejected.
func (e *Emulator) allocate(id resourceID, root fields) fields {
	props := properties(root)
	switch {
	case id.root == publicIPKind && text(props, "ipAddress") == "":
		if addr := e.publicAddress(id, props); addr.IsValid() {
			return with(root, "properties", with(props, "ipAddress", addr.String()))
		}
	case id.root == publicIPPrefixKind && text(props, "ipPrefix") == "":
		if p := e.freePrefix(props); p.IsValid() {
			return with(root, "properties", with(props, "ipPrefix", p.String()))
		}
	case id.root == privateLinkServiceKind:
		return e.allocatePrivate(id, e.aliased(id, root))
	case id.root.configs != nil:
		return e.allocatePrivate(id, root)
	case id.root == instanceKind:
		return e.allocateInstance(id, root)
	}
	return root
}

// give marks the addresses of a body as allocated.
func (e *Emulator) give(id resourceID, root fields) {
	props := properties(root)
	v := family(text(props, "publicIPAddressVersion"))
	switch id.root {
	case publicIPKind:
		if addr, err := netip.ParseAddr(text(props, "ipAddress")); err == nil && singles[v].Contains(addr) && e.lastPublic.single[v].Less(addr) {
			e.lastPublic.single[v] = addr
		}
	case publicIPPrefixKind:
		if p, err := netip.ParsePrefix(text(props, "ipPrefix")); err == nil && prefixes[v].Contains(p.Addr()) && e.lastPublic.prefix[v].Less(last(p)) {
			e.lastPublic.prefix[v] = last(p)
		}
	}
}

// publicAddress returns the address for a public IP: Static at once, Dynamic when in use.
func (e *Emulator) publicAddress(id resourceID, props fields) netip.Addr {
	if !isStatic(props) && len(e.index().publicIP[id.key()]) == 0 {
		return netip.Addr{}
	}
	taken := e.publicTaken()
	if key := reference(props, "publicIPPrefix"); key != "" {
		return firstFree(e.prefixOf(key), taken)
	}
	v := family(text(props, "publicIPAddressVersion"))
	return nextFree(singles[v], e.lastPublic.single[v], taken)
}

func (e *Emulator) publicTaken() map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	for _, agg := range e.aggregates {
		if agg.id.root == publicIPKind {
			if addr, err := netip.ParseAddr(text(properties(agg.body), "ipAddress")); err == nil {
				taken[addr] = true
			}
		}
	}
	return taken
}

// prefixOf returns the range of a public IP prefix; invalid if there is none.
func (e *Emulator) prefixOf(key string) netip.Prefix {
	agg := e.aggregates[key]
	if agg == nil || agg.id.root != publicIPPrefixKind {
		return netip.Prefix{}
	}
	p, _ := netip.ParsePrefix(text(properties(agg.body), "ipPrefix"))
	return p
}

// freePrefix returns the next free range of the requested length.
func (e *Emulator) freePrefix(props fields) netip.Prefix {
	bits, ok := number(props, "prefixLength")
	v := family(text(props, "publicIPAddressVersion"))
	if !ok || bits < prefixes[v].Bits() || bits > prefixes[v].Addr().BitLen() {
		return netip.Prefix{}
	}
	start := prefixes[v].Addr()
	if after := e.lastPublic.prefix[v]; after.IsValid() {
		start = after.Next()
	}
	p := netip.PrefixFrom(start, bits)
	if p.Masked().Addr() != start { // align the range
		p = netip.PrefixFrom(last(p).Next(), bits)
	}
	if !prefixes[v].Contains(p.Addr()) {
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

// nextFree returns the address after the last allocated one, or a free one from the start if the
// range is exhausted.
func nextFree(p netip.Prefix, after netip.Addr, taken map[netip.Addr]bool) netip.Addr {
	if !after.IsValid() {
		after = p.Addr()
	}
	if addr := after.Next(); p.Contains(addr) {
		return addr
	}
	return firstFree(p, taken)
}

// last returns the highest address of a range.
func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

// followDynamic assigns Dynamic public IPs an address while in use, and releases it afterwards.
func (e *Emulator) followDynamic(k *childKind, body fields) {
	for _, c := range objects(properties(body), k.collection) {
		agg := e.aggregates[reference(properties(c), "publicIPAddress")]
		if agg == nil || agg.id.root != publicIPKind || isStatic(properties(agg.body)) {
			continue
		}
		if len(e.index().publicIP[agg.id.key()]) == 0 {
			agg.body = withoutAddress(publicIPKind, agg.body)
		}
		agg.body = e.allocate(agg.id, agg.body)
		e.give(agg.id, agg.body)
	}
}

// allocateMissing allocates addresses of a seeded resource.
func (e *Emulator) allocateMissing(agg *aggregate) {
	agg.body = e.allocate(agg.id, agg.body)
	e.give(agg.id, agg.body)
	e.changed(agg.id, nil, agg.body)
}

// withoutAddress removes the state that a creation would have added.
func withoutAddress(k *rootKind, body fields) fields {
	return with(body, "properties", without(properties(body), k.kept...))
}

// number returns an integer property.
func number(m fields, key string) (int, bool) {
	n, ok := m[key].(json.Number)
	if !ok {
		return 0, false
	}
	v, err := n.Int64()
	return int(v), err == nil
}

// sameList compares two JSON lists, ignoring order; absent is empty.
func sameList(a, b any) bool {
	return slices.Equal(words(a), words(b))
}

func words(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, w := range list {
		out = append(out, string(encode(w)))
	}
	slices.Sort(out)
	return out
}
