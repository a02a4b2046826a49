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
	// linkNodes is the number of nodes and machines in the second cluster.
	linkNodes = 2
	// linkLatencyScale gives 1 s per machine write and polls every second.
	linkLatencyScale = 0.02
	linkSubnet       = provider + "virtualNetworks/" + network + "/subnets/nodes"
)

func machineID(node string) string {
	return "/subscriptions/" + subscription + "/resourceGroups/" + resourceGroup + "/providers/Microsoft.Compute/virtualMachines/" + node
}

// privateLinkEnvironment is the environment of act four: every node has a machine with a network interface.
func privateLinkEnvironment() place {
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
			object{"id": machineID(node), "body": object{"location": "eastus", "properties": object{"networkProfile": object{"networkInterfaces": []object{{"id": nic}}}}}})
	}
	return place{nodes: linkNodes, resources: resources, latencyScale: linkLatencyScale, azureJSON: func(ignoresNodes bool) object {
		settings := azureJSON(ignoresNodes)
		settings["subnetName"] = "nodes"
		settings["loadBalancerBackendPoolConfigurationType"] = "nodeIPConfiguration"
		delete(settings, "localServicePools")
		settings["disablePrivateLinkServiceNetworkPolicies"] = true
		return settings
	}}
}

// linkSnapshot is the Private Link Service of act four and its load balancer. The id is empty if there
// is none.
type linkSnapshot struct {
	id, alias          string
	connections        []string // their states
	balancers, members int
}

// readPrivateLink returns Azure's state of act four.
func (a *azureObserver) readPrivateLink(ctx context.Context) (shown linkSnapshot, err error) {
	body, err := a.getJSON(ctx, "snapshot")
	if err != nil {
		return shown, err
	}
	defer func() { _ = body.Close() }()
	var resources []struct {
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
	if err := json.NewDecoder(body).Decode(&resources); err != nil {
		return shown, fmt.Errorf("the emulator's snapshot: %w", err)
	}
	for _, r := range resources {
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

// connectEndpoint requests a private endpoint connection to a Private Link Service.
func (a *azureObserver) connectEndpoint(ctx context.Context, service, endpoint string) error {
	raw, err := json.Marshal(object{"service": service, "endpoint": endpoint})
	if err != nil {
		return err
	}
	body, err := a.sendRequest(ctx, http.MethodPost, "connections", bytes.NewReader(raw), http.StatusOK)
	if err != nil {
		return err
	}
	return body.Close()
}
