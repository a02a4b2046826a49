// SPDX-License-Identifier: Apache-2.0

// Package sdk holds the clients of the Azure SDK that Weir needs. Who refers to armnetwork's own factory,
// be it by a type that has one, compiles the pollers of its hundred other clients: seven seconds a package.
package sdk

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// Clients are those of one subscription. They share one pipeline, and so one token.
type Clients struct {
	Balancers *armnetwork.LoadBalancersClient
	Pools     *armnetwork.LoadBalancerBackendAddressPoolsClient
	IPs       *armnetwork.PublicIPAddressesClient
	Groups    *armnetwork.SecurityGroupsClient
}

// New returns the clients for a subscription. It sends nothing.
func New(subscription string, credential azcore.TokenCredential, opts *arm.ClientOptions) (*Clients, error) {
	all, err := armnetwork.NewClientFactory(subscription, credential, opts)
	if err != nil {
		return nil, err
	}
	return &Clients{
		Balancers: all.NewLoadBalancersClient(),
		Pools:     all.NewLoadBalancerBackendAddressPoolsClient(),
		IPs:       all.NewPublicIPAddressesClient(),
		Groups:    all.NewSecurityGroupsClient(),
	}, nil
}
