// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

type armPublicIP struct {
	Etag     string              `json:"etag"`
	Location string              `json:"location"`
	Tags     map[string]string   `json:"tags"`
	Zones    []string            `json:"zones"`
	Extended armExtendedLocation `json:"extendedLocation"`
	SKU      struct {
		Name lb.SKU `json:"name"`
		Tier string `json:"tier"`
	} `json:"sku"`
	Properties struct {
		State   string       `json:"provisioningState"`
		Address string       `json:"ipAddress"`
		Method  string       `json:"publicIPAllocationMethod"`
		Version lb.Family    `json:"publicIPAddressVersion"`
		Prefix  armReference `json:"publicIPPrefix"`
		IPTags  []struct {
			Kind string `json:"ipTagType"`
			Tag  string `json:"tag"`
		} `json:"ipTags"`
		DNS struct {
			Label string `json:"domainNameLabel"`
		} `json:"dnsSettings"`
		IPConfiguration *armReference `json:"ipConfiguration"`
		NATGateway      *armReference `json:"natGateway"`
	} `json:"properties"`
}

// DecodePublicIP decodes a public IP.
func DecodePublicIP(id lb.ResourceID, doc Document) (lb.PublicIP, error) {
	var resource armPublicIP
	if err := json.Unmarshal(doc.Text, &resource); err != nil {
		return lb.PublicIP{}, err
	}
	p := resource.Properties
	ip := lb.PublicIP{
		ID: id, Etag: etagOrAny(resource.Etag), Location: resource.Location, SKU: cmp.Or(resource.SKU.Name, lb.Basic), Global: isGlobalTier(resource.SKU.Tier), Family: cmp.Or(p.Version, lb.IPv4),
		Static: p.Method == staticMethod, Prefix: p.Prefix.ID, DNSLabel: p.DNS.Label, Provisioning: provisioningState(p.State),
		Zones: resource.Zones, ExtendedLocation: resource.Extended.Name, IPTags: map[string]string{}, Tags: decodeTags(resource.Tags), Origin: doc,
	}
	ip.Address, _ = netip.ParseAddr(p.Address)
	for _, tag := range p.IPTags {
		ip.IPTags[tag.Kind] = tag.Tag
	}
	switch {
	case p.IPConfiguration != nil:
		ip.UsedBy = p.IPConfiguration.ID
	case p.NATGateway != nil:
		ip.UsedBy = p.NATGateway.ID
	}
	return ip, nil
}

// EncodePublicIP returns the body for ip, like EncodeLoadBalancer.
func EncodePublicIP(ip lb.PublicIP) (any, error) {
	body, fresh, old := &jsonObject{}, ip.Origin == nil, lb.PublicIP{}
	if !fresh {
		var err error
		if body, err = parseOrigin(ip.Origin); err != nil {
			return nil, err
		}
		if old, err = DecodePublicIP(ip.ID, ip.Origin.(Document)); err != nil {
			return nil, err
		}
	}
	deleteKeys(body, "name")
	p := removeReadOnly(body, "ipConfiguration", "resourceGuid", "upgradedToV2")
	setString(fresh, body, "location", old.Location, ip.Location)
	if fresh || old.SKU != ip.SKU {
		ensureObject(body, "sku").set("name", ip.SKU)
	}
	editExtendedLocation(body, old.ExtendedLocation, ip.ExtendedLocation)
	if !slices.Equal(old.Zones, ip.Zones) {
		body.set("zones", append([]string{}, ip.Zones...))
	}
	if !maps.Equal(old.Tags, ip.Tags) {
		editTags(body, ip.Tags)
	}
	setString(fresh, p, "publicIPAddressVersion", old.Family, ip.Family)
	if fresh || old.Static != ip.Static {
		p.set("publicIPAllocationMethod", allocationMethod(ip.Static))
	}
	setReference(p, "publicIPPrefix", old.Prefix, ip.Prefix)
	if !maps.Equal(old.IPTags, ip.IPTags) {
		items := []*jsonObject{}
		for _, kind := range slices.Sorted(maps.Keys(ip.IPTags)) {
			tag := newObject("ipTagType", kind)
			tag.set("tag", ip.IPTags[kind])
			items = append(items, tag)
		}
		p.set("ipTags", items)
	}
	if old.DNSLabel != ip.DNSLabel {
		editLabel(p, ip.DNSLabel)
	}
	return body, nil
}

// editLabel leaves the FQDN to Azure.
func editLabel(properties *jsonObject, label string) {
	settings := ensureObject(properties, "dnsSettings")
	deleteKeys(settings, "domainNameLabel", "fqdn")
	if label != "" {
		settings.set("domainNameLabel", label)
		return
	}
	deleteKeys(settings, "domainNameLabelScope") // belongs to the label
	if len(settings.members) == 0 {
		deleteKeys(properties, "dnsSettings")
	}
}

const staticMethod = "Static"

func allocationMethod(isStatic bool) string {
	if isStatic {
		return staticMethod
	}
	return "Dynamic"
}

func decodeTags(tags map[string]string) map[string]string {
	if tags == nil {
		return map[string]string{}
	}
	return tags
}
