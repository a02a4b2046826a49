// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
)

// Network interfaces of a scale set are read-only views below its instances, which define them.
// Only here do their addresses show.

const (
	interfacesOfSet = "networkInterfaces"
	// interfacesVersion is the api-version of Microsoft.Network that the SDK uses here.
	interfacesVersion = "2018-10-01"
)

// readInterfaces serves a GET or list of network interfaces of a scale set or instance.
func (e *Emulator) readInterfaces(x *exchange) *Problem {
	id := x.route.id
	if parent, below := id.above(); below && e.aggregates[parent.key()] == nil {
		return missing(parent)
	}
	if problem := badInstance(id); problem != nil {
		return problem
	}
	agg := e.aggregates[id.key()]
	if agg == nil {
		return missing(id)
	}
	machines := []*aggregate{agg}
	if id.root == scaleSetKind {
		machines = e.instancesOf(id)
	}
	values := []any{}
	for _, machine := range machines {
		for _, nic := range objects(object(properties(machine.body), profileOfOne), nicsOfProfile) {
			if x.route.nic == "" || sameName(text(nic, "name"), x.route.nic) {
				values = append(values, renderInterface(machine, nic))
			}
		}
	}
	x.status, x.body = http.StatusOK, fields{"value": values}
	if x.route.kind == KindList {
		return nil
	}
	if len(values) == 0 {
		return &Problem{Status: http.StatusNotFound, Code: "NotFound", Message: fmt.Sprintf("Resource %s/%s/%s not found.", id, interfacesOfSet, x.route.nic)}
	}
	x.body = values[0]
	return nil
}

// renderInterface returns an instance's network interface in the format of its own type.
func renderInterface(machine *aggregate, nic fields) fields {
	id := machine.id.String() + "/" + interfacesOfSet + "/" + text(nic, "name")
	etag := "W/" + machine.etag
	configs := objects(properties(nic), ipConfigKind.collection)
	for i, c := range configs {
		props := filled(properties(c), fields{"privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4"})
		props["provisioningState"] = machine.state
		configs[i] = fields{
			"name": text(c, "name"), "id": id + "/" + ipConfigKind.collection + "/" + text(c, "name"), "etag": etag, "properties": props,
		}
	}
	props := with(properties(nic), ipConfigKind.collection, array(configs))
	props["provisioningState"] = machine.state
	props["virtualMachine"] = fields{"id": machine.id.String()}
	return fields{"name": text(nic, "name"), "id": id, "etag": etag, "properties": props}
}
