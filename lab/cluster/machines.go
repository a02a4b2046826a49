// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/lb/behavior"
)

// Where pools hold network interfaces, each node has a machine: a virtual machine with its own
// interface, or an instance of one of two uniform scale sets that differ in their upgrade policy.

const computeID = inGroup + "/providers/Microsoft.Compute/"

// outbound is an unmanaged load balancer; every machine is in its pool for outbound traffic.
const (
	outboundName = "outbound"
	outboundPool = network + "loadBalancers/" + outboundName + "/backendAddressPools/all"
)

// enableInterfaces makes pools hold network interfaces and injects machine faults.
func (b *scheduleBuilder) enableInterfaces() {
	b.addConfig(func(c *config.Config) { c.BackendPoolType = config.NodeIPConfiguration })
	b.addOption(func(o *Options) { o.Behaviour.InterfaceAdminState = behavior.Accepted }) // otherwise no pool gets in sync
	for range 4 + b.IntN(6) {
		path := pickOne(b, "networkInterfaces/*", "virtualMachineScaleSets/*", "virtualMachineScaleSets/*/virtualMachines/*")
		kind := pickOne(b, "put", "put", "get", "poll", "list")
		if path == "virtualMachineScaleSets/*" && kind == "put" {
			kind = "patch"
		}
		action := pickOne(b,
			"{status: 429, code: RetryableError, message: busy, headers: {Retry-After: '7'}}",
			"{status: 429, code: OperationNotAllowed, message: busy, headers: {Retry-After: '40'}}",
			"{status: 409, code: Conflict, message: another request}",
			"{status: 500, code: InternalServerError, message: broken}",
			"{drop: true}", "{drop: true, applied: true}", "{bumpEtag: true}",
		)
		if (kind == "put" || kind == "patch") && b.IntN(3) == 0 {
			action = "{operation: {fail: {code: InternalServerError, message: broken}}}"
		}
		text := fmt.Sprintf("{name: fault, match: {path: %q, kind: %s, maxMatches: %d}, action: %s}", path, kind, 1+b.IntN(4), action)
		b.addStep(func(s *Stage) error { return s.AzureFaults(text) }, "Azure: %s", text)
	}
}

// scaleSets maps uniform scale sets to their upgrade policies.
var scaleSets = map[string]string{"blue": "Manual", "green": "Automatic"}

// hasInterfaces reports whether pools hold network interfaces.
func (s *Stage) hasInterfaces() bool {
	return s.cfg.HasInterfaceMembers()
}

// hasMachines reports whether nodes have machines.
func (s *Stage) hasMachines() bool { return s.hasInterfaces() || s.opts.Machines }

func nodeAddresses(number int) (v4, v6 string) {
	return fmt.Sprintf("10.0.1.%d", number+4), fmt.Sprintf("fd00::1:%x", number+4)
}

// scaleSetName returns the scale set of a node's machine. It is empty for every third node and where pools
// hold addresses.
func (s *Stage) scaleSetName(number int) string {
	if !s.hasMachines() {
		return ""
	}
	return [3]string{"", "blue", "green"}[number%3]
}

// machineID returns the ARM id of a node's machine.
func (s *Stage) machineID(number int) string {
	set := s.scaleSetName(number)
	if set == "" {
		return computeID + "virtualMachines/" + nodeName(number)
	}
	return fmt.Sprintf("%svirtualMachineScaleSets/%s/virtualMachines/%d", computeID, set, number)
}

// createScaleSets creates the scale sets without instances.
func (s *Stage) createScaleSets() error {
	if !s.hasMachines() {
		return nil
	}
	if err := s.putResource(network+"loadBalancers/"+outboundName, map[string]any{
		"location": region, "sku": map[string]any{"name": "Standard"},
		"properties": map[string]any{"backendAddressPools": []any{map[string]any{"name": "all"}}},
	}); err != nil {
		return err
	}
	for name, mode := range scaleSets {
		body := map[string]any{
			"location": region,
			"properties": map[string]any{
				"orchestrationMode": "Uniform", "upgradePolicy": map[string]any{"mode": mode},
				"virtualMachineProfile": map[string]any{"networkProfile": networkProfile("", "")},
			},
		}
		if err := s.putResource(computeID+"virtualMachineScaleSets/"+name, body); err != nil {
			return err
		}
	}
	return nil
}

// createMachine creates the machine of a node if it is missing. It waits for the deletion of a
// previous instance.
func (s *Stage) createMachine(number int) error {
	if !s.hasMachines() {
		return nil
	}
	id, set := s.machineID(number), s.scaleSetName(number)
	_, ok := s.emulator.Get(id)
	for n := 0; set != "" && ok && n < 60; n++ {
		s.Sleep(10 * time.Second)
		_, ok = s.emulator.Get(id)
	}
	if ok {
		return nil
	}
	v4, v6 := nodeAddresses(number)
	if set != "" {
		return s.putResource(id, map[string]any{"location": region, "properties": map[string]any{"networkProfileConfiguration": s.newInstance(set, v4, v6)}})
	}
	nic := network + "networkInterfaces/" + nodeName(number)
	configs := networkProfile(v4, v6)["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"]
	if err := s.putResource(nic, map[string]any{"location": region, "properties": map[string]any{"ipConfigurations": configs}}); err != nil {
		return err
	}
	return s.putResource(id, map[string]any{"location": region, "properties": map[string]any{
		"networkProfile": map[string]any{"networkInterfaces": []any{map[string]any{"id": nic}}},
	}})
}

// deleteMachine deletes the scale set instance of a node. Other machines stay without a node.
func (s *Stage) deleteMachine(number int) error {
	if s.scaleSetName(number) == "" {
		return nil
	}
	return s.sendMachineRequest(http.MethodDelete, s.machineID(number))
}

// sendMachineRequest sends a request of the machine operator.
func (s *Stage) sendMachineRequest(method, path string) error {
	var failed error
	for range 10 { // faults are meant for Weir
		req, err := http.NewRequestWithContext(ctx, method, "https://management.azure.com"+path+"?api-version=2024-11-01", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+azureToken)
		resp, err := s.emulator.Transport().Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode < http.StatusBadRequest {
				return nil
			}
			err = fmt.Errorf("%s %s: %s", method, path, resp.Status)
		}
		failed = err
		s.Sleep(10 * time.Second)
	}
	return failed
}

// newInstance returns a new instance of a scale set: the pools of the model, and addresses.
func (s *Stage) newInstance(set, v4, v6 string) map[string]any {
	raw, _ := s.emulator.Get(computeID + "virtualMachineScaleSets/" + set)
	var got struct {
		Properties struct {
			Profile struct {
				Network map[string]any `json:"networkProfile"`
			} `json:"virtualMachineProfile"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		s.addViolation("scale set %s: %v", set, err)
	}
	model := got.Properties.Profile.Network
	configs := model["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"].([]any)
	for i, ip := range []string{v4, v6} {
		configs[i].(map[string]any)["properties"].(map[string]any)["privateIPAddress"] = ip
	}
	return model
}

// networkProfile returns the network profile of a machine with one address per family; empty addresses are
// omitted.
func networkProfile(v4, v6 string) map[string]any {
	ip := func(name, version, address string, primary bool) map[string]any {
		properties := map[string]any{
			"primary": primary, "privateIPAddressVersion": version, "subnet": map[string]any{"id": vnetID + "/subnets/nodes"},
		}
		if address != "" {
			properties["privateIPAddress"] = address
		}
		if primary {
			properties["loadBalancerBackendAddressPools"] = []any{map[string]any{"id": outboundPool}}
		}
		return map[string]any{"name": name, "properties": properties}
	}
	return map[string]any{"networkInterfaceConfigurations": []any{map[string]any{"name": "nic", "properties": map[string]any{
		"primary": true, "ipConfigurations": []any{ip("four", "IPv4", v4, true), ip("six", "IPv6", v6, false)},
	}}}}
}

func (s *Stage) putResource(id string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if err := s.emulator.Put(id, text); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

// addForeignInterface adds an unmanaged network interface to a pool.
func (s *Stage) addForeignInterface(pool, ip string) error {
	config := map[string]any{"name": "four", "properties": map[string]any{
		"primary": true, "privateIPAddressVersion": "IPv4", "privateIPAddress": ip, "subnet": map[string]any{"id": vnetID + "/subnets/nodes"},
		"loadBalancerBackendAddressPools": []any{map[string]any{"id": pool}},
	}}
	return s.putResource(network+"networkInterfaces/theirs-"+ip, map[string]any{"location": region, "properties": map[string]any{"ipConfigurations": []any{config}}})
}
