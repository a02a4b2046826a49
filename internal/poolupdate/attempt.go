// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Why a write is not made.
var (
	errLeaseEnds = fmt.Errorf("%w: the resource lease is lost, or ends before a write would", poolwrite.ErrNotReady)
	errUnneeded  = fmt.Errorf("%w: nobody is left to write it for", poolwrite.ErrNotReady)
)

// try is what an attempt is for, and what it asks on its way.
type try struct {
	ref  poolschedule.Ref
	pool lb.PoolID
	// valid reports whether a write may still start, and needed whether anybody still waits
	// for one.
	valid, needed func() bool
}

// mayWrite asks once more, right before a write: reads and records have taken their time.
func (t try) mayWrite() error {
	switch {
	case !t.valid():
		return errLeaseEnds
	case !t.needed():
		return errUnneeded
	}
	return nil
}

// attempt brings one pool level: it reads the pool, computes what it has to become
// from the newest membership, records what it is about to write, and writes if the
// lease is still valid then.
//
// h is what was remembered of the pool before it.
func (c *Config) attempt(ctx context.Context, t try, h poolschedule.History) poolwrite.Result {
	within, cancel := context.WithTimeout(ctx, poolwrite.AttemptDeadline)
	defer cancel()
	r := c.begin(h)
	err := c.bringLevel(within, t, &r)
	return r.End(err, ctx.Err() != nil, within.Err() != nil)
}

func (c *Config) bringLevel(ctx context.Context, t try, r *poolwrite.Result) error {
	before := *r
	observed, err := c.Azure.Get(ctx, t.pool)
	if err != nil {
		return err
	}
	if err = c.writeRead(ctx, t, observed, r); err != nil {
		return c.secondTry(ctx, t, before, r, err)
	}
	return nil
}

// begin returns the result of an attempt that has found out nothing yet.
func (c *Config) begin(h poolschedule.History) poolwrite.Result {
	return poolwrite.Begin(h.Writes, c.Behaviour.PoolIfMatch == behaviour.Ignored)
}

// writeRead writes a pool that was read, if it is not level.
func (c *Config) writeRead(ctx context.Context, t try, observed lb.Pool, r *poolwrite.Result) error {
	write, err := c.prepare(ctx, t.ref, observed, c.AdminState, r)
	if err != nil || !write {
		return err
	}
	if err = t.mayWrite(); err != nil {
		return err
	}
	r.Sends()
	shown, err := c.Azure.Put(ctx, r.Todo.Next)
	if err != nil {
		return err
	}
	return r.Shown(shown)
}

// prepare computes what a pool that was read has to become by the newest membership, and records
// it if that has to be written. states is true if the admin states of a pool of network interfaces
// are, too.
func (c *Config) prepare(ctx context.Context, ref poolschedule.Ref, observed lb.Pool, states bool, r *poolwrite.Result) (write bool, err error) {
	if err = r.Read(observed, states); err != nil {
		return false, err
	}
	want, err := c.desired(ref)
	if err != nil {
		return false, err
	}
	var intent *poolwrite.Intent
	switch {
	case !observed.NIC:
		write, intent, err = r.Prepare(observed, want, c.AdminState)
	case r.Leaves(want):
		if observed, err = c.Azure.Machines(ctx, observed); err != nil {
			return false, err
		}
		write, intent, err = r.PrepareStates(observed, want)
	}
	if err != nil || intent == nil {
		return write, err
	}
	if err = c.Ledger.Record(ctx, ref, *intent); err != nil {
		become := "ours"
		if intent.States {
			become = "Down"
		}
		return false, fmt.Errorf("%w: cannot record which addresses are about to be %s: %w", poolwrite.ErrNotReady, become, err)
	}
	return write, nil
}

// desired asks what a pool has to hold. While that is not known nobody's retry pays for it.
func (c *Config) desired(ref poolschedule.Ref) (poolwrite.Desired, error) {
	want, err := c.Cluster.Desired(ref)
	if err != nil {
		return poolwrite.Desired{}, fmt.Errorf("%w: cannot read what is ours: %w", poolwrite.ErrNotReady, err)
	}
	return want, nil
}
