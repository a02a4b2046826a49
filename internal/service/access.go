// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"weir.dev/weir/internal/lb"
)

// Access defines which clients may connect to a Service. It determines the security rules.
type Access struct {
	// Unruled is true if the Service gets no security rules.
	Unruled bool
	// Ranges and Tags are the allowed sources, if any. The ranges do not overlap.
	Ranges []netip.Prefix
	Tags   []string
	// Restricted is true if the user restricts sources, even if no value is valid.
	Restricted bool
	// Alone denies all other sources, including the virtual network.
	Alone bool
	// Additional are further destination addresses of the Service. They are allowed on its ports, but never
	// denied, because other Services may use them.
	Additional []netip.Addr
}

// Limited reports whether the user restricts sources.
func (a Access) Limited() bool { return a.Restricted || len(a.Ranges)+len(a.Tags) > 0 }

// narrows reports whether every client that a admits was admitted by was.
func (a Access) narrows(was Access, internal bool) bool {
	if reflect.DeepEqual(a, was) {
		return true
	}
	if a.Unruled || was.Unruled || was.Alone && !a.Alone || !a.Limited() {
		return false
	}
	if !within(a.Additional, was.Additional) {
		return false
	}
	if !was.Limited() {
		return !internal // an internal Service admits the virtual network only
	}
	return within(a.Tags, was.Tags) && !slices.ContainsFunc(a.Ranges, func(p netip.Prefix) bool {
		return !slices.ContainsFunc(was.Ranges, func(o netip.Prefix) bool { return o.Bits() <= p.Bits() && o.Contains(p.Addr()) })
	})
}

func within[T comparable](some, all []T) bool {
	return !slices.ContainsFunc(some, func(one T) bool { return !slices.Contains(all, one) })
}

// Narrows reports whether s differs from was only in admitting fewer clients.
func (s *Spec) Narrows(was *Spec) bool {
	if s == nil || was == nil {
		return false
	}
	before := *was
	before.Access, before.Flaws = s.Access, s.Flaws
	return s.Access.narrows(was.Access, s.Internal) && reflect.DeepEqual(before, *s)
}

// Restriction is the upper bound of a Service's clients. Its valid parts apply even if the Service is
// invalid.
type Restriction struct {
	Access   Access
	Internal bool
	// Flaws are the errors in Access.
	Flaws []Flaw
}

// RestrictionOf returns the Restriction of a Service. An invalid value of annotation Internal counts as
// "true".
func RestrictionOf(s Service) Restriction {
	r := &reader{annotations: s.Annotations}
	is := Restriction{Access: r.access(s), Internal: r.yes(Internal) || unclear(r.text(Internal))}
	is.Flaws = r.flaws.flaws
	return is
}

// Restriction returns the Restriction of a valid Service.
func (s *Spec) Restriction() Restriction { return Restriction{Access: s.Access, Internal: s.Internal} }

// IsOpen reports whether the Restriction denies no client.
func (r Restriction) IsOpen() bool { return r.Access.Unruled || !r.Access.Limited() && !r.Internal }

// IsWithin reports whether other certainly admits every client that r admits.
func (r Restriction) IsWithin(other Restriction) bool {
	return r.Internal == other.Internal && r.Access.narrows(other.Access, r.Internal)
}

func (r *reader) access(s Service) Access {
	a := Access{
		Unruled: r.strictly(DisableSecurityRules, false, keepsRules), Alone: r.strictly(DenyAllExcept, true, deniesOthers),
		Restricted: len(s.limits()) > 0 || unclear(r.text(DisableSecurityRules)), Additional: r.additional(),
	}
	from := "spec.loadBalancerSourceRanges"
	ranges := r.ranges(from, s.SourceRanges)
	if len(s.SourceRanges) == 0 { // same precedence as Kubernetes
		from = SourceRanges
		text, _ := r.text(from)
		ranges = r.ranges(from, words(text))
	}
	text, _ := r.text(AllowedIPRanges)
	more := r.ranges(AllowedIPRanges, words(text))
	if len(more) > len(ranges) {
		from = AllowedIPRanges // the field with more ranges
	}
	a.Ranges = collapse(slices.Concat(ranges, more))
	if n := len(a.Ranges); n > mostRanges {
		r.flawed(from, fmt.Sprintf("%d ranges, without those that are within others", n),
			fmt.Sprintf("at most %d: Azure takes no more as sources of all rules of a security group", mostRanges), admitsNobody)
		a.Ranges = nil
	}
	a.Tags = r.serviceTags()
	if len(a.Additional) > 0 && r.yes(HAPorts) {
		r.wrong(AdditionalIPs, r.annotations[AdditionalIPs], "no "+HAPorts+" beside it: a further address is opened on the Service's ports alone")
	}
	if a.Limited() && !a.Unruled && r.yes(HAPorts) && r.yes(DisableFloatingIP) {
		r.wrong(HAPorts, "true", "no "+DisableFloatingIP+" beside it where it is said who may connect: that would be opened, or closed, on all ports of all nodes")
	}
	return a
}

func words(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
}

func (r *reader) ranges(field string, texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			r.flawed(field, text, "CIDRs such as 192.0.2.0/24 or 2001:db8::/32", admitsNobody)
		case p.Addr().Is4In6():
			r.flawed(field, text, "the IPv4 range itself, such as 192.0.2.0/24", admitsNobody)
		case p != p.Masked():
			r.flawed(field, text, "the range as "+p.Masked().String()+", or the one address as "+single(p.Addr()).String(), admitsNobody)
		default:
			all = append(all, p)
		}
	}
	return all
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// collapse removes ranges within others, because Azure rejects overlapping ranges in a rule. In this order a
// range precedes those it contains.
func collapse(all []netip.Prefix) []netip.Prefix {
	slices.SortFunc(all, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	var kept []netip.Prefix
	for _, p := range all {
		if len(kept) == 0 || !kept[len(kept)-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// tagRule matches service tags with an optional region; only Azure knows which exist. See
// https://learn.microsoft.com/azure/virtual-network/service-tags-overview
var tagRule = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9_-]+)*$`)

func (r *reader) serviceTags() []string {
	var tags []string
	known := map[string]bool{}
	for _, text := range r.list(AllowedServiceTags) {
		folded := strings.ToLower(text)
		switch {
		case !tagRule.MatchString(text):
			r.flawed(AllowedServiceTags, text, "service tags such as AzureFrontDoor.Backend; address ranges are for "+AllowedIPRanges, admitsNobody)
		case !known[folded]:
			known[folded] = true
			tags = append(tags, text)
		}
	}
	if n := len(tags); n > mostServiceTags {
		r.flawed(AllowedServiceTags, fmt.Sprintf("%d service tags", n), fmt.Sprintf("at most %d: each is a rule, and Azure takes no more in a security group", mostServiceTags), admitsNobody)
		return nil
	}
	return tags
}

// additional returns the addresses of load balancers in front of this one.
func (r *reader) additional() []netip.Addr {
	var all []netip.Addr
	known := map[netip.Addr]bool{}
	for _, text := range r.list(AdditionalIPs) {
		family := lb.IPv4
		if strings.Contains(text, ":") {
			family = lb.IPv6
		}
		switch ip := r.address(AdditionalIPs, text, family); {
		case !ip.IsValid():
		case !public(ip):
			r.wrong(AdditionalIPs, text, "a public address: those of nodes, pods and private networks are opened by no Service")
		case !known[ip]:
			known[ip] = true
			all = append(all, ip)
		}
	}
	if r.tooMany(AdditionalIPs, len(all), mostAdditional, "addresses", "Azure takes no more as destinations of all rules of a security group") {
		return nil
	}
	return all
}

// notPublic are ranges that a load balancer in front cannot use: private, link-local, Azure platform
// (168.63.129.16) and multicast addresses. See https://www.iana.org/assignments/iana-ipv4-special-registry
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
}

var global = netip.MustParsePrefix("2000::/3")

// public reports whether a public load balancer can have the address. Others belong to nodes, pods and
// machines.
func public(a netip.Addr) bool {
	if !a.Is4() {
		return global.Contains(a)
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// mostNamed limits parsing of a Service that is not validated.
const mostNamed = 100

// AdditionalOf returns the valid addresses in a value of annotation AdditionalIPs.
func AdditionalOf(value string) []netip.Addr {
	var all []netip.Addr
	for _, text := range strings.SplitN(value, ",", mostNamed+1)[:min(mostNamed, strings.Count(value, ",")+1)] {
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && public(a) {
			all = append(all, a)
		}
	}
	return all
}

// Limits of one Service. Each is an Azure limit, so more would fail only after delaying other Services. See
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const (
	mostRanges         = lb.MostSecurityPrefixes
	mostServiceTags    = lb.MostSecurityRules // each is a separate rule
	mostAdditional     = lb.MostSecurityPrefixes
	mostRules          = 1500 // of a Standard load balancer
	mostConfigurations = 1000 // load balancers of a subscription per region
	mostIPTags         = lb.MostTags
)

const mostProblems = 10

// tooMany reports whether n exceeds the limit, and records the problem. unit names the listed items.
func (r *reader) tooMany(field string, n, limit int, unit, because string) bool {
	if n <= limit {
		return false
	}
	r.wrong(field, fmt.Sprintf("%d %s", n, unit), fmt.Sprintf("at most %d: %s", limit, because))
	return true
}
