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

	"weir.dev/weir/internal/lb"
)

const (
	subscription  = "00000000-0000-0000-0000-000000000000"
	resourceGroup = "rg"
	networkName   = "vnet"
	provider      = "/subscriptions/" + subscription + "/resourceGroups/" + resourceGroup + "/providers/Microsoft.Network/"
)

type jsonObject = map[string]any

func azureJSON() jsonObject {
	return jsonObject{
		"cloud": "AzurePublicCloud", "subscriptionId": subscription, "resourceGroup": resourceGroup, "location": "eastus",
		"vnetName": networkName, "loadBalancerSku": "standard", "loadBalancerBackendPoolConfigurationType": "nodeIP",
		"localServicePools": "own", "maximumLoadBalancerRuleCount": 1500,
	}
}

func loadBalancerName(i int) string { return fmt.Sprintf("lb-%02d", i) }
func serviceName(i int) string      { return fmt.Sprintf("s-%05d", i) }

func seedResources(o Options) []jsonObject {
	items := []jsonObject{{"id": provider + "virtualNetworks/" + networkName, "body": jsonObject{
		"location": "eastus", "properties": jsonObject{"addressSpace": jsonObject{"addressPrefixes": []string{"10.224.0.0/12"}}},
	}}}
	for b := range o.LoadBalancers {
		pools := []jsonObject{}
		for s := b; s < o.Services; s += o.LoadBalancers {
			pools = append(pools, jsonObject{"name": serviceName(s)})
		}
		items = append(items, jsonObject{"id": provider + "loadBalancers/" + loadBalancerName(b), "body": jsonObject{
			"location": "eastus", "sku": jsonObject{"name": "Standard"}, "properties": jsonObject{"frontendIPConfigurations": []jsonObject{{"name": "frontend"}}, "backendAddressPools": pools},
		}})
	}
	return items
}

func (l *lab) azurePools(ctx context.Context) (map[string]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.admin+"snapshot", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // already read
	var resources []struct {
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
	if err := json.NewDecoder(resp.Body).Decode(&resources); err != nil {
		return nil, fmt.Errorf("the emulator's snapshot: %w", err)
	}
	pools := map[string]string{}
	for _, r := range resources {
		for _, p := range r.Body.Properties.Pools {
			var ips []string
			for _, a := range p.Properties.Addresses {
				ip := a.Properties.IPAddress
				if a.Properties.AdminState == lb.Down {
					ip += downSuffix
				}
				ips = append(ips, ip)
			}
			slices.Sort(ips)
			pools[strings.ToLower(path.Base(p.Name))] = strings.Join(ips, " ")
		}
	}
	return pools, nil
}
