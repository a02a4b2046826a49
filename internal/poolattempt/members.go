// SPDX-License-Identifier: Apache-2.0

package poolattempt

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// ErrByMachine is returned for a pool whose members are written machine by machine, which batched
// writes exclude.
var ErrByMachine = fmt.Errorf("%w: the members of the pool are network interfaces", poolwrite.ErrNotReady)

// errNoMembers is for a pool of network interfaces if Weir does not write machines.
var errNoMembers = errors.New("its members are to be network interfaces, and Weir writes addresses alone here")

// bringMembers records and writes the admin states of a pool of network interfaces. Its members are
// handed over once, at the end of the attempt, because each handover returns the failures since the
// previous one.
func (c *Config) bringMembers(ctx context.Context, t Try, observed lb.Pool, r *poolwrite.Result) error {
	want, err := c.Desired(t.Ref)
	if err == nil && want.Machines == nil { // changed since Prepare
		err = ErrByMachine
	}
	if err != nil {
		return err
	}
	write, intent, err := c.PrepareMembers(ctx, observed, want, r)
	if err == nil {
		err = c.record(ctx, t.Ref, intent)
	}
	if err != nil {
		r.HandOver = nil // never hand over what is not recorded
		return err
	}
	if write {
		return c.put(ctx, t, r)
	}
	return nil
}

// PrepareMembers computes the desired state of a pool of network interfaces.
func (c *Config) PrepareMembers(ctx context.Context, observed lb.Pool, want poolwrite.Desired, r *poolwrite.Result) (write bool, intent *poolwrite.Intent, err error) {
	r.Observed = len(observed.Addresses)
	if c.Members == nil {
		r.Outcome = poolwrite.Refused
		return false, nil, errNoMembers
	}
	if observed.NIC {
		if observed, err = c.Azure.Machines(ctx, observed); err != nil {
			return false, nil, err
		}
	}
	return r.PrepareMembers(observed, want, c.AdminState)
}

// handOver passes the target of a pool of network interfaces to the machine updater, even if the
// pool is in sync: writes of a machine for other pools must keep it in this one.
func (c *Config) handOver(t Try, r *poolwrite.Result) error {
	if r.HandOver == nil {
		return nil
	}
	if err := t.MayWrite(); err != nil && !r.HandOver.Level() {
		return err
	} else if err != nil {
		return nil //nolint:nilerr // it is handed over with the next attempt
	}
	r.Hands(c.Members.Bring(r.HandOver.Target))
	r.Brought = true
	return nil
}
