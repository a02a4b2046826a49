// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// NetworkTenant is a subscription in another tenant than the credential's. The zero value means none.
type NetworkTenant struct {
	SubscriptionID string
	// TenantID is the tenant of the subscription, OwnTenantID the credential's.
	TenantID, OwnTenantID string
}

// armClients are the clients of the credential's tenant and of NetworkTenant. A request is authorized by a token of the
// tenant that has its subscription. The token of the other tenant is sent as an auxiliary token, because a resource
// may refer to a resource of the other tenant:
// https://learn.microsoft.com/azure/azure-resource-manager/management/authenticate-multi-tenant
type armClients struct {
	own *arm.Client
	// network is nil without a NetworkTenant.
	network *arm.Client
	// networkPart is in the path of each request to the network tenant.
	networkPart string
}

func newARMClients(credential azcore.TokenCredential, of NetworkTenant, options arm.ClientOptions) (clients armClients, err error) {
	if of.TenantID == "" {
		clients.own, err = newARMClient(credential, options)
		return clients, err
	}
	if of.SubscriptionID == "" || of.OwnTenantID == "" {
		return clients, errors.New("a network tenant needs its subscription and the credential's tenant")
	}
	clients.networkPart = "/subscriptions/" + strings.ToLower(of.SubscriptionID) + "/"
	options.AuxiliaryTenants = []string{of.TenantID}
	if clients.own, err = newARMClient(tenantCredential{credential, of.OwnTenantID}, options); err != nil {
		return clients, err
	}
	options.AuxiliaryTenants = []string{of.OwnTenantID}
	clients.network, err = newARMClient(tenantCredential{credential, of.TenantID}, options)
	return clients, err
}

func newARMClient(credential azcore.TokenCredential, options arm.ClientOptions) (*arm.Client, error) {
	renewable := newRenewableCredential(credential)
	options.PerRetryPolicies = append([]policy.Policy{renewalPolicy{renewable}}, options.PerRetryPolicies...)
	return arm.NewClient("weir.dev/weir/internal/azure", "v1.0.0", renewable, &options)
}

// forPath returns the client for the path of a request.
func (a armClients) forPath(path string) *arm.Client {
	if a.network != nil && strings.Contains(strings.ToLower(path)+"/", a.networkPart) {
		return a.network
	}
	return a.own
}

// tenantCredential requests tokens of a tenant unless the request names another.
type tenantCredential struct {
	azcore.TokenCredential
	tenantID string
}

// GetToken implements azcore.TokenCredential.
func (t tenantCredential) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if o.TenantID == "" {
		o.TenantID = t.tenantID
	}
	return t.TokenCredential.GetToken(ctx, o)
}
