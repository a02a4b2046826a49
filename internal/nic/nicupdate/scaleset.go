// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

const (
	// roundTimeout is when a round starts no more writes, to release the lease and the slot. An
	// instance takes Azure about 30 s.
	roundTimeout = time.Minute
	// upgradeTimeout is how long to wait for Azure to upgrade an instance. An upgrade takes minutes per
	// batch; one stopped or waiting for a maintenance window may never come.
	upgradeTimeout = 10 * time.Minute
)

// updateScaleSet writes the model, or else as many instances as time allows. The next round verifies
// them.
func (t *attempt) updateScaleSet(ctx context.Context) {
	set, err := t.u.cfg.Azure.GetScaleSet(ctx, t.id)
	if err != nil {
		t.failPending(err)
		return
	}
	instances, err := t.u.cfg.Azure.ListInstances(ctx, t.id)
	if err != nil {
		t.failPending(err)
		return
	}
	t.plan = t.u.currentPlan()
	known := t.worker.scaleSetState.known(set, time.Now())
	steps := nic.PlanScaleSet(set, instances, t.plan.desired, t.plan.managed, known)
	t.worker.scaleSetState.recordWaits(steps, time.Now())
	if steps.Model != nil {
		t.writeModel(ctx, *steps.Model, instances)
		return
	}
	r := instanceUpdate{attempt: t, set: set, known: known, instanceResults: map[string]machineResult{}, openKeys: map[string]bool{}}
	r.runSteps(ctx, steps)
	r.setResults(instances)
}

// known drops the record of instances in sync if another writer changed the scale set: an upgrade
// could apply more than Weir's changes.
func (y *scaleSetState) known(set lb.ScaleSet, now time.Time) nic.ScaleSetState {
	if set.Etag != y.etag {
		y.inSync = nil
	}
	known := nic.ScaleSetState{UpToDate: y.inSync, UpgradeTimedOut: map[string]bool{}, WrittenAlone: y.singleWrites}
	for id, at := range y.waitingSince {
		known.UpgradeTimedOut[id] = now.Sub(at) >= upgradeTimeout
	}
	return known
}

// recordWaits ignores waits of instances behind the model but in sync.
func (y *scaleSetState) recordWaits(steps nic.ScaleSetPlan, now time.Time) {
	since := map[string]time.Time{}
	for _, id := range steps.AutomaticUpgrades {
		since[id] = now
		if at, already := y.waitingSince[id]; already {
			since[id] = at
		}
	}
	for _, next := range steps.Write { // a failed write is retried without waiting again
		if at, already := y.waitingSince[next.ID]; already {
			since[next.ID] = at
		}
	}
	y.waitingSince = since
}

func (y *scaleSetState) recordWrite(id string) {
	if y.singleWrites == nil {
		y.singleWrites = map[string]bool{}
	}
	y.singleWrites[id] = true
}

// markWritten returns false if the resource was already written since the last change.
func (y *scaleSetState) markWritten(r nic.Resource) bool {
	if y.written[r.Key()] {
		return false
	}
	if y.written == nil {
		y.written = map[string]bool{}
	}
	y.written[r.Key()] = true
	return true
}

// resetWritten reverts [scaleSetState.markWritten] if the request was never sent.
func (y *scaleSetState) resetWritten(r nic.Resource, err error) {
	if armerror.FromError(err).IsNotSent() {
		delete(y.written, r.Key())
	}
}

// writeModel remembers which instances matched the model before: for them, this write is the only
// change.
func (t *attempt) writeModel(ctx context.Context, next lb.ScaleSet, instances []lb.Instance) {
	y, model := &t.worker.scaleSetState, nic.Resource{ID: next.ID}
	if !t.canWrite() {
		return
	}
	if !y.markWritten(model) {
		t.failPending(newNotAppliedError(model.String()))
		return
	}
	shown, err := t.u.cfg.Azure.PatchModel(ctx, next)
	t.recordWrite(nic.KindModel, err)
	switch {
	case err == nil:
		y.inSync, y.etag = map[string]bool{}, shown.Etag
		for _, i := range instances {
			y.inSync[i.ID] = i.LatestModel
		}
		y.waitingSince, y.singleWrites = nil, nil
		t.retryNow = true
	case isWriteConflict(err) && !y.hadConflict:
		y.inSync, y.hadConflict, y.written = nil, true, nil
		t.retryNow = true // with another read
	default:
		y.inSync = nil
		y.resetWritten(model, err)
		t.failPending(err)
	}
}
