// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
)

// errMachineMembers excludes pools from batches: their members are written machine by machine.
var errMachineMembers = fmt.Errorf("%w: the members of the pool are network interfaces", diff.ErrNotReady)

var errNoMembers = &armerror.Fault{Class: armerror.Terminal, Code: diff.CodeNICPool, Reason: "nic_pool", Err: errors.New("its members are to be network interfaces, and Weir writes addresses alone here")}

// syncMembers writes admin states. Members are handed over once, at the end: a handover returns new failures.
func (c *Config) syncMembers(ctx context.Context, t target, observed lb.Pool, r *diff.Result) error {
	want, err := c.desiredPool(t.ref)
	if err == nil && want.Machines == nil { // changed since Prepare
		err = errMachineMembers
	}
	if err != nil {
		return err
	}
	write, intent, err := c.prepareMembers(ctx, observed, want, r)
	if err == nil {
		err = c.recordIntent(ctx, t.ref, intent)
	}
	if err != nil {
		r.MachineTarget = nil // never hand over what is not recorded
		return err
	}
	if write {
		return c.writePool(ctx, t, r)
	}
	return nil
}

func (c *Config) prepareMembers(ctx context.Context, observed lb.Pool, want diff.Desired, r *diff.Result) (write bool, intent *diff.Intent, err error) {
	r.Observed = len(observed.Addresses)
	if c.Members == nil {
		r.Outcome = diff.Rejected
		return false, nil, errNoMembers
	}
	if observed.NIC {
		if observed, err = c.Azure.ResolveMachines(ctx, observed); err != nil {
			return false, nil, err
		}
	}
	return r.PrepareMembers(observed, want, c.AdminState)
}

// setMachineTarget hands over even a pool in sync: other writes of its machines must keep them in it.
func (c *Config) setMachineTarget(t target, r *diff.Result) error {
	if r.MachineTarget == nil {
		return nil
	}
	if err := t.checkWrite(); err != nil && !r.MachineTarget.IsInSync() {
		return err
	} else if err != nil {
		return nil //nolint:nilerr // it is handed over with the next attempt
	}
	r.RecordMachines(c.Members.SetTarget(r.MachineTarget.Target))
	r.TargetSet = true
	return nil
}
