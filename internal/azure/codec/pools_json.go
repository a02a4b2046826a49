// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// The SDK's own decoding copies and checks the text of each object once more for each object around
// it. Pools are nearly all of a large load balancer, and six objects deep; so they are decoded here,
// in one go, into the SDK's types. What is rare in a pool is left to the SDK.
type (
	poolJSON struct {
		Etag       *string             `json:"etag"`
		ID         *string             `json:"id"`
		Name       *string             `json:"name"`
		Properties *poolPropertiesJSON `json:"properties"`
		Type       *string             `json:"type"`
	}
	poolPropertiesJSON struct {
		BackendIPConfigurations      []*armnetwork.InterfaceIPConfiguration           `json:"backendIPConfigurations"`
		DrainPeriodInSeconds         *int32                                           `json:"drainPeriodInSeconds"`
		InboundNatRules              []*referenceJSON                                 `json:"inboundNatRules"`
		LoadBalancerBackendAddresses []*addressJSON                                   `json:"loadBalancerBackendAddresses"`
		LoadBalancingRules           []*referenceJSON                                 `json:"loadBalancingRules"`
		Location                     *string                                          `json:"location"`
		OutboundRule                 *referenceJSON                                   `json:"outboundRule"`
		OutboundRules                []*referenceJSON                                 `json:"outboundRules"`
		ProvisioningState            *armnetwork.ProvisioningState                    `json:"provisioningState"`
		SyncMode                     *armnetwork.SyncMode                             `json:"syncMode"`
		TunnelInterfaces             []*armnetwork.GatewayLoadBalancerTunnelInterface `json:"tunnelInterfaces"`
		VirtualNetwork               *referenceJSON                                   `json:"virtualNetwork"`
	}
	addressJSON struct {
		Name       *string                `json:"name"`
		Properties *addressPropertiesJSON `json:"properties"`
	}
	addressPropertiesJSON struct {
		AdminState                          *armnetwork.LoadBalancerBackendAddressAdminState `json:"adminState"`
		IPAddress                           *string                                          `json:"ipAddress"`
		InboundNatRulesPortMapping          []*armnetwork.NatRulePortMapping                 `json:"inboundNatRulesPortMapping"`
		LoadBalancerFrontendIPConfiguration *referenceJSON                                   `json:"loadBalancerFrontendIPConfiguration"`
		NetworkInterfaceIPConfiguration     *referenceJSON                                   `json:"networkInterfaceIPConfiguration"`
		Subnet                              *referenceJSON                                   `json:"subnet"`
		VirtualNetwork                      *referenceJSON                                   `json:"virtualNetwork"`
	}
	referenceJSON struct {
		ID *string `json:"id"`
	}
)

// unmarshalPools decodes a list of pools.
func unmarshalPools(text []byte) ([]*armnetwork.BackendAddressPool, error) {
	var all []*poolJSON
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	return converted(all, (*poolJSON).pool), nil
}

// converted converts a list; what is null stays so.
func converted[A, B any](list []*A, convert func(*A) *B) []*B {
	if list == nil {
		return nil
	}
	all := make([]*B, len(list))
	for i, item := range list {
		if item != nil {
			all[i] = convert(item)
		}
	}
	return all
}

func (p *poolJSON) pool() *armnetwork.BackendAddressPool {
	pool := &armnetwork.BackendAddressPool{Etag: p.Etag, ID: p.ID, Name: p.Name, Type: p.Type}
	if is := p.Properties; is != nil {
		pool.Properties = &armnetwork.BackendAddressPoolPropertiesFormat{
			BackendIPConfigurations: is.BackendIPConfigurations, DrainPeriodInSeconds: is.DrainPeriodInSeconds,
			InboundNatRules:              converted(is.InboundNatRules, (*referenceJSON).reference),
			LoadBalancerBackendAddresses: converted(is.LoadBalancerBackendAddresses, (*addressJSON).address),
			LoadBalancingRules:           converted(is.LoadBalancingRules, (*referenceJSON).reference),
			Location:                     is.Location, OutboundRule: is.OutboundRule.reference(),
			OutboundRules:     converted(is.OutboundRules, (*referenceJSON).reference),
			ProvisioningState: is.ProvisioningState, SyncMode: is.SyncMode, TunnelInterfaces: is.TunnelInterfaces,
			VirtualNetwork: is.VirtualNetwork.reference(),
		}
	}
	return pool
}

func (a *addressJSON) address() *armnetwork.LoadBalancerBackendAddress {
	address := &armnetwork.LoadBalancerBackendAddress{Name: a.Name}
	if is := a.Properties; is != nil {
		address.Properties = &armnetwork.LoadBalancerBackendAddressPropertiesFormat{
			AdminState: is.AdminState, IPAddress: is.IPAddress, InboundNatRulesPortMapping: is.InboundNatRulesPortMapping,
			LoadBalancerFrontendIPConfiguration: is.LoadBalancerFrontendIPConfiguration.reference(),
			NetworkInterfaceIPConfiguration:     is.NetworkInterfaceIPConfiguration.reference(),
			Subnet:                              is.Subnet.reference(), VirtualNetwork: is.VirtualNetwork.reference(),
		}
	}
	return address
}

// reference is the same with the SDK's methods.
func (r *referenceJSON) reference() *armnetwork.SubResource { return (*armnetwork.SubResource)(r) }
