// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// The power state decides how a network interface behaves.

const (
	instanceView     = "instanceView"
	powerState       = "PowerState/"
	powerRunning     = powerState + "running"
	powerDeallocated = powerState + "deallocated"
)

func instanceStatuses(body fields) []fields {
	return objectList(objectField(propertyFields(body), instanceView), "statuses")
}

func withPower(body fields, state string) fields {
	list := slices.DeleteFunc(instanceStatuses(body), func(s fields) bool { return strings.HasPrefix(stringField(s, "code"), powerState) })
	list = append(list, fields{"code": state})
	return withField(body, "properties", withField(propertyFields(body), instanceView, withField(objectField(propertyFields(body), instanceView), "statuses", toArray(list))))
}

func isDeallocated(body fields) bool {
	return slices.ContainsFunc(instanceStatuses(body), func(s fields) bool { return sameName(stringField(s, "code"), powerDeallocated) })
}

func (e *Emulator) machinesOfNIC(nic resourceID) (hosts []*aggregate) {
	for _, id := range e.references().nic[nic.rootKey()] {
		if agg := e.aggregates[strings.ToLower(id)]; agg != nil && !isDeallocated(agg.body) {
			hosts = append(hosts, agg)
		}
	}
	return hosts
}

func (e *Emulator) rejectBusyMachine(p *proposal) *Problem {
	if p.on != KindPut || p.id.root != networkInterfaceKind {
		return nil
	}
	for _, agg := range e.machinesOfNIC(p.id) {
		if agg.op != nil && !agg.op.remove {
			return notProvisioned(agg, p.id)
		}
	}
	return nil
}

func (e *Emulator) rejectDeletedMachine(p *proposal) *Problem {
	if p.on != KindPut || p.id.root != networkInterfaceKind {
		return nil
	}
	for _, agg := range e.machinesOfNIC(p.id) {
		if agg.op != nil && agg.op.remove {
			return &Problem{Status: http.StatusConflict, Code: "OperationNotAllowed", Message: fmt.Sprintf(
				"Operation 'startTenantUpdate' is not allowed on VM '%s' since the VM is marked for deletion. You can only retry the Delete operation (or wait for an ongoing one to complete).",
				agg.id.name)}
		}
	}
	return nil
}

// renderExpanded includes a machine's instance view only with $expand.
func (e *Emulator) renderExpanded(agg *aggregate, id resourceID, expand string) fields {
	out := agg.renderResource(id, e.references())
	if agg.id.root != virtualMachineKind && agg.id.root != instanceKind {
		return out
	}
	props := maps.Clone(propertyFields(out))
	if agg.id.root == instanceKind {
		e.renderInstance(agg, out, props)
	}
	delete(props, instanceView)
	if strings.EqualFold(expand, instanceView) {
		view := agg.body
		if !slices.ContainsFunc(instanceStatuses(view), func(s fields) bool { return strings.HasPrefix(stringField(s, "code"), powerState) }) {
			view = withPower(view, powerRunning)
		}
		props[instanceView] = propertyFields(view)[instanceView]
	}
	out["properties"] = props
	return out
}
