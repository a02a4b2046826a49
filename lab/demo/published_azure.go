// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

const (
	// linkNodes is how many nodes, and machines, the second cluster has.
	linkNodes = 2
	// linkLatencyScale makes a write of a machine take a second, and polls come each second.
	linkLatencyScale = 0.02
	linkSubnet       = provider + "virtualNetworks/" + network + "/subnets/nodes"
)

func machineOf(node string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/" + resourceGroup + "/providers/Microsoft.Compute/virtualMachines/" + node
}

// linkPlace is where the fourth act plays: every node has a machine with a network interface.
func linkPlace() place {
	resources := []object{{"id": provider + "virtualNetworks/" + network, "body": object{
		"location": "eastus", "properties": object{
			"addressSpace": object{"addressPrefixes": []string{"10.224.0.0/12"}},
			"subnets":      []object{{"name": "nodes", "properties": object{"addressPrefix": "10.224.0.0/16"}}},
		},
	}}}
	for i := range linkNodes {
		node := fmt.Sprintf("node-%d", i+1)
		nic := provider + "networkInterfaces/" + node
		resources = append(resources,
			object{"id": nic, "body": object{"location": "eastus", "properties": object{"ipConfigurations": []object{{"name": "ip", "properties": object{
				"primary": true, "subnet": object{"id": linkSubnet}, "privateIPAllocationMethod": "Static", "privateIPAddress": fmt.Sprintf("10.224.0.%d", i+4),
			}}}}}},
			object{"id": machineOf(node), "body": object{"location": "eastus", "properties": object{"networkProfile": object{"networkInterfaces": []object{{"id": nic}}}}}})
	}
	return place{nodes: linkNodes, resources: resources, latencyScale: linkLatencyScale, azureJSON: func(ignoresNodes bool) object {
		all := azureJSON(ignoresNodes)
		all["subnetName"] = "nodes"
		all["loadBalancerBackendPoolConfigurationType"] = "nodeIPConfiguration"
		all["disablePrivateLinkServiceNetworkPolicies"] = true
		return all
	}}
}

// shownLink is what Azure shows of the one Private Link Service of the fourth act, and of the load
// balancer behind it. Its id is empty if there is none.
type shownLink struct {
	id, alias          string
	connections        []string // their states
	balancers, members int
}

// published returns what Azure shows of the fourth act.
func (a *azureWitness) published(ctx context.Context) (shown shownLink, err error) {
	body, err := a.get(ctx, "snapshot")
	if err != nil {
		return shown, err
	}
	defer func() { _ = body.Close() }() // it has been read
	var all []struct {
		ID   string `json:"id"`
		Body struct {
			Properties struct {
				Alias       string `json:"alias"`
				Connections []struct {
					Properties struct {
						State struct {
							Status string `json:"status"`
						} `json:"privateLinkServiceConnectionState"`
					} `json:"properties"`
				} `json:"privateEndpointConnections"`
				Pools []struct {
					Properties struct {
						Members []struct{} `json:"backendIPConfigurations"`
					} `json:"properties"`
				} `json:"backendAddressPools"`
			} `json:"properties"`
		} `json:"body"`
	}
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		return shown, fmt.Errorf("the emulator's snapshot: %w", err)
	}
	for _, r := range all {
		switch properties := r.Body.Properties; {
		case strings.Contains(r.ID, "/loadBalancers/"):
			shown.balancers++
			for _, p := range properties.Pools {
				shown.members += len(p.Properties.Members)
			}
		case strings.Contains(r.ID, "/privateLinkServices/"):
			shown.id, shown.alias = r.ID, properties.Alias
			for _, c := range properties.Connections {
				shown.connections = append(shown.connections, c.Properties.State.Status)
			}
		}
	}
	return shown, nil
}

// connect has a private endpoint ask for a connection to a Private Link Service.
func (a *azureWitness) connect(ctx context.Context, service, endpoint string) error {
	raw, err := json.Marshal(object{"service": service, "endpoint": endpoint})
	if err != nil {
		return err
	}
	body, err := a.do(ctx, http.MethodPost, "connections", bytes.NewReader(raw), http.StatusOK)
	if err != nil {
		return err
	}
	return body.Close()
}
