// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// instanceUpdate updates the instances after the scale set model is in sync.
type instanceUpdate struct {
	*attempt
	set             lb.ScaleSet
	known           nic.ScaleSetState
	instanceResults map[string]machineResult
	// openKeys are machines without a result yet.
	openKeys map[string]bool
	// scaleSetResult is the result of all machines while the scale set waits.
	scaleSetResult *machineResult
	// stopErr ended the round for the remaining instances.
	stopErr error
}

func (u *instanceUpdate) instanceMachine(id string) nic.Machine {
	return nic.Machine{ScaleSet: u.set.ID, Instance: id}
}

// runSteps writes one instance at a time: Azure accepts one write per scale set.
func (u *instanceUpdate) runSteps(ctx context.Context, steps nic.ScaleSetPlan) {
	for _, w := range steps.Waiting {
		v := machineResult{state: stateWaiting, reason: w.Reason}
		if w.Resource.Kind() == nic.KindModel {
			u.scaleSetResult = &v
		} else {
			u.instanceResults[u.instanceMachine(w.Resource.Instance).Key()] = v
		}
	}
	u.upgradeInstances(ctx, steps.Upgrade)
	for _, next := range steps.Write {
		m := u.instanceMachine(next.ID)
		switch {
		case !u.canUpdate(m):
		case u.stopErr != nil:
			u.recordFailure(ctx, m, u.stopErr)
		case !u.blockedUntil.IsZero():
			u.openKeys[m.Key()] = true
		case time.Since(u.start) > roundTimeout:
			u.openKeys[m.Key()], u.retryNow = true, true
		default:
			u.writeInstance(ctx, m, next)
		}
	}
}

// canUpdate skips failed instances until they are requested again.
func (u *instanceUpdate) canUpdate(m nic.Machine) bool {
	if u.failed[m.Key()] {
		u.openKeys[m.Key()] = true
		return false
	}
	if u.worker.scaleSetState.written[instanceResource(m).Key()] {
		u.instanceResults[m.Key()] = machineResult{state: stateFailed, err: newNotAppliedError(m.String())}
		return false
	}
	return true
}

func (u *instanceUpdate) upgradeInstances(ctx context.Context, ids []string) {
	var allowed []string
	for _, id := range ids {
		if m := u.instanceMachine(id); u.canUpdate(m) {
			allowed, u.openKeys[m.Key()] = append(allowed, id), true
		}
	}
	if len(allowed) == 0 || !u.canWrite() {
		return
	}
	err := u.u.cfg.Azure.UpgradeInstances(ctx, u.set.ID, allowed)
	u.recordWrite(nic.KindModel, err)
	for _, id := range allowed {
		if m := u.instanceMachine(id); err != nil {
			u.recordFailure(ctx, m, err)
		} else {
			u.worker.scaleSetState.markWritten(instanceResource(m))
		}
	}
	u.retryNow = u.retryNow || err == nil
}

// writeInstance retries once after a conflict.
func (u *instanceUpdate) writeInstance(ctx context.Context, m nic.Machine, next lb.Instance) {
	for n := 1; ; n++ {
		if next.Etag == "" || n == 2 { // a list may omit the etag
			read, err := u.u.cfg.Azure.GetInstance(ctx, u.set.ID, next.ID)
			if err != nil {
				u.recordFailure(ctx, m, err)
				return
			}
			steps := nic.PlanScaleSet(u.set, []lb.Instance{read}, u.plan.desired, u.plan.managed, u.known)
			if len(steps.Write) == 0 {
				u.instanceResults[m.Key()] = machineResult{state: stateWaiting, reason: m.String() + " differs between the list and its own read"}
				return
			}
			next = steps.Write[0]
		}
		if !u.canWrite() {
			u.openKeys[m.Key()] = true
			return
		}
		u.worker.scaleSetState.markWritten(instanceResource(m))
		_, err := u.u.cfg.Azure.PutInstance(ctx, next)
		u.recordWrite(nic.KindInstance, err)
		switch {
		case err == nil:
			u.worker.scaleSetState.recordWrite(next.ID)
			u.openKeys[m.Key()], u.retryNow = true, true
			return
		case n == 2 || !isWriteConflict(err):
			u.worker.scaleSetState.resetWritten(instanceResource(m), err)
			u.recordFailure(ctx, m, err)
			return
		}
	}
}

// recordFailure ends the round if the next request would fail the same way.
func (u *instanceUpdate) recordFailure(ctx context.Context, m nic.Machine, err error) {
	key := m.Key()
	v := u.resultForError(m, err)
	if v == resultWorking {
		u.openKeys[key] = true
		return
	}
	delete(u.openKeys, key)
	u.instanceResults[key] = v
	if _, tracked := u.machines[key]; !tracked && v.state == stateFailed && ctx.Err() == nil {
		u.u.cfg.Log.WarnContext(ctx, "an instance that is no node could not be written", "machine", m.String(), "err", err)
	}
	if f := armerror.FromError(err); f.Class == armerror.Retriable && !f.IsPreconditionFailed() || f.HasExhaustedRetries() || f.Class == armerror.Shutdown {
		u.stopErr = err
	}
}

// setResults treats an instance without a step as in sync.
func (u *instanceUpdate) setResults(instances []lb.Instance) {
	present := map[string]bool{}
	for _, i := range instances {
		present[u.instanceMachine(i.ID).Key()] = true
	}
	u.inSync = u.scaleSetResult == nil
	for key, m := range u.machines {
		v, found := u.instanceResults[key]
		switch {
		case u.openKeys[key]:
		case found:
			u.results[key] = v
		case !present[key]:
			u.results[key] = u.resultForMissing(m)
		case u.scaleSetResult != nil:
			u.results[key] = *u.scaleSetResult
		default:
			u.results[key] = resultDone
		}
	}
}

func instanceResource(m nic.Machine) nic.Resource {
	return nic.Resource{ID: m.ScaleSet, Instance: m.Instance}
}
