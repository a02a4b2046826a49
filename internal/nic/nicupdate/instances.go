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

func (r *instanceUpdate) instanceMachine(id string) nic.Machine {
	return nic.Machine{ScaleSet: r.set.ID, Instance: id}
}

// runSteps writes one instance at a time: Azure accepts one write per scale set.
func (r *instanceUpdate) runSteps(ctx context.Context, steps nic.ScaleSetPlan) {
	for _, w := range steps.Waiting {
		v := machineResult{state: stateWaiting, reason: w.Reason}
		if w.Resource.Kind() == nic.KindModel {
			r.scaleSetResult = &v
		} else {
			r.instanceResults[r.instanceMachine(w.Resource.Instance).Key()] = v
		}
	}
	r.upgradeInstances(ctx, steps.Upgrade)
	for _, next := range steps.Write {
		m := r.instanceMachine(next.ID)
		switch {
		case !r.canUpdate(m):
		case r.stopErr != nil:
			r.recordFailure(ctx, m, r.stopErr)
		case !r.blockedUntil.IsZero():
			r.openKeys[m.Key()] = true
		case time.Since(r.start) > roundTimeout:
			r.openKeys[m.Key()], r.retryNow = true, true
		default:
			r.writeInstance(ctx, m, next)
		}
	}
}

// canUpdate skips failed instances until they are requested again.
func (r *instanceUpdate) canUpdate(m nic.Machine) bool {
	if r.failed[m.Key()] {
		r.openKeys[m.Key()] = true
		return false
	}
	if r.worker.scaleSetState.written[instanceResource(m).Key()] {
		r.instanceResults[m.Key()] = machineResult{state: stateFailed, err: newNotAppliedError(m.String())}
		return false
	}
	return true
}

func (r *instanceUpdate) upgradeInstances(ctx context.Context, ids []string) {
	var allowed []string
	for _, id := range ids {
		if m := r.instanceMachine(id); r.canUpdate(m) {
			allowed, r.openKeys[m.Key()] = append(allowed, id), true
		}
	}
	if len(allowed) == 0 || !r.canWrite() {
		return
	}
	err := r.u.cfg.Azure.UpgradeInstances(ctx, r.set.ID, allowed)
	r.recordWrite(nic.KindModel, err)
	for _, id := range allowed {
		if m := r.instanceMachine(id); err != nil {
			r.recordFailure(ctx, m, err)
		} else {
			r.worker.scaleSetState.markWritten(instanceResource(m))
		}
	}
	r.retryNow = r.retryNow || err == nil
}

// writeInstance retries once after a conflict.
func (r *instanceUpdate) writeInstance(ctx context.Context, m nic.Machine, next lb.Instance) {
	for n := 1; ; n++ {
		if next.Etag == "" || n == 2 { // a list may omit the etag
			read, err := r.u.cfg.Azure.GetInstance(ctx, r.set.ID, next.ID)
			if err != nil {
				r.recordFailure(ctx, m, err)
				return
			}
			steps := nic.PlanScaleSet(r.set, []lb.Instance{read}, r.plan.desired, r.plan.managed, r.known)
			if len(steps.Write) == 0 {
				r.instanceResults[m.Key()] = machineResult{state: stateWaiting, reason: m.String() + " differs between the list and its own read"}
				return
			}
			next = steps.Write[0]
		}
		if !r.canWrite() {
			r.openKeys[m.Key()] = true
			return
		}
		r.worker.scaleSetState.markWritten(instanceResource(m))
		_, err := r.u.cfg.Azure.PutInstance(ctx, next)
		r.recordWrite(nic.KindInstance, err)
		switch {
		case err == nil:
			r.worker.scaleSetState.recordWrite(next.ID)
			r.openKeys[m.Key()], r.retryNow = true, true
			return
		case n == 2 || !isWriteConflict(err):
			r.worker.scaleSetState.resetWritten(instanceResource(m), err)
			r.recordFailure(ctx, m, err)
			return
		}
	}
}

// recordFailure ends the round if the next request would fail the same way.
func (r *instanceUpdate) recordFailure(ctx context.Context, m nic.Machine, err error) {
	key := m.Key()
	v := r.resultForError(m, err)
	if v == resultWorking {
		r.openKeys[key] = true
		return
	}
	delete(r.openKeys, key)
	r.instanceResults[key] = v
	if _, tracked := r.machines[key]; !tracked && v.state == stateFailed && ctx.Err() == nil {
		r.u.cfg.Log.WarnContext(ctx, "an instance that is no node could not be written", "machine", m.String(), "err", err)
	}
	if f := armerror.FromError(err); f.Class == armerror.Retriable && !f.IsPreconditionFailed() || f.HasExhaustedRetries() || f.Class == armerror.Shutdown {
		r.stopErr = err
	}
}

// setResults treats an instance without a step as in sync.
func (r *instanceUpdate) setResults(instances []lb.Instance) {
	present := map[string]bool{}
	for _, i := range instances {
		present[r.instanceMachine(i.ID).Key()] = true
	}
	r.inSync = r.scaleSetResult == nil
	for key, m := range r.machines {
		v, found := r.instanceResults[key]
		switch {
		case r.openKeys[key]:
		case found:
			r.results[key] = v
		case !present[key]:
			r.results[key] = r.resultForMissing(m)
		case r.scaleSetResult != nil:
			r.results[key] = *r.scaleSetResult
		default:
			r.results[key] = resultDone
		}
	}
}

func instanceResource(m nic.Machine) nic.Resource {
	return nic.Resource{ID: m.ScaleSet, Instance: m.Instance}
}
