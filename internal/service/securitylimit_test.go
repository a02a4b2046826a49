// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

func prefixesOf(prefixes ...string) (of []netip.Prefix) {
	for _, text := range prefixes {
		of = append(of, netip.MustParsePrefix(text))
	}
	return of
}

// Admitted sources within a limit remain, whichever Service added them.
func TestWithinALimit(t *testing.T) {
	ranges, tags := SecurityLimit{Ranges: prefixesOf("10.1.0.0/16", "192.0.2.0/24", "2001:db8::/32")}, SecurityLimit{Tags: []string{"AzureCloud", "Storage"}}
	both, none, private := SecurityLimit{Ranges: ranges.Ranges, Tags: tags.Tags}, SecurityLimit{}, SecurityLimit{Private: true}
	for about, tt := range map[string]struct {
		limit   SecurityLimit
		sources string
		want    string
	}{
		"everybody":                     {ranges, "Internet", "10.1.0.0/16,192.0.2.0/24"},
		"everybody, as a star":          {both, "*", "10.1.0.0/16,192.0.2.0/24; AzureCloud; Storage"},
		"everybody, as a range":         {ranges, "0.0.0.0/0", "10.1.0.0/16,192.0.2.0/24"},
		"nobody is left":                {none, "Internet", ""},
		"a wider range":                 {ranges, "10.0.0.0/8", "10.1.0.0/16"},
		"a narrower range":              {ranges, "10.1.2.0/24", "10.1.2.0/24"},
		"an address":                    {ranges, "192.0.2.7", "192.0.2.7/32"},
		"another range":                 {ranges, "10.2.0.0/16", ""},
		"some of several":               {ranges, "10.0.0.0/8,198.51.100.0/24,192.0.2.128/25", "10.1.0.0/16,192.0.2.128/25"},
		"a tag":                         {both, "azurecloud", "azurecloud"},
		"another tag":                   {both, "Sql", ""},
		"a range, and tags are limited": {tags, "10.0.0.0/8", ""},
		"a tag, and ranges are limited": {ranges, "AzureCloud", ""},
		"probes":                        {none, "AzureLoadBalancer", "AzureLoadBalancer"},
		"internal, everybody":           {private, "Internet", ""},
		"internal, a private range":     {private, "10.2.0.0/16", "10.2.0.0/16"},
		"internal, a public range":      {private, "198.51.100.0/24", ""},
		"internal, more than private":   {private, "0.0.0.0/0", ""},
		"internal, the network":         {private, "VirtualNetwork", "VirtualNetwork"},
	} {
		var got []string
		for _, single := range tt.limit.restrictSources(strings.Split(tt.sources, ","), lb.IPv4) {
			got = append(got, strings.Join(single, ","))
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("%s: %q, want %q", about, text, tt.want)
		}
	}
	if got := ranges.restrictSources([]string{"Internet"}, lb.IPv6); len(got) != 1 || !slices.Equal(got[0], []string{"2001:db8::/32"}) {
		t.Errorf("over IPv6: %v", got)
	}
}

func limitedShare(service string, l SecurityLimit, at ...int) SecurityShare {
	s := newShare(service, at...)
	l.Own, s.AccessRules = s.AccessRules, nil
	s.Limit = &l
	return s
}

// A share with a limit removes sources and adds none; other Services keep theirs.
func TestALimitTakesAway(t *testing.T) {
	other := newManagedRule("allow_IPv4_o", 501, "20.0.0.1")
	other.DestinationPorts = []string{"443"}
	neighbor := newShare("b", 1)
	neighbor.AccessRules[0].Ports = []string{"443"}
	unknown := SecurityShare{Service: "b", Fixed: true, Places: []SecurityPlace{{Addresses: []netip.Addr{fourth(1)}}}}
	deny := newManagedRule("deny-all_IPv4", 4096, "20.0.0.1")
	deny.Access, deny.Protocol, deny.Sources, deny.DestinationPorts = lb.Deny, lb.Any, []string{lb.Any}, []string{lb.Any}
	alone := limitedShare("a", SecurityLimit{Ranges: prefixesOf("192.0.2.0/24")}, 1)
	alone.AccessRules = []AccessRule{{Access: lb.Deny, Family: lb.IPv4, Protocol: lb.Any, Sources: []string{lb.Any}, Destinations: []netip.Addr{fourth(1)}, Ports: []string{lb.Any}}}
	some := limitedShare("a", SecurityLimit{Ranges: prefixesOf("192.0.2.0/24")}, 1)
	node := newManagedRule("allow_IPv4_n", 500, "20.0.0.1")
	node.DestinationPorts = []string{"30080"}
	atNode := limitedShare("a", SecurityLimit{}, 1)
	atNode.Places[0].Ports, atNode.Limit.Own[0].Ports = []int32{30080}, []string{"30080"}
	public, stays := newManagedRule("allow_IPv4_x", 500, "20.0.0.1"), "500 Allow Tcp Internet to 20.0.0.1:80"
	for _, tt := range []struct {
		name     string
		observed []lb.SecurityRule
		shares   []SecurityShare
		want     string
	}{
		{"nothing is opened", nil, []SecurityShare{some}, ""},
		{"fewer", []lb.SecurityRule{public}, []SecurityShare{some}, "500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80"},
		{"nobody", []lb.SecurityRule{public}, []SecurityShare{limitedShare("a", SecurityLimit{}, 1)}, ""},
		{"at other ports, too, at an address of its own", []lb.SecurityRule{other}, []SecurityShare{some}, "500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:443"},
		{"beside a neighbor", []lb.SecurityRule{public, other}, []SecurityShare{some, neighbor}, "501 Allow Tcp Internet to 20.0.0.1:443\n500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80"},
		{"beside one that is not understood", []lb.SecurityRule{public, other}, []SecurityShare{unknown, some}, "501 Allow Tcp Internet to 20.0.0.1:443\n500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80"},
		{"beside one that is limited", []lb.SecurityRule{public, other}, []SecurityShare{some, limitedAt443("b", SecurityLimit{Ranges: prefixesOf("198.51.100.0/24")})}, "500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80\n501 Allow Tcp 198.51.100.0/24 to 20.0.0.1:443"},
		{"another address of the rule stays", []lb.SecurityRule{newManagedRule("allow_IPv4_x", 500, "20.0.0.1", "20.0.0.2")}, []SecurityShare{some, newShare("b", 2)}, "500 Allow Tcp Internet to 20.0.0.2:80\n501 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80"},
		{"what denies stays", []lb.SecurityRule{public, deny}, []SecurityShare{some}, "4096 Deny * * to 20.0.0.1:*\n500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80"},
		{"all others are denied", []lb.SecurityRule{public}, []SecurityShare{alone}, "4096 Deny * * to 20.0.0.1:*\n500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80"},
		{"at its ports of an address of several", []lb.SecurityRule{public}, []SecurityShare{alone, unknown}, "4096 Deny Tcp * to 20.0.0.1:80\n500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80"},
		{"at its ports beside a neighbor", []lb.SecurityRule{public, other}, []SecurityShare{alone, neighbor}, "501 Allow Tcp Internet to 20.0.0.1:443\n4096 Deny Tcp * to 20.0.0.1:80\n500 Allow Tcp 192.0.2.0/24 to 20.0.0.1:80"},
		{"at a node", []lb.SecurityRule{node}, []SecurityShare{atNode}, ""},
		{"at a node, another Service's", []lb.SecurityRule{public}, []SecurityShare{atNode, {Service: "b", Fixed: true, Places: []SecurityPlace{{Addresses: []netip.Addr{fourth(1)}, Ports: []int32{80}}}}}, stays},
		{"contested", []lb.SecurityRule{public}, []SecurityShare{func() SecurityShare { s := limitedShare("a", SecurityLimit{}, 1); s.Fixed = true; return s }()}, stays},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := BuildSecurityPlan(SecurityInput{Observed: tt.observed, Shares: tt.shares, Managed: addressSet(1, 2)})
			if got := formatRules(p.Next); got != tt.want || len(p.Rejected) > 0 {
				t.Errorf("got\n%s\nwant\n%s\nrefused %v", got, tt.want, p.Rejected)
			}
			if second := BuildSecurityPlan(SecurityInput{Observed: p.Next, Shares: tt.shares, Managed: addressSet(1, 2)}); !second.IsEmpty() {
				t.Errorf("again: %+v", second.Changes)
			}
		})
	}
}

func limitedAt443(service string, l SecurityLimit) SecurityShare {
	s := limitedShare(service, l, 1)
	s.Limit.Own[0].Ports = []string{"443"}
	return s
}

// If the rules of a limit do not fit, all clients are removed.
func TestALimitWithoutRoomCloses(t *testing.T) {
	l := SecurityLimit{}
	for _, p := range manyRanges("a", 1, 4500).AccessRules[0].Sources {
		l.Ranges = append(l.Ranges, netip.MustParsePrefix(p))
	}
	p := BuildSecurityPlan(SecurityInput{Observed: []lb.SecurityRule{newManagedRule("allow_IPv4_x", 500, "20.0.0.1")}, Shares: []SecurityShare{limitedShare("a", l, 1)}, Managed: addressSet(1)})
	if len(p.Next) != 0 || len(p.Rejected) > 0 {
		t.Errorf("%s, refused %v", formatRules(p.Next), p.Rejected)
	}
}

// Property: limits admit nothing new and nothing of the Service beyond its limit, keep denials and other
// Services' flows, and a second plan is empty.
func TestLawALimitOpensNothing(t *testing.T) {
	clients := []string{"10.1.2.3", "10.200.0.1", "192.0.2.9", "203.0.113.1", "2001:db8:9::1"}
	admits := func(rules []lb.SecurityRule, client string, to netip.Addr, protocol, port string, access lb.Access) bool {
		from := netip.MustParseAddr(client)
		return slices.ContainsFunc(rules, func(r lb.SecurityRule) bool {
			return isManagedRule(r) && r.Access == access && (r.Protocol == lb.Any || strings.EqualFold(r.Protocol, protocol)) && slices.Contains(r.Destinations, to.String()) &&
				slices.ContainsFunc(r.DestinationPorts, func(p string) bool { return p == port || p == lb.Any }) &&
				slices.ContainsFunc(r.Sources, func(s string) bool {
					p, err := netip.ParsePrefix(s)
					return s == lb.Any || strings.EqualFold(s, "Internet") || err == nil && p.Contains(from)
				})
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		own := map[netip.Addr]bool{}
		for n := range 6 {
			own[fourth(n)], own[sixth(n)] = true, true
		}
		before := append(foreignRules(), neighborRule())
		var shares []SecurityShare
		port := map[string]string{"a": "80", "b": "443", "c": "8080"}
		for _, name := range []string{"a", "b", "c"} { // different ports at the same address
			s := drawShare(t, name)
			for i := range s.AccessRules {
				s.AccessRules[i].Ports = []string{port[name]}
				if s.AccessRules[i].Access == lb.Deny {
					s.AccessRules[i].Ports = []string{lb.Any}
				}
				s.Places = append(s.Places, SecurityPlace{Addresses: s.AccessRules[i].Destinations})
			}
			shares = append(shares, s)
		}
		before = BuildSecurityPlan(SecurityInput{Observed: before, Shares: shares, Managed: own}).Next
		current, limits := slices.Clone(shares), map[string]*SecurityLimit{}
		for i, s := range current {
			switch rapid.IntRange(0, 3).Draw(t, "is") {
			case 0:
				current[i] = SecurityShare{Service: s.Service, Fixed: true, Places: s.Places}
			case 1, 2:
				l := &SecurityLimit{Ranges: prefixesOf(rapid.SampledFrom([][]string{nil, {"10.1.0.0/16"}, {"10.0.0.0/8", "192.0.2.0/25"}}).Draw(t, "limit")...)}
				l.Own = slices.DeleteFunc(slices.Clone(s.AccessRules), func(a AccessRule) bool { return a.Access == lb.Deny })
				current[i], limits[s.Service] = SecurityShare{Service: s.Service, Places: s.Places, Limit: l}, l
			}
		}
		in := SecurityInput{Observed: before, Shares: current, Managed: own}
		after := BuildSecurityPlan(in).Next
		requireUnchanged(t, before, after)
		requireDistinct(t, after)
		for _, s := range shares {
			for _, a := range s.AccessRules {
				for _, to := range a.Destinations {
					for _, client := range clients {
						if netip.MustParseAddr(client).Is4() != to.Is4() {
							continue
						}
						for _, protocol := range []string{"Tcp", "Udp"} {
							old, ok := admits(before, client, to, protocol, port[s.Service], lb.Allow), admits(after, client, to, protocol, port[s.Service], lb.Allow)
							l, isLimited := limits[s.Service]
							allowed := !isLimited || slices.ContainsFunc(l.Ranges, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr(client)) })
							if ok != (old && allowed) {
								t.Fatalf("%s of %s to %s at %s: before %t, limited %t and allowed %t, after %t\nbefore\n%s\nafter\n%s", protocol, client, to, port[s.Service], old, isLimited, allowed, ok, formatRules(before), formatRules(after))
							}
							if denied := admits(before, client, to, protocol, port[s.Service], lb.Deny); denied != admits(after, client, to, protocol, port[s.Service], lb.Deny) {
								t.Fatalf("denials at %s: before %t\n%s\nafter\n%s", to, denied, formatRules(before), formatRules(after))
							}
						}
					}
				}
			}
		}
		in.Observed = after
		if second := BuildSecurityPlan(in); !second.IsEmpty() {
			t.Fatalf("again: %s", cmp.Diff(after, second.Next))
		}
	})
}
