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
func (a *attempt) updateInterface(ctx context.Context, m nic.Machine) {
	shown, err := a.readInterfaces(ctx, m)
	if err == nil && !nic.HasPrimaryInterface(m, shown) {
		shown, err = a.readPrimary(ctx, m, shown)
	}
	key := m.Key()
	for n := 1; err == nil; n++ {
		a.plan = a.u.currentPlan()
		step := nic.NextStep(m, shown, a.plan.desired.MachinePools(m), a.plan.managed)
		switch {
		case step.Write == nil:
			a.results[key] = resultOfStep(step)
			return
		case step.Write.Etag == "" && n == 1: // a list may omit it
			shown, err = a.readInterface(ctx, step.Write.ID)
			continue
		case !a.canWrite():
			return
		}
		var next lb.NetworkInterface
		next, err = a.u.cfg.Azure.PutInterface(ctx, *step.Write)
		a.recordWrite(nic.KindInterface, err)
		switch {
		case err == nil:
			a.readAt = time.Now()
			a.results[key] = a.resultOfWrite(m, next)
			return
		case isWriteConflict(err) && n == 1:
			shown, err = a.readInterface(ctx, step.Write.ID)
		}
	}
	if v := a.resultForError(m, err); v != resultWorking {
		a.results[key] = v
	}
}

func (a *attempt) resultOfWrite(m nic.Machine, next lb.NetworkInterface) machineResult {
	step := nic.NextStep(m, []lb.NetworkInterface{next}, a.plan.desired.MachinePools(m), a.plan.managed)
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
func (a *attempt) readInterfaces(ctx context.Context, m nic.Machine) ([]lb.NetworkInterface, error) {
	switch a.mode {
	case readGroup:
		return a.listInterfaces(ctx, m)
	case readSingle:
		shown, err := a.readInterface(ctx, a.id)
		if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale || err == nil && shown[0].Machine != m.Key() {
			return a.listInterfaces(ctx, m) // it has another interface, or none
		}
		return shown, err
	}
	a.u.mu.Lock()
	defer a.u.mu.Unlock()
	shown, at := a.worker.interfaces, a.worker.interfacesReadAt
	a.worker.interfaces, a.worker.hasList = nil, false
	a.readAt = at
	return shown, nil
}

// readPrimary reads the interface named by the virtual machine, which may be in another resource group.
func (a *attempt) readPrimary(ctx context.Context, m nic.Machine, shown []lb.NetworkInterface) ([]lb.NetworkInterface, error) {
	id, err := a.u.cfg.Azure.PrimaryInterface(ctx, m.VM)
	if err != nil || id.Name == "" {
		return shown, err
	}
	at := a.readAt
	primary, err := a.readInterface(ctx, id)
	switch f := armerror.FromError(err); {
	case f != nil && f.Class == armerror.Stale: // being created or deleted
		a.readAt = at
		return shown, nil
	case err == nil:
		a.u.mu.Lock()
		a.worker.hasInterface, a.worker.id = true, id
		a.u.mu.Unlock()
	}
	return primary, err
}

func (a *attempt) readInterface(ctx context.Context, id lb.ResourceID) ([]lb.NetworkInterface, error) {
	a.readAt = time.Now()
	nic, err := a.u.cfg.Azure.GetInterface(ctx, id)
	return []lb.NetworkInterface{nic}, err
}

// listInterfaces reads a resource group for all its machines that are due.
func (a *attempt) listInterfaces(ctx context.Context, m nic.Machine) ([]lb.NetworkInterface, error) {
	at := time.Now()
	a.readAt = at
	interfaces, err := a.u.cfg.Azure.ListInterfaces(ctx, a.id.SubscriptionID, a.id.ResourceGroup)
	if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
		interfaces, err = nil, nil // the resource group does not exist
	}
	of := map[string][]lb.NetworkInterface{}
	for _, nic := range interfaces {
		of[nic.Machine] = append(of[nic.Machine], nic)
	}
	u := a.u
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.listingGroups, a.worker.resourceGroup)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, l := range u.activeWorkers {
		switch {
		case l.resourceGroup != a.worker.resourceGroup || l.running || l.due.IsZero() || l.dueTime().After(time.Now()):
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
	a.worker.setInterfaces(of[m.Key()], at, false)
	u.signal()
	return of[m.Key()], err
}

// setInterfaces stores the interfaces; later is true if another attempt will use them. It requires u.mu.
func (w *worker) setInterfaces(shown []lb.NetworkInterface, at time.Time, later bool) {
	w.hasInterface = false
	for _, i := range shown {
		if i.Primary || len(shown) == 1 {
			w.hasInterface, w.id = true, i.ID
		}
	}
	w.hasList = later
	w.interfaces, w.interfacesReadAt = nil, at
	if later {
		w.interfaces = shown
	}
}
