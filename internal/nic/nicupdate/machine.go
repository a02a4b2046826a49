// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// updateInterface uses a list that may be stale. Writes are guarded by the etag; "nothing to write" is
// rejected if the machine was requested after the list was read, see [Updater.storeResult].
func (t *attempt) updateInterface(ctx context.Context, m nic.Machine) {
	shown, err := t.readInterfaces(ctx, m)
	if err == nil && !nic.HasPrimaryInterface(m, shown) {
		shown, err = t.readPrimary(ctx, m, shown)
	}
	key := m.Key()
	for n := 1; err == nil; n++ {
		t.plan = t.u.currentPlan()
		step := nic.NextStep(m, shown, t.plan.desired.MachinePools(m), t.plan.managed)
		switch {
		case step.Write == nil:
			t.results[key] = resultOfStep(step)
			return
		case step.Write.Etag == "" && n == 1: // a list may omit it
			shown, err = t.readInterface(ctx, step.Write.ID)
			continue
		case !t.canWrite():
			return
		}
		var next lb.NetworkInterface
		next, err = t.u.cfg.Azure.PutInterface(ctx, *step.Write)
		t.recordWrite(nic.KindInterface, err)
		switch {
		case err == nil:
			t.readAt = time.Now()
			t.results[key] = t.resultOfWrite(m, next)
			return
		case isWriteConflict(err) && n == 1:
			shown, err = t.readInterface(ctx, step.Write.ID)
		}
	}
	if v := t.resultForError(m, err); v != resultWorking {
		t.results[key] = v
	}
}

func (t *attempt) resultOfWrite(m nic.Machine, next lb.NetworkInterface) machineResult {
	step := nic.NextStep(m, []lb.NetworkInterface{next}, t.plan.desired.MachinePools(m), t.plan.managed)
	if step.Write != nil {
		return machineResult{state: stateFailed, err: newNotAppliedError(nic.Resource{ID: next.ID}.String())}
	}
	return resultOfStep(step)
}

func resultOfStep(step nic.Step) machineResult {
	if step.Reason != "" {
		return machineResult{state: stateWaiting, reason: step.Reason, unusable: step.Unavailable}
	}
	return resultDone
}

// readInterfaces uses as few requests as possible.
func (t *attempt) readInterfaces(ctx context.Context, m nic.Machine) ([]lb.NetworkInterface, error) {
	switch t.mode {
	case readGroup:
		return t.listInterfaces(ctx, m)
	case readSingle:
		shown, err := t.readInterface(ctx, t.id)
		if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale || err == nil && shown[0].Machine != m.Key() {
			return t.listInterfaces(ctx, m) // it has another interface, or none
		}
		return shown, err
	}
	t.u.mu.Lock()
	defer t.u.mu.Unlock()
	shown, at := t.worker.interfaces, t.worker.interfacesReadAt
	t.worker.interfaces, t.worker.hasList = nil, false
	t.readAt = at
	return shown, nil
}

// readPrimary reads the interface named by the virtual machine, which may be in another resource group.
func (t *attempt) readPrimary(ctx context.Context, m nic.Machine, shown []lb.NetworkInterface) ([]lb.NetworkInterface, error) {
	id, err := t.u.cfg.Azure.PrimaryInterface(ctx, m.VM)
	if err != nil || id.Name == "" {
		return shown, err
	}
	at := t.readAt
	primary, err := t.readInterface(ctx, id)
	switch f := armerror.FromError(err); {
	case f != nil && f.Class == armerror.Stale: // being created or deleted
		t.readAt = at
		return shown, nil
	case err == nil:
		t.u.mu.Lock()
		t.worker.hasInterface, t.worker.id = true, id
		t.u.mu.Unlock()
	}
	return primary, err
}

func (t *attempt) readInterface(ctx context.Context, id lb.ResourceID) ([]lb.NetworkInterface, error) {
	t.readAt = time.Now()
	nic, err := t.u.cfg.Azure.GetInterface(ctx, id)
	return []lb.NetworkInterface{nic}, err
}

// listInterfaces reads a resource group for all its machines that are due.
func (t *attempt) listInterfaces(ctx context.Context, m nic.Machine) ([]lb.NetworkInterface, error) {
	at := time.Now()
	t.readAt = at
	all, err := t.u.cfg.Azure.ListInterfaces(ctx, t.id.SubscriptionID, t.id.ResourceGroup)
	if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
		all, err = nil, nil // the resource group does not exist
	}
	of := map[string][]lb.NetworkInterface{}
	for _, nic := range all {
		of[nic.Machine] = append(of[nic.Machine], nic)
	}
	u := t.u
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.listingGroups, t.worker.resourceGroup)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, l := range u.activeWorkers {
		switch {
		case l.resourceGroup != t.worker.resourceGroup || l.running || l.due.IsZero() || l.dueTime().After(time.Now()):
		case err != nil && l.hasList:
		case err != nil:
			other := u.newAttemptLocked(l, readFromList)
			other.failPending(err)
			u.storeResult(l, other.result, time.Now())
		default:
			for key := range l.machines {
				l.setInterfaces(of[key], at, true)
			}
		}
	}
	t.worker.setInterfaces(of[m.Key()], at, false)
	u.signal()
	return of[m.Key()], err
}

// setInterfaces stores the interfaces; later is true if another attempt will use them. It requires u.mu.
func (l *worker) setInterfaces(shown []lb.NetworkInterface, at time.Time, later bool) {
	l.hasInterface = false
	for _, i := range shown {
		if i.Primary || len(shown) == 1 {
			l.hasInterface, l.id = true, i.ID
		}
	}
	l.hasList = later
	l.interfaces, l.interfacesReadAt = nil, at
	if later {
		l.interfaces = shown
	}
}
