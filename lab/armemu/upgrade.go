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

// Instances take a changed model automatically (Automatic, Rolling) or on request (Manual).

const (
	machineProfile  = "virtualMachineProfile"
	instanceProfile = "networkProfileConfiguration"
	profileNICs     = "networkInterfaceConfigurations"
	upgradePolicy   = "upgradePolicy"
)

type upgradeBatch struct {
	at       time.Time
	machines []string // keys
}

// modelHash identifies a model: an instance with the same value is up to date.
func modelHash(set fields) string {
	sum := sha256.Sum256(encodeJSON(propertyFields(set)[machineProfile]))
	return fmt.Sprintf("%x", sum[:8])
}

func isFlexible(set fields) bool {
	return sameName(stringField(propertyFields(set), "orchestrationMode"), "Flexible")
}

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

func (e *Emulator) planUpgradeBatches(op *operation, p *proposal) []upgradeBatch {
	policy := objectField(propertyFields(p.root), upgradePolicy)
	mode := stringField(policy, "mode")
	if p.id.root != scaleSetKind || p.on != KindPut || modelHash(p.before) == modelHash(p.root) || isFlexible(p.root) {
		return nil
	}
	keys := keysOf(e.scaleSetInstances(p.id))
	switch {
	case sameName(mode, "Automatic"):
		return []upgradeBatch{{op.deadline, keys}}
	case sameName(mode, "Rolling"):
		return e.splitBatches(op.deadline, objectField(policy, "rollingUpgradePolicy"), keys)
	}
	return nil
}

// splitBatches assumes that every batch becomes healthy; the next one starts after the pause.
func (e *Emulator) splitBatches(from time.Time, policy fields, batches []string) []upgradeBatch {
	percent, given := intField(policy, "maxBatchInstancePercent")
	if !given || percent < 1 {
		percent = 20
	}
	size := max(len(batches)*min(percent, 100)/100, 1)
	var rolls []upgradeBatch
	for batch := range slices.Chunk(batches, size) {
		from = from.Add(e.sampleLatency(instanceLatency))
		rolls = append(rolls, upgradeBatch{from, batch})
		from = from.Add(e.scaleDuration(parseISO8601(stringField(policy, "pauseTimeBetweenBatches"))))
	}
	return rolls
}

func parseISO8601(text string) time.Duration {
	rest, ok := strings.CutPrefix(text, "PT")
	d, err := time.ParseDuration(strings.ToLower(rest))
	if !ok || err != nil {
		return 0
	}
	return d
}

// scheduleUpgrades upgrades no instance if the operation fails or is stuck (assumed).
func (e *Emulator) scheduleUpgrades(op *operation, rolls []upgradeBatch) {
	if op.status != opInProgress || op.stuck || op.problem != nil {
		return
	}
	op.upgradeBatches = rolls
	for _, r := range rolls {
		op.deadline = laterTime(op.deadline, r.at)
		for _, key := range r.machines {
			e.aggregates[key].state = stateUpdating
		}
	}
}

func laterTime(a, b time.Time) time.Time {
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

func (e *Emulator) applyUpgrades(now time.Time) {
	for _, op := range slices.Clone(e.running) {
		for len(op.upgradeBatches) > 0 && !op.upgradeBatches[0].at.After(now) {
			due := op.upgradeBatches[0]
			op.upgradeBatches = op.upgradeBatches[1:]
			e.revision++
			for _, key := range due.machines {
				e.upgradeInstance(e.aggregates[op.target.rootKey()], e.aggregates[key], due.at)
			}
		}
	}
}

func (e *Emulator) upgradeInstance(set, machine *aggregate, at time.Time) {
	if set == nil || machine == nil {
		return
	}
	before := machine.body
	machine.body = e.allocateAddresses(machine.id, retainServerState(instanceKind, before, withModelInterfaces(set.body, before)))
	machine.model, machine.state = modelHash(set.body), stateSucceeded
	e.renewEtag(machine)
	e.updateReferences(machine.id, before, machine.body)
	e.updateDataPlane(machine.id, at)
}

func withModelInterfaces(set, body fields) fields {
	nics, given := objectField(objectField(propertyFields(set), machineProfile), "networkProfile")[profileNICs]
	if !given {
		return body
	}
	return withField(body, "properties", withField(propertyFields(body), instanceProfile, fields{profileNICs: nics}))
}

func (e *Emulator) cancelUpgrades(op *operation) {
	for _, r := range op.upgradeBatches {
		for _, key := range r.machines {
			if machine := e.aggregates[key]; machine != nil {
				machine.state = stateSucceeded
			}
		}
	}
	op.upgradeBatches = nil
}
