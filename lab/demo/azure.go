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

// The Azure that the story plays in.
const (
	subscription  = "00000000-0000-0000-0000-000000000000"
	resourceGroup = "rg"
	loadBalancer  = "kubernetes"
	network       = "vnet"
	// updateInterval is short, so that the pace of a busy pool shows in a minute.
	updateInterval = 5 * time.Second
	// latency is the profile without machines: the demo shows what happens in which order, and
	// its nodes are none that Azure would have to program.
	latency = "quiet"
	// latencyScale makes a pool's write take about 0.15 s, and polls come each second.
	latencyScale = 0.1
)

const provider = "/subscriptions/" + subscription + "/resourceGroups/" + resourceGroup + "/providers/Microsoft.Network/"

// foreignAddress is put into a pool while there is no controller. No node has it: some
// other hand put it there, and it has to survive.
var foreignAddress = netip.MustParseAddr("10.225.0.10")

type object = map[string]any

// firstPlace is where the story plays but for its last act.
func firstPlace() place {
	return place{nodes: firstNodes, resources: seedResources(), latencyScale: latencyScale, azureJSON: azureJSON}
}

// azureJSON is the configuration file of the controller.
func azureJSON(ignoresNodes bool) object {
	return object{
		"enableNodeAdminState": !ignoresNodes,
		"cloud":                "AzurePublicCloud", "subscriptionId": subscription, "resourceGroup": resourceGroup, "location": "eastus",
		"vnetName": network, "loadBalancerSku": "standard", "loadBalancerBackendPoolConfigurationType": "nodeIP",
		"loadBalancerBackendPoolUpdateIntervalInSeconds": int(updateInterval.Seconds()),
	}
}

// seedResources are what is there before Weir comes: the nodes' virtual network.
func seedResources() []object {
	return []object{{"id": provider + "virtualNetworks/" + network, "body": object{
		"location": "eastus", "properties": object{"addressSpace": object{"addressPrefixes": []string{"10.224.0.0/12"}}},
	}}}
}

// azureWitness looks at the emulator from behind, through its admin API: what it
// reads is in no call log and counts against no limit. The zero client is not
// usable; see newAzureWitness.
type azureWitness struct {
	admin  string // base URL, ends in a slash
	client *http.Client
}

func newAzureWitness(admin string) *azureWitness {
	return &azureWitness{admin: admin, client: &http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{}, // no proxy: it is on this machine
	}}
}

// shown returns what Azure shows.
func (a *azureWitness) shown(ctx context.Context) (*shownAzure, error) {
	body, err := a.get(ctx, "snapshot")
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it has been read
	var resources []shownResource
	if err := json.NewDecoder(body).Decode(&resources); err != nil {
		return nil, fmt.Errorf("the emulator's snapshot: %w", err)
	}
	return newShownAzure(resources), nil
}

// calls returns the calls after the one with a sequence number.
func (a *azureWitness) calls(ctx context.Context, after uint64) ([]armemu.Call, error) {
	body, err := a.get(ctx, fmt.Sprintf("calls?since=%d", after))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it has been read
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

func (a *azureWitness) get(ctx context.Context, what string) (io.ReadCloser, error) {
	return a.do(ctx, http.MethodGet, what, nil, http.StatusOK)
}

// setFaults replaces the emulator's fault script.
func (a *azureWitness) setFaults(ctx context.Context, script object) error {
	raw, err := json.Marshal(script) // JSON is YAML
	if err != nil {
		return err
	}
	body, err := a.do(ctx, http.MethodPut, "faults", bytes.NewReader(raw), http.StatusNoContent)
	if err != nil {
		return err
	}
	return body.Close()
}

func (a *azureWitness) do(ctx context.Context, method, what string, body io.Reader, expected int) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.admin+what, body)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the emulator: %w", err)
	}
	if resp.StatusCode != expected {
		_ = resp.Body.Close() // the status says enough
		return nil, fmt.Errorf("asking the emulator: %s %s: %s", method, what, resp.Status)
	}
	return resp.Body, nil
}

// flows returns how each load balancing rule sends new flows.
func (a *azureWitness) flows(ctx context.Context) ([]armemu.RuleFlows, error) {
	body, err := a.get(ctx, "probe")
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it has been read
	var all struct{ Rules []armemu.RuleFlows }
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		return nil, fmt.Errorf("the emulator's flows: %w", err)
	}
	return all.Rules, nil
}

// dies tells that the machine with an address answers no probe and no flow any more.
func (a *azureWitness) dies(ctx context.Context, ip string) error {
	raw, err := json.Marshal(object{"ip": ip, "alive": false})
	if err != nil {
		return err
	}
	body, err := a.do(ctx, http.MethodPost, "probe", bytes.NewReader(raw), http.StatusNoContent)
	if err != nil {
		return err
	}
	return body.Close()
}

// forgetFlows begins to count anew.
func (a *azureWitness) forgetFlows(ctx context.Context) error {
	body, err := a.do(ctx, http.MethodDelete, "probe", nil, http.StatusNoContent)
	if err != nil {
		return err
	}
	return body.Close()
}
