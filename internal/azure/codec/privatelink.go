// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

type armSubscriptionList struct {
	IDs []string `json:"subscriptions"`
}

type armPrivateLinkService struct {
	ID         string              `json:"id"`
	Etag       string              `json:"etag"`
	Location   string              `json:"location"`
	Tags       map[string]string   `json:"tags"`
	Extended   armExtendedLocation `json:"extendedLocation"`
	Properties struct {
		State            lb.Provisioning       `json:"provisioningState"`
		Alias            string                `json:"alias"`
		Frontends        []armReference        `json:"loadBalancerFrontendIpConfigurations"`
		IPConfigurations []armNATConfiguration `json:"ipConfigurations"`
		FQDNs            []string              `json:"fqdns"`
		ProxyProtocol    bool                  `json:"enableProxyProtocol"`
		Visibility       armSubscriptionList   `json:"visibility"`
		AutoApproval     armSubscriptionList   `json:"autoApproval"`
		Connections      []armConnection       `json:"privateEndpointConnections"`
	} `json:"properties"`
}

type armNATConfiguration struct {
	Name       string `json:"name"`
	Properties struct {
		Subnet     armReference `json:"subnet"`
		Primary    bool         `json:"primary"`
		Allocation string       `json:"privateIPAllocationMethod"`
		Address    string       `json:"privateIPAddress"`
	} `json:"properties"`
}

type armConnection struct {
	Name       string `json:"name"`
	Etag       string `json:"etag"`
	Properties struct {
		State    lb.Provisioning `json:"provisioningState"`
		Endpoint armReference    `json:"privateEndpoint"`
		Link     struct {
			Status      lb.ConnectionStatus `json:"status"`
			Description string              `json:"description"`
		} `json:"privateLinkServiceConnectionState"`
	} `json:"properties"`
}

// DecodePrivateLinkService decodes a Private Link Service. place is the ID of the request.
func DecodePrivateLinkService(place lb.ResourceID, doc Document) (lb.PrivateLinkService, error) {
	var resource armPrivateLinkService
	if err := json.Unmarshal(doc.Text, &resource); err != nil {
		return lb.PrivateLinkService{}, err
	}
	place.Name = path.Base(resource.ID)
	p := lb.PrivateLinkService{
		ID: place, Etag: etagOrAny(resource.Etag), Location: resource.Location, ExtendedLocation: resource.Extended.Name, Provisioning: resource.Properties.State, Alias: resource.Properties.Alias,
		FQDNs: resource.Properties.FQDNs, ProxyProtocol: resource.Properties.ProxyProtocol,
		Visibility: resource.Properties.Visibility.IDs, AutoApproval: resource.Properties.AutoApproval.IDs,
		Tags: resource.Tags, Origin: doc,
	}
	for _, f := range resource.Properties.Frontends {
		p.Frontends = append(p.Frontends, f.ID)
	}
	for _, n := range resource.Properties.IPConfigurations {
		p.NAT = append(p.NAT, n.toNATAddress())
	}
	for _, c := range resource.Properties.Connections {
		p.Connections = append(p.Connections, lb.PrivateEndpointConnection{
			Name: c.Name, Etag: c.Etag, Endpoint: c.Properties.Endpoint.ID, Provisioning: c.Properties.State,
			Status: c.Properties.Link.Status, Description: c.Properties.Link.Description,
		})
	}
	return p, place.Validate()
}

func (a armNATConfiguration) toNATAddress() lb.NATAddress {
	address, _ := netip.ParseAddr(a.Properties.Address) // absent until Azure assigns one
	return lb.NATAddress{
		Name: a.Name, Subnet: a.Properties.Subnet.ID, Primary: a.Properties.Primary,
		Static: strings.EqualFold(a.Properties.Allocation, "Static"), Address: address,
	}
}

// EncodePrivateLinkService returns the body of a write. Unchanged and unknown properties are sent
// back as read. Connections are omitted.
func EncodePrivateLinkService(next lb.PrivateLinkService) (any, error) {
	body, old := newObject("location", next.Location), lb.PrivateLinkService{}
	body.set(keyProperties, &jsonObject{})
	if next.Origin != nil {
		var err error
		if body, err = parseOrigin(next.Origin); err != nil {
			return nil, err
		}
		if old, err = DecodePrivateLinkService(next.ID, next.Origin.(Document)); err != nil {
			return nil, err
		}
	}
	deleteKeys(body, "etag", "id", "name", "type")
	editExtendedLocation(body, old.ExtendedLocation, next.ExtendedLocation)
	properties := childObject(body, keyProperties)
	deleteKeys(properties, "alias", "networkInterfaces", "privateEndpointConnections", "provisioningState", "resourceGuid")
	body.set("tags", next.Tags)
	if !slices.Equal(old.Frontends, next.Frontends) {
		properties.set("loadBalancerFrontendIpConfigurations", linkRefs(next.Frontends))
	}
	properties.set("ipConfigurations", encodeNAT(objectList(properties, "ipConfigurations"), old.NAT, next.NAT))
	properties.set("enableProxyProtocol", next.ProxyProtocol)
	properties.set("fqdns", append([]string{}, next.FQDNs...))
	setSubscriptionList(properties, "visibility", old.Visibility, next.Visibility)
	setSubscriptionList(properties, "autoApproval", old.AutoApproval, next.AutoApproval)
	return body, nil
}

func linkRefs(ids []string) []*jsonObject {
	items := make([]*jsonObject, len(ids))
	for i, id := range ids {
		items[i] = newObject("id", id)
	}
	return items
}

func encodeNAT(configurations []*jsonObject, old, next []lb.NATAddress) []*jsonObject {
	items := make([]*jsonObject, 0, len(next))
	for _, n := range next {
		if i := slices.Index(old, n); i >= 0 {
			if properties := removeReadOnly(configurations[i]); !n.Static {
				deleteKeys(properties, "privateIPAddress")
			}
			items = append(items, configurations[i])
			continue
		}
		properties := newObject("subnet", newObject("id", n.Subnet))
		properties.set("primary", n.Primary)
		properties.set("privateIPAddressVersion", "IPv4")
		properties.set("privateIPAllocationMethod", allocationMethod(n.Static))
		if n.Static {
			properties.set("privateIPAddress", n.Address.String())
		}
		part := newObject("name", n.Name)
		part.set(keyProperties, properties)
		items = append(items, part)
	}
	return items
}

// setSubscriptionList sets a changed list. Azure omits an empty list, and an empty list clears it.
func setSubscriptionList(properties *jsonObject, key string, old, next []string) {
	if !slices.Equal(old, next) {
		properties.set(key, newObject("subscriptions", append([]string{}, next...)))
	}
}

// linkPoliciesKey is the subnet property that blocks Private Link Services unless Disabled.
const linkPoliciesKey = "privateLinkServiceNetworkPolicies"

// DecodeSubnet decodes a subnet.
func DecodeSubnet(network lb.ResourceID, doc Document) (lb.Subnet, error) {
	var resource struct {
		ID         string `json:"id"`
		Etag       string `json:"etag"`
		Properties struct {
			State    lb.Provisioning `json:"provisioningState"`
			Prefix   string          `json:"addressPrefix"`
			Prefixes []string        `json:"addressPrefixes"`
			Policies string          `json:"privateLinkServiceNetworkPolicies"`
			Group    struct {
				ID string `json:"id"`
			} `json:"networkSecurityGroup"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(doc.Text, &resource); err != nil {
		return lb.Subnet{}, err
	}
	s := lb.Subnet{
		Network: network, Name: path.Base(resource.ID), Etag: etagOrAny(resource.Etag), Provisioning: resource.Properties.State,
		LinkPolicies: !strings.EqualFold(resource.Properties.Policies, "Disabled"), SecurityGroup: resource.Properties.Group.ID, Origin: doc,
	}
	for _, text := range append(resource.Properties.Prefixes, resource.Properties.Prefix) {
		if text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return lb.Subnet{}, fmt.Errorf("subnet %s: %w", s.Name, err)
		}
		if !slices.Contains(s.Prefixes, p) {
			s.Prefixes = append(s.Prefixes, p)
		}
	}
	return s, nil
}

// EncodeSubnet returns the body of a subnet.
func EncodeSubnet(next lb.Subnet) (any, error) {
	body, err := parseOrigin(next.Origin)
	if err != nil {
		return nil, err
	}
	deleteKeys(body, "etag", "type")
	properties := childObject(body, keyProperties)
	deleteKeys(properties, "provisioningState", "ipConfigurations", "ipConfigurationProfiles", "interfaceEndpoints", "privateEndpoints",
		"purpose", "resourceNavigationLinks", "serviceAssociationLinks")
	stripItems(properties, "applicationGatewayIPConfigurations")
	for _, d := range objectList(properties, "delegations") { // their type is writable
		deleteKeys(d, "etag")
		deleteKeys(childObject(d, keyProperties), "actions", "provisioningState")
	}
	for _, e := range objectList(properties, "serviceEndpoints") {
		deleteKeys(e, "provisioningState")
	}
	for _, a := range objectList(properties, "ipamPoolPrefixAllocations") {
		deleteKeys(a, "allocatedAddressPrefixes")
	}
	if !next.LinkPolicies {
		properties.set(linkPoliciesKey, "Disabled")
	}
	return body, nil
}
