// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

type action struct {
	name string // as in the path, e.g. manualupgrade; case-insensitive
	// permission is the last part of the required RBAC action.
	permission string
	latency    latencyRange
	// plan returns the proposed body and the affected instances.
	plan func(e *Emulator, agg *aggregate, body fields) (root fields, machines []*aggregate, problem *Problem)
}

var (
	manualUpgrade = &action{name: "manualupgrade", permission: "manualUpgrade", latency: upgradeLatency, plan: (*Emulator).planUpgrade}
	deallocate    = &action{name: "deallocate", permission: "deallocate", latency: machine, plan: func(_ *Emulator, agg *aggregate, _ fields) (fields, []*aggregate, *Problem) {
		return withPower(agg.body, powerDeallocated), nil, nil
	}}
	startMachine = &action{name: "start", permission: "start", latency: machine, plan: func(_ *Emulator, agg *aggregate, _ fields) (fields, []*aggregate, *Problem) {
		return withPower(agg.body, powerRunning), nil, nil
	}}
)

func actionOn(kind *rootKind, name string) *action {
	var actions []*action
	switch kind {
	case scaleSetKind:
		actions = []*action{manualUpgrade}
	case virtualMachineKind, instanceKind:
		actions = []*action{deallocate, startMachine}
	}
	i := slices.IndexFunc(actions, func(a *action) bool { return strings.EqualFold(a.name, name) })
	if i < 0 {
		return nil
	}
	return actions[i]
}

func (e *Emulator) acceptAction(x *exchange) *Problem {
	if x.route.action == ruleHealth {
		return e.acceptHealth(x)
	}
	agg := e.aggregates[x.route.id.rootKey()]
	body := fields{}
	if len(x.payload) > 0 {
		var err error
		if body, err = x.decodeObject(); err != nil {
			return badJSON(err)
		}
	}
	root, machines, problem := x.route.action.plan(e, agg, body)
	if problem == nil {
		problem = e.rejectConcurrent(x, agg)
	}
	if problem != nil {
		return problem
	}
	p := &proposal{e: e, id: agg.id, on: KindAction, action: x.route.action, before: agg.body, root: root}
	op := e.startOperation(x, agg, p)
	e.scheduleUpgrades(op, []upgradeBatch{{at: op.deadline, machines: keysOf(machines)}})
	x.call.Operation, x.call.EtagAfter = op.id, agg.etag
	setPollHeaders(x, op)
	x.status = http.StatusAccepted
	return nil
}

// rejectConcurrent: Compute always rejects overlaps on a scale set and its instances; two instances
// do not overlap.
func (e *Emulator) rejectConcurrent(x *exchange, agg *aggregate) *Problem {
	id := x.route.id
	if x.route.kind == KindDelete || id.root != scaleSetKind && id.root != instanceKind {
		if agg == nil {
			return nil
		}
		return e.rejectOverlap(x, agg)
	}
	busy := agg != nil && agg.op != nil
	if parent, below := id.parentID(); below {
		busy = busy || e.aggregates[parent.key()].op != nil
	}
	for _, machine := range e.scaleSetInstances(id) {
		busy = busy || machine.op != nil
	}
	if !busy {
		return nil
	}
	return &Problem{
		Status: http.StatusConflict, Code: "Conflict",
		Message: "The request failed due to conflict with a concurrent request. To resolve it, please refer to https://aka.ms/activitylog to get more details on the conflicting requests.",
	}
}

func (e *Emulator) instanceIDs(set resourceID, body fields) ([]*aggregate, *Problem) {
	list, ok := body["instanceIds"].([]any)
	if !ok || len(list) == 0 {
		return nil, badJSON(errors.New("instanceIds: want an array of numbers of machines as strings, or of \"*\""))
	}
	instances := e.scaleSetInstances(set)
	if slices.Equal(list, []any{"*"}) {
		return instances, nil
	}
	var named []*aggregate
	for _, v := range list {
		id, _ := v.(string)
		i := slices.IndexFunc(instances, func(a *aggregate) bool { return a.id.name == id })
		if i < 0 {
			return nil, inactiveInstance(id)
		}
		named = append(named, instances[i])
	}
	return named, nil
}
