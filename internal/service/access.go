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
	// NoSecurityRules is true if the Service gets no security rules.
	NoSecurityRules bool
	// Ranges and Tags are the allowed sources, if any. The ranges do not overlap.
	Ranges []netip.Prefix
	Tags   []string
	// HasRestriction is true if the user restricts sources, even if no value is valid.
	HasRestriction bool
	// DenyOthers denies all other sources, including the virtual network.
	DenyOthers bool
	// Additional are further destination addresses of the Service. They are allowed on its ports, but never
	// denied, because other Services may use them.
	Additional []netip.Addr
}

// IsLimited reports whether the user restricts sources.
func (a Access) IsLimited() bool { return a.HasRestriction || len(a.Ranges)+len(a.Tags) > 0 }

// isNarrower reports whether every client that a admits was admitted by old.
func (a Access) isNarrower(old Access, internal bool) bool {
	if reflect.DeepEqual(a, old) {
		return true
	}
	if a.NoSecurityRules || old.NoSecurityRules || old.DenyOthers && !a.DenyOthers || !a.IsLimited() {
		return false
	}
	if !isSubset(a.Additional, old.Additional) {
		return false
	}
	if !old.IsLimited() {
		return !internal // an internal Service admits the virtual network only
	}
	return isSubset(a.Tags, old.Tags) && !slices.ContainsFunc(a.Ranges, func(p netip.Prefix) bool {
		return !slices.ContainsFunc(old.Ranges, func(o netip.Prefix) bool { return o.Bits() <= p.Bits() && o.Contains(p.Addr()) })
	})
}

func isSubset[T comparable](subset, items []T) bool {
	return !slices.ContainsFunc(subset, func(v T) bool { return !slices.Contains(items, v) })
}

// IsNarrower reports whether s differs from old only in admitting fewer clients.
func (spec *Spec) IsNarrower(old *Spec) bool {
	if spec == nil || old == nil {
		return false
	}
	before := *old
	before.Access, before.Flaws = spec.Access, spec.Flaws
	return spec.Access.isNarrower(old.Access, spec.Internal) && reflect.DeepEqual(before, *spec)
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
	restriction := Restriction{Access: r.parseAccess(s), Internal: r.readBool(Internal) || isInvalidBool(r.readText(Internal))}
	restriction.Flaws = r.items
	return restriction
}

// Restriction returns the Restriction of a valid Service.
func (spec *Spec) Restriction() Restriction {
	return Restriction{Access: spec.Access, Internal: spec.Internal}
}

// IsOpen reports whether the Restriction denies no client.
func (r Restriction) IsOpen() bool {
	return r.Access.NoSecurityRules || !r.Access.IsLimited() && !r.Internal
}

// IsWithin reports whether other certainly admits every client that r admits.
func (r Restriction) IsWithin(other Restriction) bool {
	return r.Internal == other.Internal && r.Access.isNarrower(other.Access, r.Internal)
}

func (r *reader) parseAccess(s Service) Access {
	a := Access{
		NoSecurityRules: r.readRestriction(DisableSecurityRules, false, effectKeepRules), DenyOthers: r.readRestriction(DenyAllExcept, true, effectDenyOthers),
		HasRestriction: len(s.restrictionFields()) > 0 || isInvalidBool(r.readText(DisableSecurityRules)), Additional: r.parseAdditional(),
	}
	from := "spec.loadBalancerSourceRanges"
	ranges := r.parseRanges(from, s.SourceRanges)
	if len(s.SourceRanges) == 0 { // same precedence as Kubernetes
		from = SourceRanges
		ranges = r.parseRanges(from, r.readRanges(from))
	}
	more := r.parseRanges(AllowedIPRanges, r.readRanges(AllowedIPRanges))
	if len(more) > len(ranges) {
		from = AllowedIPRanges // the field with more ranges
	}
	a.Ranges = removeContained(slices.Concat(ranges, more))
	if n := len(a.Ranges); n > maxRanges {
		r.addFlaw(from, fmt.Sprintf("%d ranges, without those that are within others", n),
			fmt.Sprintf("at most %d: Azure's limit of sources of all rules of a security group", maxRanges), effectIgnoreValue)
		a.Ranges = nil
	}
	a.Tags = r.parseServiceTags()
	if len(a.Additional) > 0 && r.readBool(HAPorts) {
		r.addProblem(AdditionalIPs, r.annotations[AdditionalIPs], "no "+HAPorts+" beside it: a further address is opened on the Service's ports alone")
	}
	if a.IsLimited() && !a.NoSecurityRules && r.readBool(HAPorts) && r.readBool(DisableFloatingIP) {
		r.addProblem(HAPorts, "true", "no "+DisableFloatingIP+" beside it with a source restriction: that would be opened, or closed, on all ports of all nodes")
	}
	return a
}

// readRanges returns the words of an annotation, or its value if that has only separators: it names no client,
// which differs from no restriction.
func (r *reader) readRanges(name string) []string {
	text, ok := r.readText(name)
	words := strings.FieldsFunc(text, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
	if ok && len(words) == 0 {
		return []string{text}
	}
	return words
}

func (r *reader) parseRanges(field string, texts []string) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range texts {
		text = strings.TrimSpace(text)
		p, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			r.addFlaw(field, text, "CIDRs such as 192.0.2.0/24 or 2001:db8::/32", effectIgnoreValue)
		case p.Addr().Is4In6():
			r.addFlaw(field, text, "the IPv4 range itself, such as 192.0.2.0/24", effectIgnoreValue)
		case p != p.Masked():
			r.addFlaw(field, text, "the range as "+p.Masked().String()+", or the one address as "+singlePrefix(p.Addr()).String(), effectIgnoreValue)
		default:
			prefixes = append(prefixes, p)
		}
	}
	return prefixes
}

func singlePrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// removeContained removes ranges within others, because Azure rejects overlapping ranges in a rule. In this order a
// range precedes those it contains.
func removeContained(prefixes []netip.Prefix) []netip.Prefix {
	slices.SortFunc(prefixes, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	var kept []netip.Prefix
	for _, p := range prefixes {
		if len(kept) == 0 || !kept[len(kept)-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

// tagRule matches service tags with an optional region; only Azure knows which exist. See
// https://learn.microsoft.com/azure/virtual-network/service-tags-overview
var tagRule = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(\.[A-Za-z0-9_-]+)*$`)

func (r *reader) parseServiceTags() []string {
	var tags []string
	known := map[string]bool{}
	texts := r.readList(AllowedServiceTags)
	if value, ok := r.readText(AllowedServiceTags); ok && len(texts) == 0 {
		texts = []string{value} // only separators
	}
	for _, text := range texts {
		folded := strings.ToLower(text)
		switch {
		case !tagRule.MatchString(text):
			r.addFlaw(AllowedServiceTags, text, "service tags such as AzureFrontDoor.Backend; address ranges are for "+AllowedIPRanges, effectIgnoreValue)
		case !known[folded]:
			known[folded] = true
			tags = append(tags, text)
		}
	}
	if n := len(tags); n > maxServiceTags {
		r.addFlaw(AllowedServiceTags, fmt.Sprintf("%d service tags", n), fmt.Sprintf("at most %d: each is a rule, and this is Azure's limit in a security group", maxServiceTags), effectIgnoreValue)
		return nil
	}
	return tags
}

// parseAdditional returns the addresses of load balancers in front of this one.
func (r *reader) parseAdditional() []netip.Addr {
	var addresses []netip.Addr
	known := map[netip.Addr]bool{}
	for _, text := range r.readList(AdditionalIPs) {
		family := lb.IPv4
		if strings.Contains(text, ":") {
			family = lb.IPv6
		}
		switch ip := r.parseAddress(AdditionalIPs, text, family); {
		case !ip.IsValid():
		case !isPublicAddress(ip):
			r.addProblem(AdditionalIPs, text, "a public address: those of nodes, pods and private networks are opened by no Service")
		case !known[ip]:
			known[ip] = true
			addresses = append(addresses, ip)
		}
	}
	if r.exceedsLimit(AdditionalIPs, len(addresses), maxAdditional, "addresses", "Azure's limit of destinations of all rules of a security group") {
		return nil
	}
	return addresses
}

// notPublic are ranges that a load balancer in front cannot use: private, link-local, Azure platform
// (168.63.129.16) and multicast addresses. See https://www.iana.org/assignments/iana-ipv4-special-registry
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
}

var global = netip.MustParsePrefix("2000::/3")

// isPublicAddress reports whether a public load balancer can have the address. Others belong to nodes, pods and
// machines.
func isPublicAddress(a netip.Addr) bool {
	if !a.Is4() {
		return global.Contains(a)
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// maxParsedAddresses limits parsing of a Service that is not validated.
const maxParsedAddresses = 100

// ParseAdditional returns the valid addresses in a value of annotation AdditionalIPs.
func ParseAdditional(value string) []netip.Addr {
	var addresses []netip.Addr
	for _, text := range strings.SplitN(value, ",", maxParsedAddresses+1)[:min(maxParsedAddresses, strings.Count(value, ",")+1)] {
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && isPublicAddress(a) {
			addresses = append(addresses, a)
		}
	}
	return addresses
}

// Limits of one Service. Each is an Azure limit, so more would fail only after delaying other Services. See
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const (
	maxRanges         = lb.MaxSecurityPrefixes
	maxServiceTags    = lb.MaxSecurityRules // each is a separate rule
	maxAdditional     = lb.MaxSecurityPrefixes
	maxServiceRules   = 1500 // of a Standard load balancer
	maxConfigurations = 1000 // load balancers of a subscription per region
	maxIPTags         = lb.MaxTags
)

const maxProblems = 10

// exceedsLimit reports whether n exceeds the limit, and records the problem. unit names the listed items.
func (r *reader) exceedsLimit(field string, n, limit int, unit, because string) bool {
	if n <= limit {
		return false
	}
	r.addProblem(field, fmt.Sprintf("%d %s", n, unit), fmt.Sprintf("at most %d: %s", limit, because))
	return true
}
