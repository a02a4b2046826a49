// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/config"
)

// Where pools hold network interfaces, each node has a machine: a virtual machine with its own
// interface, or an instance of one of two uniform scale sets that differ in their upgrade policy.

const compute = inGroup + "/providers/Microsoft.Compute/"

// outbound is an unmanaged load balancer; every machine is in its pool for outbound traffic.
const (
	outbound     = "outbound"
	outboundPool = network + "loadBalancers/" + outbound + "/backendAddressPools/all"
)

// interfaces makes pools hold network interfaces and injects machine faults.
func (d *draw) interfaces() {
	d.configure(func(c *config.Config) { c.BackendPoolType = config.NodeIPConfiguration })
	d.world(func(o *Options) { o.Behaviour.InterfaceAdminState = behaviour.Accepted }) // otherwise no pool gets in sync
	for range 4 + d.IntN(6) {
		path := pick(d, "networkInterfaces/*", "virtualMachineScaleSets/*", "virtualMachineScaleSets/*/virtualMachines/*")
		kind := pick(d, "put", "put", "get", "poll", "list")
		if path == "virtualMachineScaleSets/*" && kind == "put" {
			kind = "patch"
		}
		action := pick(d,
			"{status: 429, code: RetryableError, message: busy, headers: {Retry-After: '7'}}",
			"{status: 429, code: OperationNotAllowed, message: busy, headers: {Retry-After: '40'}}",
			"{status: 409, code: Conflict, message: another request}",
			"{status: 500, code: InternalServerError, message: broken}",
			"{drop: true}", "{drop: true, applied: true}", "{bumpEtag: true}",
		)
		if (kind == "put" || kind == "patch") && d.IntN(3) == 0 {
			action = "{operation: {fail: {code: InternalServerError, message: broken}}}"
		}
		text := fmt.Sprintf("{name: fault, match: {path: %q, kind: %s, maxMatches: %d}, action: %s}", path, kind, 1+d.IntN(4), action)
		d.add(func(s *Stage) error { return s.AzureFaults(text) }, "Azure: %s", text)
	}
}

// scaleSets maps uniform scale sets to their upgrade policies.
var scaleSets = map[string]string{"blue": "Manual", "green": "Automatic"}

// interfaces reports whether pools hold network interfaces.
func (s *Stage) interfaces() bool {
	return s.cfg.HasInterfaceMembers()
}

// machines reports whether nodes have machines.
func (s *Stage) machines() bool { return s.interfaces() || s.opts.Machines }

// addressesOf returns the addresses of a node.
func addressesOf(number int) (v4, v6 string) {
	return fmt.Sprintf("10.0.1.%d", number+4), fmt.Sprintf("fd00::1:%x", number+4)
}

// setOf returns the scale set of a node's machine. It is empty for every third node and where pools
// hold addresses.
func (s *Stage) setOf(number int) string {
	if !s.machines() {
		return ""
	}
	return [3]string{"", "blue", "green"}[number%3]
}

// machineID returns the ARM id of a node's machine.
func (s *Stage) machineID(number int) string {
	set := s.setOf(number)
	if set == "" {
		return compute + "virtualMachines/" + nodeName(number)
	}
	return fmt.Sprintf("%svirtualMachineScaleSets/%s/virtualMachines/%d", compute, set, number)
}

// makeSets creates the scale sets without instances.
func (s *Stage) makeSets() error {
	if !s.machines() {
		return nil
	}
	if err := s.seed(network+"loadBalancers/"+outbound, map[string]any{
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
				"virtualMachineProfile": map[string]any{"networkProfile": profile("", "")},
			},
		}
		if err := s.seed(compute+"virtualMachineScaleSets/"+name, body); err != nil {
			return err
		}
	}
	return nil
}

// makeMachine creates the machine of a node if it is missing. It waits for the deletion of a
// previous instance.
func (s *Stage) makeMachine(number int) error {
	if !s.machines() {
		return nil
	}
	id, set := s.machineID(number), s.setOf(number)
	_, there := s.emu.Get(id)
	for n := 0; set != "" && there && n < 60; n++ {
		s.Pass(10 * time.Second)
		_, there = s.emu.Get(id)
	}
	if there {
		return nil
	}
	v4, v6 := addressesOf(number)
	if set != "" {
		return s.seed(id, map[string]any{"location": region, "properties": map[string]any{"networkProfileConfiguration": s.modelOf(set, v4, v6)}})
	}
	nic := network + "networkInterfaces/" + nodeName(number)
	configs := profile(v4, v6)["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"]
	if err := s.seed(nic, map[string]any{"location": region, "properties": map[string]any{"ipConfigurations": configs}}); err != nil {
		return err
	}
	return s.seed(id, map[string]any{"location": region, "properties": map[string]any{
		"networkProfile": map[string]any{"networkInterfaces": []any{map[string]any{"id": nic}}},
	}})
}

// deleteMachine deletes the scale set instance of a node. Other machines stay without a node.
func (s *Stage) deleteMachine(number int) error {
	if s.setOf(number) == "" {
		return nil
	}
	return s.ofMachine(http.MethodDelete, s.machineID(number))
}

// ofMachine sends a request of the machine operator.
func (s *Stage) ofMachine(method, path string) error {
	var failed error
	for range 10 { // faults are meant for Weir
		req, err := http.NewRequestWithContext(ctx, method, "https://management.azure.com"+path+"?api-version=2024-11-01", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+azureToken)
		resp, err := s.emu.Transport().Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode < http.StatusBadRequest {
				return nil
			}
			err = fmt.Errorf("%s %s: %s", method, path, resp.Status)
		}
		failed = err
		s.Pass(10 * time.Second)
	}
	return failed
}

// modelOf returns a new instance of a scale set: the pools of the model, and addresses.
func (s *Stage) modelOf(set, v4, v6 string) map[string]any {
	raw, _ := s.emu.Get(compute + "virtualMachineScaleSets/" + set)
	var is struct {
		Properties struct {
			Profile struct {
				Network map[string]any `json:"networkProfile"`
			} `json:"virtualMachineProfile"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(raw, &is); err != nil {
		s.breaks("scale set %s: %v", set, err)
	}
	model := is.Properties.Profile.Network
	configs := model["networkInterfaceConfigurations"].([]any)[0].(map[string]any)["properties"].(map[string]any)["ipConfigurations"].([]any)
	for i, ip := range []string{v4, v6} {
		configs[i].(map[string]any)["properties"].(map[string]any)["privateIPAddress"] = ip
	}
	return model
}

// profile returns the network profile of a machine with one address per family; empty addresses are
// omitted.
func profile(v4, v6 string) map[string]any {
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

func (s *Stage) seed(id string, body map[string]any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if err := s.emu.Put(id, text); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

// foreignInterface adds an unmanaged network interface to a pool.
func (s *Stage) foreignInterface(pool, ip string) error {
	config := map[string]any{"name": "four", "properties": map[string]any{
		"primary": true, "privateIPAddressVersion": "IPv4", "privateIPAddress": ip, "subnet": map[string]any{"id": vnetID + "/subnets/nodes"},
		"loadBalancerBackendAddressPools": []any{map[string]any{"id": pool}},
	}}
	return s.seed(network+"networkInterfaces/theirs-"+ip, map[string]any{"location": region, "properties": map[string]any{"ipConfigurations": []any{config}}})
}
