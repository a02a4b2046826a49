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
	// Said are the annotations that are set. Others follow the owner's values in a shared Private Link
	// Service.
	Said map[string]string
}

// Everybody means all subscriptions.
const Everybody = "*"

// Limits of one Service.
const (
	mostFQDNs         = 100  // of a Private Link Service (assumed)
	mostSubscriptions = 1000 // each needs a private endpoint; this is Azure's limit for one Private Link Service
	mostFQDN          = 253
)

// LinkOf returns the requested Private Link Service, nil if none, or the problems, in which case nothing must
// be changed. Without PLSCreate the other annotations are ignored.
func LinkOf(s Service, set Settings) (*PrivateLink, []Problem) {
	r := linkReader{&reader{annotations: s.Annotations}}
	if !r.yes(PLSCreate) {
		return nil, r.problems
	}
	l := &PrivateLink{ProxyProtocol: r.yes(PLSProxyProtocol), Said: map[string]string{}}
	for _, name := range []string{PLSName, PLSResourceGroup, PLSSubnet, PLSCount, PLSAddresses, PLSFQDNs, PLSProxyProtocol, PLSVisibility, PLSAutoApproval} {
		if value, ok := r.text(name); ok {
			l.Said[name] = value
		}
	}
	r.place(l, s, set)
	l.Count = int(r.number(PLSCount, "", 1, lb.MostNATAddresses, 1))
	l.Addresses = r.natAddresses(l.Count)
	l.FQDNs = r.fqdns()
	l.Visibility, l.AutoApproval = r.subscriptions(PLSVisibility), r.subscriptions(PLSAutoApproval)
	r.withinVisibility(l)
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	return l, nil
}

type linkReader struct{ *reader }

func (r linkReader) place(l *PrivateLink, s Service, set Settings) {
	id := lb.ResourceID{SubscriptionID: "s", ResourceGroup: "g", Type: lb.TypePrivateLinkService, Name: "n"}
	var named, placed bool
	if l.Name, named = r.text(PLSName); named {
		at := id
		at.Name = l.Name
		if at.Validate() != nil {
			r.wrong(PLSName, l.Name, "the name of a Private Link Service: 1 to 80 letters, digits, '_', '-' or '.'")
		}
	}
	if l.ResourceGroup, placed = r.text(PLSResourceGroup); placed {
		at := id
		at.ResourceGroup = l.ResourceGroup
		if at.Validate() != nil {
			r.wrong(PLSResourceGroup, l.ResourceGroup, "the name of a resource group")
		}
	}
	from := PLSSubnet
	if _, ok := r.text(from); !ok && r.yes(Internal) {
		from = InternalSubnet
	}
	subnet, ok := r.text(from)
	switch {
	case !ok:
		subnet = set.Subnet
	case !subnetRule.MatchString(subnet):
		r.wrong(from, subnet, "the name of a subnet of the cluster's virtual network")
	}
	if set.VirtualNetwork == "" || subnet == "" {
		r.wrong(PLSCreate, "true", "vnetName and subnetName in azure.json, or "+PLSSubnet)
	}
	l.Subnet = subnet
}

// natAddresses parses the static addresses, separated by whitespace only.
func (r linkReader) natAddresses(count int) []netip.Addr {
	text, _ := r.text(PLSAddresses)
	fields := strings.Fields(text)
	if len(fields) > count {
		r.wrong(PLSAddresses, text, fmt.Sprintf("no more addresses than %s, which is %d", PLSCount, count))
		return nil
	}
	var all []netip.Addr
	for _, field := range fields {
		ip, err := netip.ParseAddr(field)
		switch {
		case err != nil || !ip.Is4():
			r.wrong(PLSAddresses, field, "IPv4 addresses that are separated by spaces, such as 10.0.0.7 10.0.0.8")
		case slices.Contains(all, ip):
			r.wrong(PLSAddresses, text, "each address once")
		default:
			all = append(all, ip)
		}
	}
	return all
}

// fqdnRule matches DNS names without wildcards.
var fqdnRule = regexp.MustCompile(`^[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?(\.[0-9A-Za-z_]([0-9A-Za-z_-]{0,61}[0-9A-Za-z_])?)*\.?$`)

func (r linkReader) fqdns() []string {
	text, _ := r.text(PLSFQDNs)
	var all []string
	for _, name := range strings.Fields(text) {
		switch {
		case len(name) > mostFQDN || !fqdnRule.MatchString(name):
			r.wrong(PLSFQDNs, name, "names such as web.example.com that are separated by spaces")
			return nil
		case !slices.ContainsFunc(all, func(have string) bool { return strings.EqualFold(have, name) }):
			all = append(all, name)
		}
		if r.tooMany(PLSFQDNs, len(all), mostFQDNs, "names", "more are of no use to consumers") {
			return nil
		}
	}
	return all
}

var subscriptionRule = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// subscriptions parses IDs into a sorted lower-case list without duplicates; only PLSVisibility also accepts
// "*".
func (r linkReader) subscriptions(name string) []string {
	text, _ := r.text(name)
	want := "ids of subscriptions, separated by spaces"
	if name == PLSVisibility {
		if text == Everybody {
			return []string{Everybody}
		}
		want += `, or "*" alone for all of them`
	}
	var all []string
	known := map[string]bool{}
	for _, id := range strings.Fields(text) {
		if !subscriptionRule.MatchString(id) {
			r.wrong(name, id, want)
			return nil
		}
		if id = strings.ToLower(id); !known[id] {
			known[id] = true
			all = append(all, id)
		}
	}
	if r.tooMany(name, len(all), mostSubscriptions, "subscriptions", "Azure takes no more private endpoints on a Private Link Service") {
		return nil
	}
	slices.Sort(all)
	return all
}

// withinVisibility rejects automatic approval of subscriptions without visibility.
func (r linkReader) withinVisibility(l *PrivateLink) {
	if slices.Contains(l.Visibility, Everybody) {
		return
	}
	for _, id := range l.AutoApproval {
		if _, found := slices.BinarySearch(l.Visibility, id); !found {
			r.wrong(PLSAutoApproval, id, "subscriptions that "+PLSVisibility+" has, too: no other can ask for a connection")
		}
	}
}

// shown formats the effective value of an annotation for messages and comparison.
func (l *PrivateLink) shown(name string) string {
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

// Unlike returns the annotations that differ from those of the owner of a shared Private Link Service.
func (l *PrivateLink) Unlike(owner *PrivateLink, ownerKey string) []Problem {
	var all []Problem
	for _, name := range []string{PLSName, PLSResourceGroup, PLSSubnet, PLSCount, PLSAddresses, PLSFQDNs, PLSProxyProtocol, PLSVisibility, PLSAutoApproval} {
		value, said := l.Said[name]
		has := owner.shown(name)
		if !said || strings.EqualFold(l.shown(name), has) {
			continue
		}
		want := strconv.Quote(shorten(has)) + ", as Service " + ownerKey + " has it"
		if has == "" {
			want = "none, as Service " + ownerKey + " has none"
		}
		all = append(all, Problem{name, value, want + ", which owns their Private Link Service: it is changed there alone"})
	}
	return all
}
