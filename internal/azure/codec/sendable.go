// SPDX-License-Identifier: Apache-2.0

package codec

import "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

// The functions here return copies of what was read without what only Azure sets. They
// take away what is known to be Azure's, rather than pick what is known to be a client's:
// a field that a newer API version adds survives until somebody decides otherwise. The
// properties of a copy are never nil.

func clone[T any](read *T) *T {
	var next T
	if read != nil {
		next = *read
	}
	return &next
}

func sendableFrontend(read *armnetwork.FrontendIPConfiguration) *armnetwork.FrontendIPConfiguration {
	next := clone(read)
	next.Etag, next.Type = nil, nil
	p := clone(next.Properties)
	p.InboundNatPools, p.InboundNatRules, p.LoadBalancingRules, p.OutboundRules = nil, nil, nil, nil
	p.ProvisioningState = nil
	next.Properties = p
	return next
}

func sendableProbe(read *armnetwork.Probe) *armnetwork.Probe {
	next := clone(read)
	next.Etag, next.Type = nil, nil
	p := clone(next.Properties)
	p.LoadBalancingRules, p.ProvisioningState = nil, nil
	next.Properties = p
	return next
}

func sendableRule(read *armnetwork.LoadBalancingRule) *armnetwork.LoadBalancingRule {
	next := clone(read)
	next.Etag, next.Type = nil, nil
	next.Properties = clone(next.Properties)
	next.Properties.ProvisioningState = nil
	return next
}

// sendableInterfaces is for a pool of network interfaces. Its entries go as they were
// shown: the interface, which only Azure sets, is all that tells one from another. That
// Azure takes them so is assumed.
func sendableInterfaces(read *armnetwork.BackendAddressPool) *armnetwork.BackendAddressPool {
	next := clone(read)
	next.Etag, next.Type = nil, nil
	p := clone(next.Properties)
	p.BackendIPConfigurations, p.InboundNatRules, p.LoadBalancingRules = nil, nil, nil
	p.OutboundRule, p.OutboundRules, p.ProvisioningState = nil, nil, nil
	next.Properties = p
	return next
}

func sendableBalancer(read *armnetwork.LoadBalancer) *armnetwork.LoadBalancer {
	next := clone(read)
	next.Etag, next.Name, next.Type = nil, nil, nil
	p := clone(next.Properties)
	p.ProvisioningState, p.ResourceGUID = nil, nil
	p.OutboundRules = each(p.OutboundRules, func(r *armnetwork.OutboundRule) {
		r.Etag, r.Type, r.Properties = nil, nil, clone(r.Properties)
		r.Properties.ProvisioningState = nil
	})
	p.InboundNatRules = each(p.InboundNatRules, func(r *armnetwork.InboundNatRule) {
		r.Etag, r.Type, r.Properties = nil, nil, clone(r.Properties)
		r.Properties.ProvisioningState, r.Properties.BackendIPConfiguration = nil, nil
	})
	p.InboundNatPools = each(p.InboundNatPools, func(r *armnetwork.InboundNatPool) {
		r.Etag, r.Type, r.Properties = nil, nil, clone(r.Properties)
		r.Properties.ProvisioningState = nil
	})
	next.Properties = p
	return next
}

func sendablePublicIP(read *armnetwork.PublicIPAddress) *armnetwork.PublicIPAddress {
	next := clone(read)
	next.Etag, next.Name, next.Type = nil, nil, nil
	p := clone(next.Properties)
	p.IPConfiguration, p.ProvisioningState, p.ResourceGUID = nil, nil, nil
	next.Properties = p
	return next
}

// each makes a list of copies, each stripped of what only Azure sets; nil stays nil, which says
// nothing.
func each[T any](list []*T, strip func(*T)) []*T {
	if list == nil {
		return nil
	}
	next := make([]*T, 0, len(list))
	for _, item := range present(list) {
		item = clone(item)
		strip(item)
		next = append(next, item)
	}
	return next
}
