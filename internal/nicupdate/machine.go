// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// machine uses a list that may be stale. Writes are guarded by the etag; "nothing to write" is
// rejected if the machine was requested after the list was read, see [Updater.settle].
func (t *try) machine(ctx context.Context, m nic.Machine) {
	shown, err := t.read(ctx, m)
	if err == nil && !nic.Found(m, shown) {
		shown, err = t.asked(ctx, m, shown)
	}
	key := m.Key()
	for n := 1; err == nil; n++ {
		t.plan = t.u.newest()
		step := nic.Interface(m, shown, t.plan.desired.Machine(m), t.plan.ours)
		switch {
		case step.Write == nil:
			t.of[key] = judge(step)
			return
		case step.Write.Etag == "" && n == 1: // a list may omit it
			shown, err = t.readAlone(ctx, step.Write.ID)
			continue
		case !t.mayWrite():
			return
		}
		var next lb.NetworkInterface
		next, err = t.u.cfg.Azure.PutInterface(ctx, *step.Write)
		t.wrote(nic.KindInterface, err)
		switch {
		case err == nil:
			t.readAt = time.Now()
			t.of[key] = t.shows(m, next)
			return
		case met(err) && n == 1:
			shown, err = t.readAlone(ctx, step.Write.ID)
		}
	}
	if v := t.endedFor(m, err); v != verdictWorking {
		t.of[key] = v
	}
}

func (t *try) shows(m nic.Machine, next lb.NetworkInterface) verdict {
	step := nic.Interface(m, []lb.NetworkInterface{next}, t.plan.desired.Machine(m), t.plan.ours)
	if step.Write != nil {
		return verdict{state: failing, err: notShown(nic.Resource{ID: next.ID}.String())}
	}
	return judge(step)
}

func judge(step nic.Step) verdict {
	if step.Waits != "" {
		return verdict{state: waiting, why: step.Waits, unusable: step.Unusable}
	}
	return verdictDone
}

// read uses as few requests as possible.
func (t *try) read(ctx context.Context, m nic.Machine) ([]lb.NetworkInterface, error) {
	switch t.how {
	case together:
		return t.list(ctx, m)
	case alone:
		shown, err := t.readAlone(ctx, t.id)
		if f := fault.From(err); f != nil && f.Class == fault.Stale || err == nil && shown[0].Machine != m.Key() {
			return t.list(ctx, m) // it has another interface, or none
		}
		return shown, err
	}
	t.u.mu.Lock()
	defer t.u.mu.Unlock()
	shown, at := t.lane.shown, t.lane.shownAt
	t.lane.shown, t.lane.listed = nil, false
	t.readAt = at
	return shown, nil
}

// asked reads the interface named by the virtual machine, which may be in another resource group.
func (t *try) asked(ctx context.Context, m nic.Machine, shown []lb.NetworkInterface) ([]lb.NetworkInterface, error) {
	id, err := t.u.cfg.Azure.PrimaryInterface(ctx, m.VM)
	if err != nil || id.Name == "" {
		return shown, err
	}
	at := t.readAt
	primary, err := t.readAlone(ctx, id)
	switch f := fault.From(err); {
	case f != nil && f.Class == fault.Stale: // being created or deleted
		t.readAt = at
		return shown, nil
	case err == nil:
		t.u.mu.Lock()
		t.lane.found, t.lane.id = true, id
		t.u.mu.Unlock()
	}
	return primary, err
}

func (t *try) readAlone(ctx context.Context, id lb.ResourceID) ([]lb.NetworkInterface, error) {
	t.readAt = time.Now()
	one, err := t.u.cfg.Azure.GetInterface(ctx, id)
	return []lb.NetworkInterface{one}, err
}

// list reads a resource group for all its machines that are due.
func (t *try) list(ctx context.Context, m nic.Machine) ([]lb.NetworkInterface, error) {
	at := time.Now()
	t.readAt = at
	all, err := t.u.cfg.Azure.ListInterfaces(ctx, t.id.SubscriptionID, t.id.ResourceGroup)
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		all, err = nil, nil // the resource group does not exist
	}
	of := map[string][]lb.NetworkInterface{}
	for _, one := range all {
		of[one.Machine] = append(of[one.Machine], one)
	}
	u := t.u
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.listing, t.lane.group)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, l := range u.busy {
		switch {
		case l.group != t.lane.group || l.running || l.due.IsZero() || l.at().After(time.Now()):
		case err != nil && l.listed:
		case err != nil:
			other := u.begun(l, listed)
			other.ended(err)
			u.settle(l, other.result, time.Now())
		default:
			for key := range l.machines {
				l.keeps(of[key], at, true)
			}
		}
	}
	t.lane.keeps(of[m.Key()], at, false)
	u.signal()
	return of[m.Key()], err
}

// keeps stores the interfaces; later is true if another attempt will use them. It requires u.mu.
func (l *lane) keeps(shown []lb.NetworkInterface, at time.Time, later bool) {
	l.found = false
	for _, i := range shown {
		if i.Primary || len(shown) == 1 {
			l.found, l.id = true, i.ID
		}
	}
	l.listed = later
	l.shown, l.shownAt = nil, at
	if later {
		l.shown = shown
	}
}
