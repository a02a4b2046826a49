// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

const (
	// roundLasts is when a round starts no more writes, to release the lease and the slot. An
	// instance takes Azure about 30 s.
	roundLasts = time.Minute
	// overdue is how long to wait for Azure to upgrade an instance. An upgrade takes minutes per
	// batch; one stopped or waiting for a maintenance window may never come.
	overdue = 10 * time.Minute
)

// scaleSet writes the model, or else as many instances as time allows. The next round verifies
// them.
func (t *try) scaleSet(ctx context.Context) {
	set, err := t.u.cfg.Azure.GetScaleSet(ctx, t.id)
	if err != nil {
		t.ended(err)
		return
	}
	instances, err := t.u.cfg.Azure.ListInstances(ctx, t.id)
	if err != nil {
		t.ended(err)
		return
	}
	t.plan = t.u.newest()
	known := t.lane.memory.knows(set, time.Now())
	steps := nic.ScaleSet(set, instances, t.plan.desired, t.plan.ours, known)
	t.lane.memory.waits(steps, time.Now())
	if steps.Model != nil {
		t.model(ctx, *steps.Model, instances)
		return
	}
	r := round{try: t, set: set, known: known, found: map[string]verdict{}, open: map[string]bool{}}
	r.instances(ctx, steps)
	r.concludes(instances)
}

// knows drops the record of instances in sync if another writer changed the scale set: an upgrade
// could apply more than Weir's changes.
func (y *memory) knows(set lb.ScaleSet, now time.Time) nic.Known {
	if set.Etag != y.etag {
		y.level = nil
	}
	known := nic.Known{Level: y.level, Overdue: map[string]bool{}, Alone: y.alone}
	for id, at := range y.since {
		known.Overdue[id] = now.Sub(at) >= overdue
	}
	return known
}

// waits ignores waits of instances behind the model but in sync.
func (y *memory) waits(steps nic.Steps, now time.Time) {
	since := map[string]time.Time{}
	for _, id := range steps.Upgrading {
		since[id] = now
		if at, already := y.since[id]; already {
			since[id] = at
		}
	}
	for _, next := range steps.Write { // a failed write is retried without waiting again
		if at, already := y.since[next.ID]; already {
			since[next.ID] = at
		}
	}
	y.since = since
}

func (y *memory) writes(id string) {
	if y.alone == nil {
		y.alone = map[string]bool{}
	}
	y.alone[id] = true
}

// tries returns false if the resource was already written since the last change.
func (y *memory) tries(r nic.Resource) bool {
	if y.tried[r.Key()] {
		return false
	}
	if y.tried == nil {
		y.tried = map[string]bool{}
	}
	y.tried[r.Key()] = true
	return true
}

// unsent reverts [memory.tries] if the request was never sent.
func (y *memory) unsent(r nic.Resource, err error) {
	if fault.From(err).Unsent() {
		delete(y.tried, r.Key())
	}
}

// model remembers which instances matched the model before: for them, this write is the only
// change.
func (t *try) model(ctx context.Context, next lb.ScaleSet, instances []lb.Instance) {
	y, model := &t.lane.memory, nic.Resource{ID: next.ID}
	if !t.mayWrite() {
		return
	}
	if !y.tries(model) {
		t.ended(notShown(model.String()))
		return
	}
	shown, err := t.u.cfg.Azure.PatchModel(ctx, next)
	t.wrote(nic.KindModel, err)
	switch {
	case err == nil:
		y.level, y.etag = map[string]bool{}, shown.Etag
		for _, i := range instances {
			y.level[i.ID] = i.LatestModel
		}
		y.since, y.alone = nil, nil
		t.again = true
	case met(err) && !y.overtaken:
		y.level, y.overtaken, y.tried = nil, true, nil
		t.again = true // with another read
	default:
		y.level = nil
		y.unsent(model, err)
		t.ended(err)
	}
}
