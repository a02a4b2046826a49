// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
)

// Network interfaces of a scale set are read-only views below its instances.

const (
	interfacesSegment = "networkInterfaces"
	// As the SDK uses.
	interfacesVersion = "2018-10-01"
)

func (e *Emulator) readInterfaces(x *exchange) *Problem {
	id := x.route.id
	if parent, below := id.parentID(); below && e.aggregates[parent.key()] == nil {
		return resourceNotFound(parent)
	}
	if problem := validateInstanceID(id); problem != nil {
		return problem
	}
	agg := e.aggregates[id.key()]
	if agg == nil {
		return resourceNotFound(id)
	}
	machines := []*aggregate{agg}
	if id.root == scaleSetKind {
		machines = e.scaleSetInstances(id)
	}
	values := []any{}
	for _, machine := range machines {
		for _, nic := range objectList(objectField(propertyFields(machine.body), instanceProfile), profileNICs) {
			if x.route.nic == "" || sameName(stringField(nic, "name"), x.route.nic) {
				values = append(values, renderInterface(machine, nic))
			}
		}
	}
	x.status, x.body = http.StatusOK, fields{"value": values}
	if x.route.kind == KindList {
		return nil
	}
	if len(values) == 0 {
		return &Problem{Status: http.StatusNotFound, Code: "NotFound", Message: fmt.Sprintf("Resource %s/%s/%s not found.", id, interfacesSegment, x.route.nic)}
	}
	x.body = values[0]
	return nil
}

func renderInterface(machine *aggregate, nic fields) fields {
	id := machine.id.String() + "/" + interfacesSegment + "/" + stringField(nic, "name")
	etag := "W/" + machine.etag
	configs := objectList(propertyFields(nic), ipConfigKind.collection)
	for i, c := range configs {
		props := withDefaults(propertyFields(c), fields{"privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4"})
		props["provisioningState"] = machine.state
		configs[i] = fields{
			"name": stringField(c, "name"), "id": id + "/" + ipConfigKind.collection + "/" + stringField(c, "name"), "etag": etag, "properties": props,
		}
	}
	props := withField(propertyFields(nic), ipConfigKind.collection, toArray(configs))
	props["provisioningState"] = machine.state
	props["virtualMachine"] = fields{"id": machine.id.String()}
	return fields{"name": stringField(nic, "name"), "id": id, "etag": etag, "properties": props}
}
