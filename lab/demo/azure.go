// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"

	"weir.dev/weir/lab/armemu"
)

// Azure of the story.
const (
	subscription  = "00000000-0000-0000-0000-000000000000"
	resourceGroup = "rg"
	loadBalancer  = "kubernetes"
	network       = "vnet"
	subnet        = "nodes"
	securityGroup = "nodes"
	// updateInterval is short, so that the pace of a busy pool shows within a minute.
	updateInterval = 5 * time.Second
	// latency is the profile without machines: the demo is about the order of events.
	latency = "quiet"
	// latencyScale gives 0.15 s per pool write and polls every second.
	latencyScale = 0.1
)

const provider = "/subscriptions/" + subscription + "/resourceGroups/" + resourceGroup + "/providers/Microsoft.Network/"

// foreignAddress is added to a pool while no controller runs. It belongs to no node and must
// survive.
var foreignAddress = netip.MustParseAddr("10.225.0.10")

type object = map[string]any

// mainEnvironment is the environment of all acts but the last.
func mainEnvironment() place {
	return place{nodes: initialNodes, resources: seedResources(), latencyScale: latencyScale, azureJSON: azureJSON}
}

// azureJSON is the controller's configuration file.
func azureJSON(ignoresNodes bool) object {
	return object{
		"enableNodeAdminState": !ignoresNodes,
		"cloud":                "AzurePublicCloud", "subscriptionId": subscription, "resourceGroup": resourceGroup, "location": "eastus",
		"vnetName": network, "subnetName": subnet, "securityGroupName": securityGroup, "loadBalancerSku": "standard", "loadBalancerBackendPoolConfigurationType": "nodeIP", "localServicePools": "own",
		"loadBalancerBackendPoolUpdateIntervalInSeconds": int(updateInterval.Seconds()),
	}
}

// seedResources are the initial Azure resources: the nodes' virtual network, and its security group, in which
// Weir admits clients.
func seedResources() []object {
	group, net := provider+"networkSecurityGroups/"+securityGroup, provider+"virtualNetworks/"+network
	return []object{
		{"id": group, "body": object{"location": "eastus", "properties": object{"securityRules": []object{}}}},
		{"id": net, "body": object{
			"location": "eastus", "properties": object{"addressSpace": object{"addressPrefixes": []string{"10.224.0.0/12"}}},
		}},
		{"id": net + "/subnets/" + subnet, "body": object{
			"properties": object{"addressPrefix": "10.224.0.0/16", "networkSecurityGroup": object{"id": group}},
		}},
	}
}

// azureObserver reads the emulator through its admin API, without call log and limits. Use
// newAzureObserver.
type azureObserver struct {
	admin  string // base URL with trailing slash
	client *http.Client
}

func newAzureObserver(admin string) *azureObserver {
	return &azureObserver{admin: admin, client: &http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{}, // local, so no proxy
	}}
}

func (a *azureObserver) readSnapshot(ctx context.Context) (*azureSnapshot, error) {
	body, err := a.getJSON(ctx, "snapshot")
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var resources []resourceSnapshot
	if err := json.NewDecoder(body).Decode(&resources); err != nil {
		return nil, fmt.Errorf("the emulator's snapshot: %w", err)
	}
	return newAzureSnapshot(resources), nil
}

// listCalls returns the calls after a sequence number.
func (a *azureObserver) listCalls(ctx context.Context, after uint64) ([]armemu.Call, error) {
	body, err := a.getJSON(ctx, fmt.Sprintf("calls?since=%d", after))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var calls []armemu.Call
	for decoder := json.NewDecoder(body); ; {
		var c armemu.Call
		switch err := decoder.Decode(&c); {
		case errors.Is(err, io.EOF):
			return calls, nil
		case err != nil:
			return nil, fmt.Errorf("the emulator's call log: %w", err)
		}
		calls = append(calls, c)
	}
}

func (a *azureObserver) getJSON(ctx context.Context, subject string) (io.ReadCloser, error) {
	return a.sendRequest(ctx, http.MethodGet, subject, nil, http.StatusOK)
}

// setFaults replaces the emulator's fault script.
func (a *azureObserver) setFaults(ctx context.Context, script object) error {
	raw, err := json.Marshal(script) // JSON is valid YAML
	if err != nil {
		return err
	}
	body, err := a.sendRequest(ctx, http.MethodPut, "faults", bytes.NewReader(raw), http.StatusNoContent)
	if err != nil {
		return err
	}
	return body.Close()
}

func (a *azureObserver) sendRequest(ctx context.Context, method, subject string, body io.Reader, expected int) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.admin+subject, body)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the emulator: %w", err)
	}
	if resp.StatusCode != expected {
		_ = resp.Body.Close() // the status suffices
		return nil, fmt.Errorf("asking the emulator: %s %s: %s", method, subject, resp.Status)
	}
	return resp.Body, nil
}

// ruleFlows returns the flow distribution of each load balancing rule.
func (a *azureObserver) ruleFlows(ctx context.Context) ([]armemu.RuleFlows, error) {
	body, err := a.getJSON(ctx, "probe")
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var flows struct{ Rules []armemu.RuleFlows }
	if err := json.NewDecoder(body).Decode(&flows); err != nil {
		return nil, fmt.Errorf("the emulator's flows: %w", err)
	}
	return flows.Rules, nil
}

// stopMachine makes the machine with an address stop answering probes and flows.
func (a *azureObserver) stopMachine(ctx context.Context, ip string) error {
	raw, err := json.Marshal(object{"ip": ip, "alive": false})
	if err != nil {
		return err
	}
	body, err := a.sendRequest(ctx, http.MethodPost, "probe", bytes.NewReader(raw), http.StatusNoContent)
	if err != nil {
		return err
	}
	return body.Close()
}

func (a *azureObserver) resetFlows(ctx context.Context) error {
	body, err := a.sendRequest(ctx, http.MethodDelete, "probe", nil, http.StatusNoContent)
	if err != nil {
		return err
	}
	return body.Close()
}
