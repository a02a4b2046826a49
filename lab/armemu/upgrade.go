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

// Instances take a scale set's changed model when they are upgraded: automatically (Automatic,
// Rolling) or on request (Manual).

const (
	machineProfile = "virtualMachineProfile"
	profileOfOne   = "networkProfileConfiguration"
	nicsOfProfile  = "networkInterfaceConfigurations"
	upgradePolicy  = "upgradePolicy"
)

// roll is the time at which instances take the model.
type roll struct {
	at       time.Time
	machines []string // keys
}

// modelOf identifies a model: an instance with the same value is up to date.
func modelOf(set fields) string {
	sum := sha256.Sum256(encode(properties(set)[machineProfile]))
	return fmt.Sprintf("%x", sum[:8])
}

// isFlexible reports whether the scale set's instances are virtual machines.
func isFlexible(set fields) bool {
	return sameName(text(properties(set), "orchestrationMode"), "Flexible")
}

// planUpgrade plans the action manualupgrade.
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

// planRolls returns when instances take a changed model.
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

// batches splits instances as a rolling upgrade does. Every batch becomes healthy (assumed); the
// next one starts after the pause.
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

// iso8601 parses a duration such as PT1M30S; 0 if invalid.
func iso8601(text string) time.Duration {
	rest, ok := strings.CutPrefix(text, "PT")
	d, err := time.ParseDuration(strings.ToLower(rest))
	if !ok || err != nil {
		return 0
	}
	return d
}

// follow schedules upgrades during the operation, which ends with the last one. A failing or stuck
// operation upgrades none (assumed).
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

// rollUntil applies the upgrades that are due.
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

// upgrade gives an instance its scale set's model.
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

// modelled returns an instance's body with the model's network interfaces.
func modelled(set, body fields) fields {
	nics, given := object(object(properties(set), machineProfile), "networkProfile")[nicsOfProfile]
	if !given {
		return body
	}
	return with(body, "properties", with(properties(body), profileOfOne, fields{nicsOfProfile: nics}))
}

// endRolls cancels an operation's pending upgrades.
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
