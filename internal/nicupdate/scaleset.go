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
	// roundLasts is when a round begins no more writes, so that the lease, and the place, go to others
	// in between. Each instance takes Azure half a minute.
	roundLasts = time.Minute
	// overdue is how long Azure is waited for that upgrades instances by itself. An upgrade that goes
	// on takes minutes for each batch; one that is stopped, or paused for somebody's window, may never
	// come, and its nodes would serve nobody.
	overdue = 10 * time.Minute
)

// scaleSet does one round of a uniform scale set: its model, or else all of its instances that time
// allows. What was written is looked at by the next.
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

// knows returns what is remembered of a scale set. Once somebody else has changed it, an upgrade may
// bring more than what Weir has written.
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

// waits notes since when Azure is waited for. An instance that was behind the model before, and was where
// it belongs, was waited for by nobody.
func (y *memory) waits(steps nic.Steps, now time.Time) {
	since := map[string]time.Time{}
	for _, id := range steps.Upgrading {
		since[id] = now
		if at, already := y.since[id]; already {
			since[id] = at
		}
	}
	for _, next := range steps.Write { // if that fails it is written again, and not waited for once more
		if at, already := y.since[next.ID]; already {
			since[next.ID] = at
		}
	}
	y.since = since
}

// writes notes that an instance was written by itself.
func (y *memory) writes(id string) {
	if y.alone == nil {
		y.alone = map[string]bool{}
	}
	y.alone[id] = true
}

// tries notes that a resource is about to be written; false if it was already since there was something new.
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

// unsent takes it back, if the request never left.
func (y *memory) unsent(r nic.Resource, err error) {
	if fault.From(err).Unsent() {
		delete(y.tried, r.Key())
	}
}

// model writes the model. Which instances were as it says before is remembered: nothing else is new
// to them.
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
