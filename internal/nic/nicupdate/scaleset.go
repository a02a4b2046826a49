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
func (a *attempt) updateScaleSet(ctx context.Context) {
	set, err := a.u.cfg.Azure.GetScaleSet(ctx, a.id)
	if err != nil {
		a.failPending(err)
		return
	}
	instances, err := a.u.cfg.Azure.ListInstances(ctx, a.id)
	if err != nil {
		a.failPending(err)
		return
	}
	a.plan = a.u.currentPlan()
	known := a.worker.scaleSetState.known(set, time.Now())
	steps := nic.PlanScaleSet(set, instances, a.plan.desired, a.plan.managed, known)
	a.worker.scaleSetState.recordWaits(steps, time.Now())
	if steps.Model != nil {
		a.writeModel(ctx, *steps.Model, instances)
		return
	}
	r := instanceUpdate{attempt: a, set: set, known: known, instanceResults: map[string]machineResult{}, openKeys: map[string]bool{}}
	r.runSteps(ctx, steps)
	r.setResults(instances)
}

// known drops the record of instances in sync if another writer changed the scale set: an upgrade
// could apply more than Weir's changes.
func (s *scaleSetState) known(set lb.ScaleSet, now time.Time) nic.ScaleSetState {
	if set.Etag != s.etag {
		s.inSync = nil
	}
	known := nic.ScaleSetState{UpToDate: s.inSync, UpgradeTimedOut: map[string]bool{}, WrittenAlone: s.singleWrites}
	for id, at := range s.waitingSince {
		known.UpgradeTimedOut[id] = now.Sub(at) >= upgradeTimeout
	}
	return known
}

// recordWaits ignores waits of instances behind the model but in sync.
func (s *scaleSetState) recordWaits(steps nic.ScaleSetPlan, now time.Time) {
	since := map[string]time.Time{}
	for _, id := range steps.AutomaticUpgrades {
		since[id] = now
		if at, already := s.waitingSince[id]; already {
			since[id] = at
		}
	}
	for _, next := range steps.Write { // a failed write is retried without waiting again
		if at, already := s.waitingSince[next.ID]; already {
			since[next.ID] = at
		}
	}
	s.waitingSince = since
}

func (s *scaleSetState) recordWrite(id string) {
	if s.singleWrites == nil {
		s.singleWrites = map[string]bool{}
	}
	s.singleWrites[id] = true
}

// markWritten returns false if the resource was already written since the last change.
func (s *scaleSetState) markWritten(r nic.Resource) bool {
	if s.written[r.Key()] {
		return false
	}
	if s.written == nil {
		s.written = map[string]bool{}
	}
	s.written[r.Key()] = true
	return true
}

// resetWritten reverts [scaleSetState.markWritten] if the request was never sent.
func (s *scaleSetState) resetWritten(r nic.Resource, err error) {
	if armerror.FromError(err).IsNotSent() {
		delete(s.written, r.Key())
	}
}

// writeModel remembers which instances matched the model before: for them, this write is the only
// change.
func (a *attempt) writeModel(ctx context.Context, next lb.ScaleSet, instances []lb.Instance) {
	y, model := &a.worker.scaleSetState, nic.Resource{ID: next.ID}
	if !a.canWrite() {
		return
	}
	if !y.markWritten(model) {
		a.failPending(newNotAppliedError(model.String()))
		return
	}
	shown, err := a.u.cfg.Azure.PatchModel(ctx, next)
	a.recordWrite(nic.KindModel, err)
	switch {
	case err == nil:
		y.inSync, y.etag = map[string]bool{}, shown.Etag
		for _, i := range instances {
			y.inSync[i.ID] = i.LatestModel
		}
		y.waitingSince, y.singleWrites = nil, nil
		a.retryNow = true
	case isWriteConflict(err) && !y.hadConflict:
		y.inSync, y.hadConflict, y.written = nil, true, nil
		a.retryNow = true // with another read
	default:
		y.inSync = nil
		y.resetWritten(model, err)
		a.failPending(err)
	}
}
