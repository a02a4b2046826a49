// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Annotations of Private Link Services. See https://cloud-provider-azure.sigs.k8s.io/topics/pls-integration/
const (
	PLSCreate        = prefix + "azure-pls-create"
	PLSName          = prefix + "azure-pls-name"
	PLSResourceGroup = prefix + "azure-pls-resource-group"
	PLSSubnet        = prefix + "azure-pls-ip-configuration-subnet"
	PLSCount         = prefix + "azure-pls-ip-configuration-ip-address-count"
	PLSAddresses     = prefix + "azure-pls-ip-configuration-ip-address"
	PLSFQDNs         = prefix + "azure-pls-fqdns"
	PLSProxyProtocol = prefix + "azure-pls-proxy-protocol"
	PLSVisibility    = prefix + "azure-pls-visibility"
	PLSAutoApproval  = prefix + "azure-pls-auto-approval"
)

// Owner tags of Private Link Services. The cluster's is TagCluster.
const (
	TagLinkOwner = "k8s-azure-owner-service"
	// TagLinkOwnerBefore is the tag in earlier releases of cloud-provider-azure.
	TagLinkOwnerBefore = "kubernetes-owner-service"
)

// PrivateLink is the Private Link Service that a Service requests.
type PrivateLink struct {
	// Name and ResourceGroup are empty if not set.
	Name, ResourceGroup string
	// Subnet is the subnet of the NAT addresses; empty if neither the Service nor azure.json sets one.
	Subnet string
	// Addresses are the static ones of Count, the primary first.
	Addresses     []netip.Addr
	Count         int
	FQDNs         []string
	ProxyProtocol bool
	// Visibility and AutoApproval are sorted subscription IDs; "*" is all.
	Visibility, AutoApproval []string
	// SetAnnotations are the annotations that are set. Others follow the owner's values in a shared Private Link
	// Service.
	SetAnnotations map[string]string
}

// AllSubscriptions means all subscriptions.
const AllSubscriptions = "*"

// Limits of one Service.
const (
	maxFQDNs         = 100  // of a Private Link Service (assumed)
	maxSubscriptions = 1000 // each needs a private endpoint; this is Azure's limit for one Private Link Service
	maxFQDNLength    = 253
)

// LinkOf returns the requested Private Link Service, nil if none, or the problems, in which case nothing must
// be changed. Without PLSCreate the other annotations are ignored.
func LinkOf(s Service, set Settings) (*PrivateLink, []Problem) {
	r := linkReader{&reader{annotations: s.Annotations}}
	if !r.readBool(PLSCreate) {
		return nil, r.problems
	}
	l := &PrivateLink{ProxyProtocol: r.readBool(PLSProxyProtocol), SetAnnotations: map[string]string{}}
	for _, name := range []string{PLSName, PLSResourceGroup, PLSSubnet, PLSCount, PLSAddresses, PLSFQDNs, PLSProxyProtocol, PLSVisibility, PLSAutoApproval} {
		if value, ok := r.readText(name); ok {
			l.SetAnnotations[name] = value
		}
	}
	r.parsePlace(l, s, set)
	l.Count = int(r.readNumber(PLSCount, "", 1, lb.MaxNATAddresses, 1))
	l.Addresses = r.natAddresses(l.Count)
	l.FQDNs = r.parseFQDNs()
	l.Visibility, l.AutoApproval = r.parseSubscriptions(PLSVisibility), r.parseSubscriptions(PLSAutoApproval)
	r.checkVisibility(l)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return l, nil
}

type linkReader struct{ *reader }

func (r linkReader) parsePlace(l *PrivateLink, s Service, set Settings) {
	id := lb.ResourceID{SubscriptionID: "s", ResourceGroup: "g", Type: lb.TypePrivateLinkService, Name: "n"}
	var named, placed bool
	if l.Name, named = r.readText(PLSName); named {
		at := id
		at.Name = l.Name
		if at.Validate() != nil {
			r.addProblem(PLSName, l.Name, "the name of a Private Link Service: 1 to 80 letters, digits, '_', '-' or '.'")
		}
	}
	if l.ResourceGroup, placed = r.readText(PLSResourceGroup); placed {
		at := id
		at.ResourceGroup = l.ResourceGroup
		if at.Validate() != nil {
			r.addProblem(PLSResourceGroup, l.ResourceGroup, "the name of a resource group")
		}
	}
	from := PLSSubnet
	if _, ok := r.readText(from); !ok && r.readBool(Internal) {
		from = InternalSubnet
	}
	subnet, ok := r.readText(from)
	switch {
	case !ok:
		subnet = set.Subnet
	case !subnetRule.MatchString(subnet):
		r.addProblem(from, subnet, "the name of a subnet of the cluster's virtual network")
	}
	if set.VirtualNetwork == "" || subnet == "" {
		r.addProblem(PLSCreate, "true", "vnetName and subnetName in azure.json, or "+PLSSubnet)
	}
	l.Subnet = subnet
}

// natAddresses parses the static addresses, separated by whitespace only.
func (r linkReader) natAddresses(count int) []netip.Addr {
	text, _ := r.readText(PLSAddresses)
	fields := strings.Fields(text)
	if len(fields) > count {
		r.addProblem(PLSAddresses, text, fmt.Sprintf("no more addresses than %s, which is %d", PLSCount, count))
		return nil
	}
	var addresses []netip.Addr
	for _, field := range fields {
		ip, err := netip.ParseAddr(field)
		switch {
		case err != nil || !ip.Is4():
			r.addProblem(PLSAddresses, field, "IPv4 addresses that are separated by spaces, such as 10.0.0.7 10.0.0.8")
		case slices.Contains(addresses, ip):
			r.addProblem(PLSAddresses, text, "each address once")
		default:
			addresses = append(addresses, ip)
		}
	}
	return addresses
}

// fqdnRule matches DNS names without wildcards.
var fqdnRule = regexp.MustCompile(`^[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?(\.[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?)*\.?$`)

func (r linkReader) parseFQDNs() []string {
	text, _ := r.readText(PLSFQDNs)
	var fqdns []string
	for _, name := range strings.Fields(text) {
		switch {
		case len(name) > maxFQDNLength || !fqdnRule.MatchString(name):
			r.addProblem(PLSFQDNs, name, "names such as web.example.com that are separated by spaces")
			return nil
		case !slices.ContainsFunc(fqdns, func(have string) bool { return strings.EqualFold(have, name) }):
			fqdns = append(fqdns, name)
		}
		if r.exceedsLimit(PLSFQDNs, len(fqdns), maxFQDNs, "names", "more are of no use to consumers") {
			return nil
		}
	}
	return fqdns
}

var subscriptionRule = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// parseSubscriptions parses IDs into a sorted lower-case list without duplicates; only PLSVisibility also accepts
// "*".
func (r linkReader) parseSubscriptions(name string) []string {
	text, _ := r.readText(name)
	want := "ids of subscriptions, separated by spaces"
	if name == PLSVisibility {
		if text == AllSubscriptions {
			return []string{AllSubscriptions}
		}
		want += `, or "*" alone for all of them`
	}
	var subscriptions []string
	known := map[string]bool{}
	for _, id := range strings.Fields(text) {
		if !subscriptionRule.MatchString(id) {
			r.addProblem(name, id, want)
			return nil
		}
		if id = strings.ToLower(id); !known[id] {
			known[id] = true
			subscriptions = append(subscriptions, id)
		}
	}
	if r.exceedsLimit(name, len(subscriptions), maxSubscriptions, "subscriptions", "Azure's limit of private endpoints on a Private Link Service") {
		return nil
	}
	slices.Sort(subscriptions)
	return subscriptions
}

// checkVisibility rejects automatic approval of subscriptions without visibility.
func (r linkReader) checkVisibility(l *PrivateLink) {
	if slices.Contains(l.Visibility, AllSubscriptions) {
		return
	}
	for _, id := range l.AutoApproval {
		if _, found := slices.BinarySearch(l.Visibility, id); !found {
			r.addProblem(PLSAutoApproval, id, "subscriptions that "+PLSVisibility+" has, too: no other can request a connection")
		}
	}
}

// formatAnnotation formats the effective value of an annotation for messages and comparison.
func (l *PrivateLink) formatAnnotation(name string) string {
	switch name {
	case PLSName:
		return l.Name
	case PLSResourceGroup:
		return strings.ToLower(l.ResourceGroup)
	case PLSSubnet:
		return strings.ToLower(l.Subnet)
	case PLSCount:
		return strconv.Itoa(l.Count)
	case PLSAddresses:
		return strings.Trim(fmt.Sprint(l.Addresses), "[]")
	case PLSFQDNs:
		return strings.ToLower(strings.Join(slices.Sorted(slices.Values(l.FQDNs)), " "))
	case PLSProxyProtocol:
		return strconv.FormatBool(l.ProxyProtocol)
	case PLSVisibility:
		return strings.Join(l.Visibility, " ")
	}
	return strings.Join(l.AutoApproval, " ")
}

// DiffFromOwner returns the annotations that differ from those of the owner of a shared Private Link Service.
func (l *PrivateLink) DiffFromOwner(owner *PrivateLink, ownerKey string) []Problem {
	var problems []Problem
	for _, name := range []string{PLSName, PLSResourceGroup, PLSSubnet, PLSCount, PLSAddresses, PLSFQDNs, PLSProxyProtocol, PLSVisibility, PLSAutoApproval} {
		value, ok := l.SetAnnotations[name]
		text := owner.formatAnnotation(name)
		if !ok || strings.EqualFold(l.formatAnnotation(name), text) {
			continue
		}
		want := strconv.Quote(truncateValue(text)) + ", as Service " + ownerKey + " has it"
		if text == "" {
			want = "none, as Service " + ownerKey + " has none"
		}
		problems = append(problems, Problem{name, value, want + ", which owns their Private Link Service: it is changed there alone"})
	}
	return problems
}
