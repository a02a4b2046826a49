// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A scale set has a model, by which its machines are made. A change of it reaches those that
// are there when they are upgraded: by themselves (Automatic, Rolling), or when somebody asks
// for it (Manual).

const (
	machineProfile = "virtualMachineProfile"
	profileOfOne   = "networkProfileConfiguration"
	nicsOfProfile  = "networkInterfaceConfigurations"
	upgradePolicy  = "upgradePolicy"
)

// A roll is when machines of a scale set take its model.
type roll struct {
	at       time.Time
	machines []string // keys
}

// modelOf names a model: a machine that was given the same one is up to date.
func modelOf(set fields) string {
	sum := sha256.Sum256(encode(properties(set)[machineProfile]))
	return fmt.Sprintf("%x", sum[:8])
}

// isFlexible tells whether the machines of a scale set are machines of their own.
func isFlexible(set fields) bool {
	return sameName(text(properties(set), "orchestrationMode"), "Flexible")
}

// planUpgrade is the action manualupgrade.
func (e *Emulator) planUpgrade(set *aggregate, body fields) (fields, []*aggregate, *Problem) {
	if isFlexible(set.body) {
		return nil, nil, &Problem{
			Status: http.StatusConflict, Code: "OperationNotAllowed",
			Message: fmt.Sprintf("Operation 'manualupgrade' is not allowed on scale set '%s': the emulator upgrades machines of uniform scale sets only.", set.id.name),
		}
	}
	machines, problem := e.instanceIDs(set.id, body)
	return set.body, machines, problem
}

// planRolls says when the machines of a scale set take a model that a write has changed.
func (e *Emulator) planRolls(op *operation, p *proposal) []roll {
	policy := object(properties(p.root), upgradePolicy)
	mode := text(policy, "mode")
	if p.id.root != scaleSetKind || p.on != KindPut || modelOf(p.before) == modelOf(p.root) || isFlexible(p.root) {
		return nil
	}
	all := keysOf(e.instancesOf(p.id))
	switch {
	case sameName(mode, "Automatic"):
		return []roll{{op.deadline, all}}
	case sameName(mode, "Rolling"):
		return e.batches(op.deadline, object(policy, "rollingUpgradePolicy"), all)
	}
	return nil
}

// batches splits machines as a rolling upgrade does. One batch is healthy when it is done
// (assumed), and the next one begins after the pause.
func (e *Emulator) batches(from time.Time, policy fields, all []string) []roll {
	percent, given := number(policy, "maxBatchInstancePercent")
	if !given || percent < 1 {
		percent = 20
	}
	size := max(len(all)*min(percent, 100)/100, 1)
	var rolls []roll
	for batch := range slices.Chunk(all, size) {
		from = from.Add(e.latency(instance))
		rolls = append(rolls, roll{from, batch})
		from = from.Add(e.scaled(iso8601(text(policy, "pauseTimeBetweenBatches"))))
	}
	return rolls
}

// iso8601 reads a duration such as PT1M30S; what it cannot read is none.
func iso8601(text string) time.Duration {
	rest, ok := strings.CutPrefix(text, "PT")
	d, err := time.ParseDuration(strings.ToLower(rest))
	if !ok || err != nil {
		return 0
	}
	return d
}

// follow has machines take the model while the operation runs, which ends with the last of
// them. One that fails or is stuck upgrades none (assumed).
func (e *Emulator) follow(op *operation, rolls []roll) {
	if op.status != opInProgress || op.stuck || op.problem != nil {
		return
	}
	op.rolls = rolls
	for _, r := range rolls {
		op.deadline = later(op.deadline, r.at)
		for _, key := range r.machines {
			e.aggregates[key].state = stateUpdating
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func keysOf(list []*aggregate) []string {
	keys := make([]string, len(list))
	for i, agg := range list {
		keys[i] = agg.id.key()
	}
	return keys
}

// rollUntil has machines take the model whose time has come.
func (e *Emulator) rollUntil(now time.Time) {
	for _, op := range slices.Clone(e.running) {
		for len(op.rolls) > 0 && !op.rolls[0].at.After(now) {
			due := op.rolls[0]
			op.rolls = op.rolls[1:]
			for _, key := range due.machines {
				e.upgrade(e.aggregates[op.target.rootKey()], e.aggregates[key], due.at)
			}
		}
	}
}

// upgrade gives a machine the model of its scale set; one that is gone needs none.
func (e *Emulator) upgrade(set, machine *aggregate, at time.Time) {
	if set == nil || machine == nil {
		return
	}
	before := machine.body
	machine.body = e.allocate(machine.id, keepServerState(instanceKind, before, modelled(set.body, before)))
	machine.model, machine.state = modelOf(set.body), stateSucceeded
	e.retag(machine)
	e.changed(machine.id, before, machine.body)
	e.programmed(machine.id, at)
}

// modelled is a machine's body with the interfaces of the model.
func modelled(set, body fields) fields {
	nics, given := object(object(properties(set), machineProfile), "networkProfile")[nicsOfProfile]
	if !given {
		return body
	}
	return with(body, "properties", with(properties(body), profileOfOne, fields{nicsOfProfile: nics}))
}

// endRolls lets go of the machines that an operation was to upgrade.
func (e *Emulator) endRolls(op *operation) {
	for _, r := range op.rolls {
		for _, key := range r.machines {
			if machine := e.aggregates[key]; machine != nil {
				machine.state = stateSucceeded
			}
		}
	}
	op.rolls = nil
}
