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

// Access says who may open connections to a Service. The rules of the network's security
// group follow from it.
type Access struct {
	// Unruled is true if no security rules are made for the Service.
	Unruled bool
	// Ranges and Tags are who may enter, if there are any; none of the ranges is within
	// another one.
	Ranges []netip.Prefix
	Tags   []string
	// Restricted is true if people said who may enter, whether or not anything of that is valid.
	Restricted bool
	// Alone is true if they are the only ones, in the virtual network too.
	Alone bool
	// Additional are further addresses at which flows for the Service arrive. They are opened
	// on its ports, and never closed: they are not its own.
	Additional []netip.Addr
}

// Limited reports whether people said who may enter.
func (a Access) Limited() bool { return a.Restricted || len(a.Ranges)+len(a.Tags) > 0 }

// narrows reports whether every client that this admits was admitted by another one.
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
		return !internal // an internal one admits the virtual network alone
	}
	return within(a.Tags, was.Tags) && !slices.ContainsFunc(a.Ranges, func(p netip.Prefix) bool {
		return !slices.ContainsFunc(was.Ranges, func(o netip.Prefix) bool { return o.Bits() <= p.Bits() && o.Contains(p.Addr()) })
	})
}

func within[T comparable](some, all []T) bool {
	return !slices.ContainsFunc(some, func(one T) bool { return !slices.Contains(all, one) })
}

// Narrows reports whether a Service wants what it wanted before, but for fewer clients that may connect.
func (s *Spec) Narrows(was *Spec) bool {
	if s == nil || was == nil {
		return false
	}
	before := *was
	before.Access, before.Flaws = s.Access, s.Flaws
	return s.Access.narrows(was.Access, s.Internal) && reflect.DeepEqual(before, *s)
}

// Restriction is the upper bound of the clients of a Service. Its valid parts count even if the Service is invalid.
type Restriction struct {
	Access   Access
	Internal bool
	// Flaws are what is wrong with the Access.
	Flaws []Flaw
}

// RestrictionOf reads the Restriction of a Service. An unclear value of the annotation Internal counts as "true".
func RestrictionOf(s Service) Restriction {
	r := &reader{annotations: s.Annotations}
	is := Restriction{Access: r.access(s), Internal: r.yes(Internal) || unclear(r.text(Internal))}
	is.Flaws = r.flaws.flaws
	return is
}

// Restriction is that of a valid Service.
func (s *Spec) Restriction() Restriction { return Restriction{Access: s.Access, Internal: s.Internal} }

// IsOpen reports whether Weir denies no client by a Restriction.
func (r Restriction) IsOpen() bool { return r.Access.Unruled || !r.Access.Limited() && !r.Internal }

// IsWithin reports whether another Restriction certainly admits every client that this one admits.
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
	if len(s.SourceRanges) == 0 { // as Kubernetes has it
		from = SourceRanges
		text, _ := r.text(from)
		ranges = r.ranges(from, words(text))
	}
	text, _ := r.text(AllowedIPRanges)
	more := r.ranges(AllowedIPRanges, words(text))
	if len(more) > len(ranges) {
		from = AllowedIPRanges // where most of them are
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

// words reads what is separated by commas, space, or both.
func words(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
}

// ranges reads CIDRs.
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

// collapse leaves out ranges that are within others: Azure takes no two that overlap in one
// rule. In this order a range comes before all that are within it, and these right behind it.
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

// tagRule is what service tags look like, a region behind a dot included. Which there are
// only Azure knows.
// https://learn.microsoft.com/azure/virtual-network/service-tags-overview
var tagRule = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9_-]+)*$`)

// serviceTags reads the tags, each once.
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

// additional reads the addresses that a load balancer in front of this one has.
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

// notPublic are the ranges that no load balancer in front of this one has its address in: those
// of private networks, of machines themselves, of Azure's own services at 168.63.129.16, and of
// groups.
// https://www.iana.org/assignments/iana-ipv4-special-registry
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
}

// global is where all public addresses of IPv6 are.
var global = netip.MustParsePrefix("2000::/3")

// public reports whether an address can be that of a public load balancer. All others are
// nodes', pods' and machines' of private networks, and closed or open for reasons of theirs.
func public(a netip.Addr) bool {
	if !a.Is4() {
		return global.Contains(a)
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// mostNamed bounds what is read of an annotation whose Service is not looked at.
const mostNamed = 100

// AdditionalOf returns the addresses that a value of the annotation AdditionalIPs names, as far
// as a Service may name them.
func AdditionalOf(value string) []netip.Addr {
	var all []netip.Addr
	for _, text := range strings.SplitN(value, ",", mostNamed+1)[:min(mostNamed, strings.Count(value, ",")+1)] {
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && public(a) {
			all = append(all, a)
		}
	}
	return all
}

// What one Service may list. Each is what Azure takes in all, so whoever lists more would be
// refused there, after everybody else has waited for the work.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const (
	mostRanges         = lb.MostSecurityPrefixes
	mostServiceTags    = lb.MostSecurityRules // each is a rule of its own
	mostAdditional     = lb.MostSecurityPrefixes
	mostRules          = 1500 // of a Standard load balancer
	mostConfigurations = 1000 // load balancers of a subscription in a region
	mostIPTags         = lb.MostTags
)

// mostProblems is how many problems of one Service are told: whoever mends these hears of the
// others.
const mostProblems = 10

// tooMany says that a list is too long, and reports so. unit says what is listed.
func (r *reader) tooMany(field string, n, most int, unit, because string) bool {
	if n <= most {
		return false
	}
	r.wrong(field, fmt.Sprintf("%d %s", n, unit), fmt.Sprintf("at most %d: %s", most, because))
	return true
}
