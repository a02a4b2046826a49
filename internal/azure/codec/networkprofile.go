// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

type armIPConfiguration struct {
	Name       string `json:"name"`
	Properties struct {
		Primary bool   `json:"primary"`
		Version string `json:"privateIPAddressVersion"`
		IP      string `json:"privateIPAddress"`
		Subnet  struct {
			ID string `json:"id"`
		} `json:"subnet"`
		Pools []struct {
			ID string `json:"id"`
		} `json:"loadBalancerBackendAddressPools"`
	} `json:"properties"`
}

type armInterfaceConfiguration struct {
	Name       string `json:"name"`
	Properties struct {
		Primary          bool                 `json:"primary"`
		IPConfigurations []armIPConfiguration `json:"ipConfigurations"`
		SecurityGroup    struct {
			ID string `json:"id"`
		} `json:"networkSecurityGroup"`
	} `json:"properties"`
}

type armNetworkProfile struct {
	Interfaces []armInterfaceConfiguration `json:"networkInterfaceConfigurations"`
}

func (p armNetworkProfile) toConfigurations() []lb.InterfaceConfiguration {
	var configurations []lb.InterfaceConfiguration
	for _, c := range p.Interfaces {
		configurations = append(configurations, c.toConfiguration())
	}
	return configurations
}

func (c armInterfaceConfiguration) toConfiguration() lb.InterfaceConfiguration {
	next := lb.InterfaceConfiguration{Name: c.Name, Primary: c.Properties.Primary, SecurityGroup: c.Properties.SecurityGroup.ID}
	for _, ip := range c.Properties.IPConfigurations {
		config := lb.IPConfiguration{Name: ip.Name, Primary: ip.Properties.Primary, Family: lb.IPv4, Subnet: ip.Properties.Subnet.ID}
		if strings.EqualFold(ip.Properties.Version, string(lb.IPv6)) {
			config.Family = lb.IPv6
		}
		config.IP, _ = netip.ParseAddr(ip.Properties.IP)
		for _, pool := range ip.Properties.Pools {
			config.Pools = append(config.Pools, pool.ID)
		}
		next.IPConfigurations = append(next.IPConfigurations, config)
	}
	return next
}

// DecodeInterface decodes a network interface. place is the ID of the request.
func DecodeInterface(place lb.ResourceID, doc Document) (lb.NetworkInterface, error) {
	var resource struct {
		ID         string `json:"id"`
		Etag       string `json:"etag"`
		Properties struct {
			State   lb.Provisioning `json:"provisioningState"`
			Machine struct {
				ID string `json:"id"`
			} `json:"virtualMachine"`
		} `json:"properties"`
	}
	var configuration armInterfaceConfiguration
	if err := errors.Join(json.Unmarshal(doc.Text, &resource), json.Unmarshal(doc.Text, &configuration)); err != nil {
		return lb.NetworkInterface{}, err
	}
	place.Name = path.Base(resource.ID)
	return lb.NetworkInterface{
		ID: place, Etag: resource.Etag, Provisioning: resource.Properties.State, Machine: lb.MachineKey(resource.Properties.Machine.ID),
		InterfaceConfiguration: configuration.toConfiguration(), Origin: doc,
	}, place.Validate()
}

// EncodeInterface returns the body that sets the pools of an interface.
func EncodeInterface(next lb.NetworkInterface) (any, error) {
	body, err := parseOrigin(next.Origin)
	if err != nil {
		return nil, err
	}
	deleteKeys(body, "etag", "name", "type")
	properties := childObject(body, keyProperties)
	deleteKeys(properties, "defaultOutboundConnectivityEnabled", "dscpConfiguration", "hostedWorkloads", "macAddress",
		"primary", "privateEndpoint", "provisioningState", "resourceGuid", "tapConfigurations", "virtualMachine", "vnetEncryptionSupported")
	deleteKeys(childObject(properties, "dnsSettings"), "appliedDnsServers", "internalDomainNameSuffix", "internalFqdn")
	for _, ip := range objectList(properties, "ipConfigurations") {
		deleteKeys(ip, "etag", "type")
		deleteKeys(childObject(ip, keyProperties), "privateLinkConnectionProperties", "provisioningState")
	}
	return body, setPools(body, next.InterfaceConfiguration)
}

// DecodeScaleSet decodes a scale set.
func DecodeScaleSet(place lb.ResourceID, doc Document) (lb.ScaleSet, error) {
	var resource struct {
		ID         string `json:"id"`
		Etag       string `json:"etag"`
		Properties struct {
			State         lb.Provisioning `json:"provisioningState"`
			Orchestration string          `json:"orchestrationMode"`
			Upgrade       struct {
				Mode lb.UpgradeMode `json:"mode"`
			} `json:"upgradePolicy"`
			Profile struct {
				Network armNetworkProfile `json:"networkProfile"`
			} `json:"virtualMachineProfile"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(doc.Text, &resource); err != nil {
		return lb.ScaleSet{}, err
	}
	place.Name = path.Base(resource.ID)
	return lb.ScaleSet{
		ID: place, Etag: resource.Etag, Provisioning: resource.Properties.State, Interfaces: resource.Properties.Profile.Network.toConfigurations(),
		Uniform:     !strings.EqualFold(resource.Properties.Orchestration, "Flexible"), // older ones omit it
		UpgradeMode: resource.Properties.Upgrade.Mode, Origin: doc,
	}, place.Validate()
}

// putOnlyKeys are public IP properties that only PUT accepts (documented).
var putOnlyKeys = []string{"ipTags", "publicIPAddressVersion"}

// NeedsPut reports whether the model has properties that a PATCH of its interfaces would remove.
func NeedsPut(s lb.ScaleSet) bool {
	body, err := parseOrigin(s.Origin)
	if err != nil {
		return false
	}
	for _, i := range objectList(modelOf(body), keyInterfaces) {
		for _, ip := range objectList(childObject(i, keyProperties), "ipConfigurations") {
			public := childObject(childObject(ip, keyProperties), "publicIPAddressConfiguration")
			if public.has("sku") || slices.ContainsFunc(putOnlyKeys, childObject(public, keyProperties).has) {
				return true
			}
		}
	}
	return false
}

func modelOf(scaleSet *jsonObject) *jsonObject {
	return childObject(childObject(childObject(scaleSet, keyProperties), "virtualMachineProfile"), "networkProfile")
}

// EncodeModel returns the body of a PATCH or PUT that sets the pools of a model. Absent properties
// are retained, also by PUT (observed: cloud-provider-azure sends no more). Sending an image or
// identity would require permission to use it.
func EncodeModel(next lb.ScaleSet) (any, error) {
	scaleSet, err := parseOrigin(next.Origin)
	if err != nil {
		return nil, err
	}
	profile := modelOf(scaleSet)
	if err := setAllPools(profile, next.Interfaces); err != nil {
		return nil, err
	}
	network := newObject(keyInterfaces, profile.value(keyInterfaces))
	body := newObject(keyProperties, newObject("virtualMachineProfile", newObject("networkProfile", network)))
	if NeedsPut(next) {
		body.set("location", scaleSet.value("location"))
	}
	return body, nil
}

// instanceRule guards the URL.
var instanceRule = regexp.MustCompile(`^[0-9]{1,10}$`)

// DecodeInstance decodes a scale set instance.
func DecodeInstance(scaleSet lb.ResourceID, doc Document) (lb.Instance, error) {
	var resource struct {
		ID         string `json:"id"`
		Etag       string `json:"etag"`
		Properties struct {
			State      lb.Provisioning   `json:"provisioningState"`
			Latest     bool              `json:"latestModelApplied"`
			Network    armNetworkProfile `json:"networkProfileConfiguration"`
			Protection struct {
				Actions bool `json:"protectFromScaleSetActions"`
			} `json:"protectionPolicy"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(doc.Text, &resource); err != nil {
		return lb.Instance{}, err
	}
	id := path.Base(resource.ID)
	if !instanceRule.MatchString(id) {
		return lb.Instance{}, fmt.Errorf("%q is no id of an instance: want a number", id)
	}
	return lb.Instance{
		ScaleSet: scaleSet, ID: id, Etag: resource.Etag, Provisioning: resource.Properties.State, LatestModel: resource.Properties.Latest,
		Protected: resource.Properties.Protection.Actions, Interfaces: resource.Properties.Network.toConfigurations(), Origin: doc,
	}, nil
}

// EncodeInstance returns the body that sets the pools of an instance. Sending the image would
// require permission to read it.
func EncodeInstance(next lb.Instance) (any, error) {
	body, err := parseOrigin(next.Origin)
	if err != nil {
		return nil, err
	}
	deleteKeys(body, "etag", "id", "instanceId", "name", "resources", "sku", "systemData", "type", "zones")
	properties := childObject(body, keyProperties)
	deleteKeys(properties, "instanceView", "latestModelApplied", "modelDefinitionApplied", "provisioningState", "timeCreated", "virtualMachineResourceId", "vmId")
	deleteKeys(childObject(properties, "storageProfile"), "imageReference")
	return body, setAllPools(childObject(properties, "networkProfileConfiguration"), next.Interfaces)
}
