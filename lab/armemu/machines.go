// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Power state of a machine; it decides how its network interface behaves.

const (
	instanceView     = "instanceView"
	powerState       = "PowerState/"
	powerRunning     = powerState + "running"
	powerDeallocated = powerState + "deallocated"
)

// statuses returns the instance view's statuses, stored only if the machine was stopped or seeded
// with them.
func statuses(body fields) []fields {
	return objects(object(properties(body), instanceView), "statuses")
}

func withPower(body fields, state string) fields {
	list := slices.DeleteFunc(statuses(body), func(s fields) bool { return strings.HasPrefix(text(s, "code"), powerState) })
	list = append(list, fields{"code": state})
	return with(body, "properties", with(properties(body), instanceView, with(object(properties(body), instanceView), "statuses", array(list))))
}

// deallocated reports whether a machine is deallocated.
func deallocated(body fields) bool {
	return slices.ContainsFunc(statuses(body), func(s fields) bool { return sameName(text(s, "code"), powerDeallocated) })
}

// hosts returns the allocated machines with this network interface; a change of it must be
// programmed there.
func (e *Emulator) hosts(nic resourceID) (hosts []*aggregate) {
	for _, id := range e.index().nic[nic.rootKey()] {
		if agg := e.aggregates[strings.ToLower(id)]; agg != nil && !deallocated(agg.body) {
			hosts = append(hosts, agg)
		}
	}
	return hosts
}

// refuseBusyMachine rejects a write of a network interface while its machine is being written.
func (e *Emulator) refuseBusyMachine(p *proposal) *Problem {
	if p.on != KindPut || p.id.root != networkInterfaceKind {
		return nil
	}
	for _, agg := range e.hosts(p.id) {
		if agg.op != nil && !agg.op.remove {
			return unprovisioned(agg, p.id)
		}
	}
	return nil
}

// startTenantUpdate rejects a write of a network interface while its machine is being deleted.
func (e *Emulator) startTenantUpdate(p *proposal) *Problem {
	if p.on != KindPut || p.id.root != networkInterfaceKind {
		return nil
	}
	for _, agg := range e.hosts(p.id) {
		if agg.op != nil && agg.op.remove {
			return &Problem{Status: http.StatusConflict, Code: "OperationNotAllowed", Message: fmt.Sprintf(
				"Operation 'startTenantUpdate' is not allowed on VM '%s' since the VM is marked for deletion. You can only retry the Delete operation (or wait for an ongoing one to complete).",
				agg.id.name)}
		}
	}
	return nil
}

// shown returns a resource as responses show it. The instance view of a machine needs $expand.
func (e *Emulator) shown(agg *aggregate, id resourceID, expand string) fields {
	out := agg.render(id, e.index())
	if agg.id.root != virtualMachineKind && agg.id.root != instanceKind {
		return out
	}
	props := maps.Clone(properties(out))
	if agg.id.root == instanceKind {
		e.showInstance(agg, out, props)
	}
	delete(props, instanceView)
	if strings.EqualFold(expand, instanceView) {
		view := agg.body
		if !slices.ContainsFunc(statuses(view), func(s fields) bool { return strings.HasPrefix(text(s, "code"), powerState) }) {
			view = withPower(view, powerRunning)
		}
		props[instanceView] = properties(view)[instanceView]
	}
	out["properties"] = props
	return out
}
