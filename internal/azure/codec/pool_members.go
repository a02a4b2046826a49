// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// Members returns the members that Azure shows of a pool. Older pools show network interfaces by the IP
// configurations alone that are in it, and have no entries; no write of a pool can name those.
func Members(of lb.Pool) []lb.Address {
	shown, ok := of.Origin.(*armnetwork.BackendAddressPool)
	if len(of.Addresses) > 0 || !ok || shown.Properties == nil {
		return of.Addresses
	}
	var all []lb.Address
	for _, c := range shown.Properties.BackendIPConfigurations {
		if c != nil && Value(c.ID) != "" {
			all = append(all, lb.Address{Name: Value(c.Name), Interface: Value(c.ID)})
		}
	}
	return all
}
