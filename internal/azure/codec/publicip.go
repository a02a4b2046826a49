// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// DecodePublicIP returns a public IP as the rooms know it; Origin keeps what they do not.
func DecodePublicIP(id lb.ResourceID, shown *armnetwork.PublicIPAddress) lb.PublicIP {
	ip := lb.PublicIP{
		ID: id, Etag: etag(shown.Etag), Location: Value(shown.Location), SKU: lb.Basic, Family: lb.IPv4,
		Zones: values(shown.Zones), IPTags: map[string]string{}, Tags: decodeTags(shown.Tags), Origin: shown,
	}
	if shown.SKU != nil && Value(shown.SKU.Name) != "" {
		ip.SKU = lb.SKU(*shown.SKU.Name)
	}
	p := shown.Properties
	if p == nil {
		return ip
	}
	ip.Address, _ = netip.ParseAddr(Value(p.IPAddress)) // zero if there is none yet
	ip.Static = Value(p.PublicIPAllocationMethod) == armnetwork.IPAllocationMethodStatic
	ip.Family = cmp.Or(lb.Family(Value(p.PublicIPAddressVersion)), lb.IPv4)
	ip.Prefix = SubResourceID(p.PublicIPPrefix)
	ip.Provisioning = provisioning(Value(p.ProvisioningState))
	for _, tag := range present(p.IPTags) {
		ip.IPTags[Value(tag.IPTagType)] = Value(tag.Tag)
	}
	if p.DNSSettings != nil {
		ip.DNSLabel = Value(p.DNSSettings.DomainNameLabel)
	}
	switch {
	case p.IPConfiguration != nil:
		ip.UsedBy = Value(p.IPConfiguration.ID)
	case p.NatGateway != nil:
		ip.UsedBy = Value(p.NatGateway.ID)
	}
	return ip
}

// EncodePublicIP returns the body that makes a public IP what ip says, as EncodeLoadBalancer
// does for a load balancer.
func EncodePublicIP(ip lb.PublicIP, read *armnetwork.PublicIPAddress) armnetwork.PublicIPAddress {
	next, fresh, was := sendablePublicIP(read), read == nil, lb.PublicIP{}
	if !fresh {
		was = DecodePublicIP(ip.ID, read)
	}
	say(fresh, &next.Location, was.Location, ip.Location)
	if fresh || was.SKU != ip.SKU {
		next.SKU = clone(next.SKU)
		next.SKU.Name = new(armnetwork.PublicIPAddressSKUName(ip.SKU))
	}
	if !slices.Equal(was.Zones, ip.Zones) {
		next.Zones = pointers(ip.Zones)
	}
	if !maps.Equal(was.Tags, ip.Tags) {
		next.Tags = encodeTags(ip.Tags)
	}
	p := next.Properties
	say(fresh, &p.PublicIPAddressVersion, was.Family, ip.Family)
	if fresh || was.Static != ip.Static {
		p.PublicIPAllocationMethod = new(armnetwork.IPAllocationMethodDynamic)
		if ip.Static {
			p.PublicIPAllocationMethod = new(armnetwork.IPAllocationMethodStatic)
		}
	}
	if !strings.EqualFold(was.Prefix, ip.Prefix) {
		p.PublicIPPrefix = nil
		if ip.Prefix != "" {
			p.PublicIPPrefix = &armnetwork.SubResource{ID: &ip.Prefix}
		}
	}
	if !maps.Equal(was.IPTags, ip.IPTags) {
		p.IPTags = []*armnetwork.IPTag{}
		for _, kind := range slices.Sorted(maps.Keys(ip.IPTags)) {
			p.IPTags = append(p.IPTags, &armnetwork.IPTag{IPTagType: &kind, Tag: new(ip.IPTags[kind])})
		}
	}
	if was.DNSLabel != ip.DNSLabel {
		p.DNSSettings = labelled(p.DNSSettings, ip.DNSLabel)
	}
	return *next
}

// labelled gives DNS settings another label. The full name follows from it, and is
// Azure's to say.
func labelled(read *armnetwork.PublicIPAddressDNSSettings, label string) *armnetwork.PublicIPAddressDNSSettings {
	next := clone(read)
	next.DomainNameLabel, next.Fqdn = nil, nil
	if label != "" {
		next.DomainNameLabel = &label
		return next
	}
	next.DomainNameLabelScope = nil // of the label
	if next.ReverseFqdn == nil {
		return nil
	}
	return next
}
