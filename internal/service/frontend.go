// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/zones"
)

// Frontend is a frontend of one family and its public IP.
type Frontend struct {
	Frontend lb.Frontend
	// PublicIP is nil for a private frontend.
	PublicIP *PublicIP
	// namePrefix and suffix are the prefix and suffix of rule and probe names.
	namePrefix, suffix string
}

// subnetRule is Azure's rule for subnet names. See
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
var subnetRule = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,78}[0-9A-Za-z_])?$`)

func (r *reader) buildFrontends(s Service, set Settings, internal bool) []Frontend {
	subnet, names := r.readText(InternalSubnet)
	if names && !subnetRule.MatchString(subnet) {
		r.addProblem(InternalSubnet, subnet, "the name of a subnet of the cluster's virtual network")
	}
	stem := s.OwnerName()
	if internal && names {
		stem += "-" + subnet
	}
	if !names {
		subnet = set.Subnet
	}
	named := r.parseZones()
	var frontends []Frontend
	for _, family := range s.Families {
		f := Frontend{namePrefix: stem, suffix: suffixOf(family)}
		f.Frontend = lb.Frontend{Name: stem + f.suffix, Family: family}
		if internal {
			r.setPrivate(&f.Frontend, s, set, subnet)
			f.Frontend.Zones = named
		} else {
			f.PublicIP = r.buildPublicIP(s, set, family)
			f.PublicIP.Zones = named
		}
		frontends = append(frontends, f)
	}
	return frontends
}

// parseZones returns the zones that the Service names; none if it names none.
func (r *reader) parseZones() []string {
	named := r.readList(Zones)
	sorted, valid := zones.Normalize(named)
	if !valid {
		r.addProblem(Zones, r.annotations[Zones], zones.Rule+", separated by commas")
		return nil
	}
	return sorted
}

// ZoneChoice returns the choice of a Service that names zones.
func ZoneChoice(named []string) zones.Choice {
	return zones.Choice{IsSet: len(named) > 0, Zones: named, Source: "annotation " + Zones}
}

func (r *reader) setPrivate(f *lb.Frontend, s Service, set Settings, subnet string) {
	if set.VirtualNetwork == "" || subnet == "" {
		r.addProblem(Internal, "true", "vnetName and subnetName in azure.json, or "+InternalSubnet)
		return
	}
	f.Subnet = set.VirtualNetwork + "/subnets/" + subnet
	f.PrivateIP = r.requestedAddress(s, f.Family)
	f.Static = f.PrivateIP.IsValid()
}

// HasSCTP reports whether the Service has an SCTP port.
func (s Service) HasSCTP() bool {
	return slices.ContainsFunc(s.Ports, func(p Port) bool { return p.Protocol == "SCTP" })
}

// PrivateAddresses returns the addresses that an internal Service requests, each with its subnet if set;
// internal is false for a public one.
func (s Service) PrivateAddresses() (requested []string, internal bool) {
	r := &reader{annotations: s.Annotations}
	if !r.readBool(Internal) {
		return nil, false
	}
	subnet, _ := r.readText(InternalSubnet)
	for _, family := range s.Families {
		if ip := r.requestedAddress(s, family); ip.IsValid() {
			requested = append(requested, strings.TrimSpace(subnet+" "+ip.String()))
		}
	}
	return requested, true
}

// requestedAddress returns the requested address of a family; the zero Addr if none.
func (r *reader) requestedAddress(s Service, family lb.Family) netip.Addr {
	name := map[lb.Family]string{lb.IPv4: IPv4, lb.IPv6: IPv6}[family]
	if value, ok := r.readText(name); ok {
		return r.parseAddress(name, value, family)
	}
	if value := s.loadBalancerIPFor(family); value != "" {
		return r.parseAddress("spec.loadBalancerIP", value, family)
	}
	return netip.Addr{}
}

// Tags of public IPs that identify their Service.
const (
	TagService  = "k8s-azure-service"
	TagCluster  = "k8s-azure-cluster-name"
	TagDNSLabel = "k8s-azure-dns-label-service"
	// TagRetained is the time since when a public IP is retained.
	TagRetained = "weir-retained-since"
)

// PublicIP is the public IP of a frontend: an existing one by name or address, or one to create.
type PublicIP struct {
	// ID is the resource ID. For a public IP requested by address, the name is the one it would get if
	// created.
	ID lb.ResourceID
	// UserNamed is true if the user named it: Weir neither creates nor deletes it. AnyFamily is true if the name
	// applies to the family of that public IP.
	UserNamed, AnyFamily bool
	// ManagedPrefix is the name prefix of public IPs created for the Service. Pair is true if it has both families.
	ManagedPrefix string
	Pair          bool
	// Address selects an existing public IP by address, if set.
	Address netip.Addr
	Family  lb.Family
	// Prefix is the ARM ID of the prefix to allocate from; "" for none. With PrefixAnyFamily the prefix may
	// have another family.
	Prefix          string
	PrefixAnyFamily bool
	IPTags          map[string]string
	// Zones are the zones that the Service names for a new one; none if it names none.
	Zones []string
	// DNSLabel is the desired label. If SetsDNSLabel is false, the label is not changed; otherwise an empty
	// one is removed.
	DNSLabel     string
	SetsDNSLabel bool
	// LabelOnOther is true if the Service's other public IP has the label: labels are unique.
	LabelOnOther bool
	// Tags are added to existing tags.
	Tags map[string]string
}

func (r *reader) buildPublicIP(s Service, set Settings, family lb.Family) *PublicIP {
	p := &PublicIP{
		ID: set.PublicIPs, Family: family, Address: r.requestedAddress(s, family),
		IPTags: r.parsePairs(PIPIPTags, func(key, value string) string {
			if value == "" {
				return `pairs like "RoutingPreference=Internet"`
			}
			return ""
		}),
	}
	if r.exceedsLimit(PIPIPTags, len(p.IPTags), maxIPTags, "IP tags", "a public IP has a handful") {
		p.IPTags = nil
	}
	p.ManagedPrefix, p.Pair = set.ClusterName+"-"+s.OwnerName(), len(s.Families) > 1
	p.ID.Type, p.ID.Name = lb.TypePublicIP, p.ManagedPrefix+suffixOf(family)
	if group, ok := r.readText(PIPResourceGroup); ok {
		p.ID.ResourceGroup = group
		if err := p.ID.Validate(); err != nil {
			r.addProblem(PIPResourceGroup, group, "the name of a resource group")
		}
	}
	nameAt, anyFamily := ofFamily(r, family, PIPName, PIPNameIPv6)
	if name, ok := r.readText(nameAt); ok && (!p.Address.IsValid() || family != lb.IPv6 || !anyFamily) {
		p.ID.Name, p.UserNamed, p.AnyFamily = name, true, anyFamily
		if err := p.ID.Validate(); err != nil {
			r.addProblem(nameAt, name, "the name of a public IP: 1 to 80 letters, digits, '_', '-' or '.'")
		}
		if p.Address.IsValid() {
			r.addProblem(nameAt, name, "no address beside it: a public IP is named by its name or by its address")
		}
	}
	prefixAt, anyFamily := ofFamily(r, family, PIPPrefixID, PIPPrefixIDIPv6)
	if prefix, ok := r.readText(prefixAt); ok {
		id, err := lb.ParseResourceID(prefix, lb.TypePublicIPPrefix)
		if err != nil {
			r.addProblem(prefixAt, prefix, "the id of a public IP prefix, /subscriptions/…/resourceGroups/…/providers/"+lb.TypePublicIPPrefix+"/…")
		}
		p.Prefix, p.PrefixAnyFamily = id.String(), anyFamily && s.hasFamily(lb.IPv6)
	}
	p.DNSLabel, p.SetsDNSLabel = r.parseDNSLabel()
	if first := s.Families[0]; family != first && p.DNSLabel != "" {
		r.addFlaw(DNSLabel, p.DNSLabel, "a Service of one IP family: no two public IPs have the same label", "Its "+string(first)+" address alone has the label")
		p.DNSLabel, p.SetsDNSLabel, p.LabelOnOther = "", false, true
	}
	p.Tags = r.buildTags(s, set, p.DNSLabel)
	return p
}

// ofFamily returns the annotation for a family. Without the IPv6 annotation, the general one applies to the
// family of the named resource, which anyFamily reports.
func ofFamily(r *reader, family lb.Family, general, ipv6 string) (name string, anyFamily bool) {
	_, own := r.readText(ipv6)
	if own && family == lb.IPv6 {
		return ipv6, false
	}
	return general, !own
}

// parseDNSLabel parses the label. An empty annotation removes it.
func (r *reader) parseDNSLabel() (label string, sets bool) {
	if _, sets = r.annotations[DNSLabel]; !sets {
		return "", false
	}
	label, ok := r.readText(DNSLabel)
	if ok && !dnsRule.MatchString(label) {
		r.addProblem(DNSLabel, label, "3 to 63 lower-case letters, digits or '-', beginning with a letter and not ending with '-'")
	}
	return label, true
}

// buildTags returns the tags of the cluster, the Service, and the owner tags, which users cannot set.
func (r *reader) buildTags(s Service, set Settings, label string) map[string]string {
	tags := maps.Clone(set.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	wanted := r.parsePairs(PIPTags, tagProblem)
	if r.exceedsLimit(PIPTags, len(wanted), lb.MaxTags, "tags", "Azure's limit for a resource") {
		return tags
	}
	lb.SetTags(tags, wanted)
	for _, name := range []string{TagService, TagCluster, TagDNSLabel, TagRetained, NamespacesTag} {
		lb.UnsetTag(tags, name)
	}
	tags[TagService], tags[TagCluster] = s.Key(), set.ClusterName
	if label != "" {
		tags[TagDNSLabel] = s.Key()
	}
	mostTags := lb.MaxTags
	if s.RetainsAddress(set) {
		mostTags-- // for TagRetained
	}
	if len(tags) > mostTags {
		r.addProblem(PIPTags, r.annotations[PIPTags], fmt.Sprintf("fewer tags: with those of azure.json there are %d, and Azure allows %d", len(tags), mostTags))
	}
	return tags
}
