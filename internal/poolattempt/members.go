// SPDX-License-Identifier: Apache-2.0

package poolattempt

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// ErrByMachine excludes pools from batched updates: their members are written machine by machine.
var ErrByMachine = fmt.Errorf("%w: the members of the pool are network interfaces", poolwrite.ErrNotReady)

// errNoMembers means that Weir does not write machines.
var errNoMembers = errors.New("its members are to be network interfaces, and Weir writes addresses alone here")

// bringMembers records and writes the admin states of a pool of network interfaces. Its members are
// handed over once per attempt, at the end, because a handover returns new failures.
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

// PrepareMembers computes the writes of a pool of network interfaces.
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

// handOver passes the desired machines to the machine updater, even if the pool is in sync: other
// writes of these machines must keep them in it.
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
