// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// round updates the instances after the scale set model is in sync.
type round struct {
	*try
	set   lb.ScaleSet
	known nic.Known
	// openKeys are machines without a result yet.
	found map[string]verdict
	open  map[string]bool
	// whole is the result of all machines while the scale set waits.
	whole *verdict
	// stop ended the round for the remaining instances.
	stop error
}

func (r *round) machine(id string) nic.Machine {
	return nic.Machine{ScaleSet: r.set.ID, Instance: id}
}

// instances writes one instance at a time: Azure accepts one write per scale set.
func (r *round) instances(ctx context.Context, steps nic.Steps) {
	for _, w := range steps.Waits {
		v := verdict{state: waiting, why: w.Why}
		if w.Resource.Kind() == nic.KindModel {
			r.whole = &v
		} else {
			r.found[r.machine(w.Resource.Instance).Key()] = v
		}
	}
	r.upgrade(ctx, steps.Upgrade)
	for _, next := range steps.Write {
		m := r.machine(next.ID)
		switch {
		case !r.may(m):
		case r.stop != nil:
			r.fails(ctx, m, r.stop)
		case !r.until.IsZero():
			r.open[m.Key()] = true
		case time.Since(r.start) > roundLasts:
			r.open[m.Key()], r.again = true, true
		default:
			r.write(ctx, m, next)
		}
	}
}

// may skips failed instances until they are requested again.
func (r *round) may(m nic.Machine) bool {
	if r.failed[m.Key()] {
		r.open[m.Key()] = true
		return false
	}
	if r.lane.memory.tried[resource(m).Key()] {
		r.found[m.Key()] = verdict{state: failing, err: notShown(m.String())}
		return false
	}
	return true
}

func (r *round) upgrade(ctx context.Context, ids []string) {
	var allowed []string
	for _, id := range ids {
		if m := r.machine(id); r.may(m) {
			allowed, r.open[m.Key()] = append(allowed, id), true
		}
	}
	if len(allowed) == 0 || !r.mayWrite() {
		return
	}
	err := r.u.cfg.Azure.Upgrade(ctx, r.set.ID, allowed)
	r.wrote(nic.KindModel, err)
	for _, id := range allowed {
		if m := r.machine(id); err != nil {
			r.fails(ctx, m, err)
		} else {
			r.lane.memory.tries(resource(m))
		}
	}
	r.again = r.again || err == nil
}

// write retries once after a conflict.
func (r *round) write(ctx context.Context, m nic.Machine, next lb.Instance) {
	for n := 1; ; n++ {
		if next.Etag == "" || n == 2 { // a list may omit the etag
			read, err := r.u.cfg.Azure.GetInstance(ctx, r.set.ID, next.ID)
			if err != nil {
				r.fails(ctx, m, err)
				return
			}
			steps := nic.ScaleSet(r.set, []lb.Instance{read}, r.plan.desired, r.plan.ours, r.known)
			if len(steps.Write) == 0 {
				r.found[m.Key()] = verdict{state: waiting, why: m.String() + " is listed otherwise than it shows by itself"}
				return
			}
			next = steps.Write[0]
		}
		if !r.mayWrite() {
			r.open[m.Key()] = true
			return
		}
		r.lane.memory.tries(resource(m))
		_, err := r.u.cfg.Azure.PutInstance(ctx, next)
		r.wrote(nic.KindInstance, err)
		switch {
		case err == nil:
			r.lane.memory.writes(next.ID)
			r.open[m.Key()], r.again = true, true
			return
		case n == 2 || !met(err):
			r.lane.memory.unsent(resource(m), err)
			r.fails(ctx, m, err)
			return
		}
	}
}

// fails ends the round if the next request would fail the same way.
func (r *round) fails(ctx context.Context, m nic.Machine, err error) {
	key := m.Key()
	v := r.endedFor(m, err)
	if v == verdictWorking {
		r.open[key] = true
		return
	}
	delete(r.open, key)
	r.found[key] = v
	if _, tracked := r.machines[key]; !tracked && v.state == failing && ctx.Err() == nil {
		r.u.cfg.Log.WarnContext(ctx, "an instance that is no node could not be written", "machine", m.String(), "err", err)
	}
	if f := fault.From(err); f.Class == fault.Retriable && !f.Overtaken() || f.Exhausted() || f.Class == fault.Shutdown {
		r.stop = err
	}
}

// concludes treats an instance without a step as in sync.
func (r *round) concludes(instances []lb.Instance) {
	there := map[string]bool{}
	for _, i := range instances {
		there[r.machine(i.ID).Key()] = true
	}
	r.level = r.whole == nil
	for key, m := range r.machines {
		v, found := r.found[key]
		switch {
		case r.open[key]:
		case found:
			r.of[key] = v
		case !there[key]:
			r.of[key] = r.gone(m)
		case r.whole != nil:
			r.of[key] = *r.whole
		default:
			r.of[key] = verdictDone
		}
	}
}

func resource(m nic.Machine) nic.Resource { return nic.Resource{ID: m.ScaleSet, Instance: m.Instance} }
