// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
)

// IDs of the emulated Azure.
const (
	subscription  = "00000000-0000-0000-0000-000000000000"
	resourceGroup = "rg"
	network       = "vnet"
	provider      = "/subscriptions/" + subscription + "/resourceGroups/" + resourceGroup + "/providers/Microsoft.Network/"
)

type object = map[string]any

// azureJSON returns the controller's configuration.
func azureJSON() object {
	return object{
		"cloud": "AzurePublicCloud", "subscriptionId": subscription, "resourceGroup": resourceGroup, "location": "eastus",
		"vnetName": network, "loadBalancerSku": "standard", "loadBalancerBackendPoolConfigurationType": "nodeIP",
	}
}

// azureBehaviour returns the emulator's behavior. Where pools are written one by one, Azure's write
// latency dominates a first start.
func azureBehaviour(o Options) object {
	is := behaviour.Behaviour{}
	if o.WholeWrites {
		is.WholeWriteAddresses, is.WholeWriteAdminStates = behaviour.Taken, behaviour.Taken
	}
	return object{"behaviour": is}
}

func balancerName(i int) string { return fmt.Sprintf("lb-%02d", i) }
func serviceName(i int) string  { return fmt.Sprintf("s-%05d", i) }

// seedResources returns the network, and load balancers with empty pools.
func seedResources(o Options) []object {
	all := []object{{"id": provider + "virtualNetworks/" + network, "body": object{
		"location": "eastus", "properties": object{"addressSpace": object{"addressPrefixes": []string{"10.224.0.0/12"}}},
	}}}
	for b := range o.LoadBalancers {
		pools := []object{}
		for s := b; s < o.Services; s += o.LoadBalancers {
			pools = append(pools, object{"name": serviceName(s)})
		}
		all = append(all, object{"id": provider + "loadBalancers/" + balancerName(b), "body": object{
			"location": "eastus", "sku": object{"name": "Standard"}, "properties": object{"frontendIPConfigurations": []object{{"name": "frontend"}}, "backendAddressPools": pools},
		}})
	}
	return all
}

// shown returns the members of each pool in the emulator, sorted.
func (l *lab) shown(ctx context.Context) (map[string]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.admin+"snapshot", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // already read
	var all []struct {
		ID   string
		Body struct {
			Properties struct {
				Pools []struct {
					Name       string
					Properties struct {
						Addresses []struct {
							Properties struct{ IPAddress, AdminState string }
						} `json:"loadBalancerBackendAddresses"`
					}
				} `json:"backendAddressPools"`
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil {
		return nil, fmt.Errorf("the emulator's snapshot: %w", err)
	}
	pools := map[string]string{}
	for _, r := range all {
		for _, p := range r.Body.Properties.Pools {
			var ips []string
			for _, a := range p.Properties.Addresses {
				ip := a.Properties.IPAddress
				if a.Properties.AdminState == lb.Down {
					ip += down
				}
				ips = append(ips, ip)
			}
			slices.Sort(ips)
			pools[strings.ToLower(path.Base(p.Name))] = strings.Join(ips, " ")
		}
	}
	return pools, nil
}
