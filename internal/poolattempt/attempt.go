// SPDX-License-Identifier: Apache-2.0

package poolattempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Why a write is not made.
var (
	// ErrLeaseEnds is for all writes of a pass.
	ErrLeaseEnds = fmt.Errorf("%w: the resource lease is lost, or ends before a write would", poolwrite.ErrNotReady)
	errUnneeded  = fmt.Errorf("%w: nobody is left to write it for", poolwrite.ErrNotReady)
)

// Try is what an attempt is for, and what it asks on its way.
type Try struct {
	Ref  poolschedule.Ref
	Pool lb.PoolID
	// Valid reports whether a write may still start, and Needed whether anybody still waits
	// for one.
	Valid, Needed func() bool
}

// MayWrite asks once more, right before a write: reads and records have taken their time.
func (t Try) MayWrite() error {
	switch {
	case !t.Valid():
		return ErrLeaseEnds
	case !t.Needed():
		return errUnneeded
	}
	return nil
}

// CauseOf is the BackendPool for whose sake Azure is asked.
func CauseOf(ref poolschedule.Ref) calls.Cause {
	return calls.Cause{Kind: "BackendPool", Namespace: ref.Namespace, Name: ref.Name}
}

// Attempt brings one pool level: it reads the pool, computes what it has to become
// from the newest membership, records what it is about to write, and writes if the
// lease is still valid then.
//
// h is what was remembered of the pool before it.
func (c *Config) Attempt(ctx context.Context, t Try, h poolschedule.History) poolwrite.Result {
	within, cancel := context.WithTimeout(calls.For(ctx, CauseOf(t.Ref)), poolwrite.AttemptDeadline)
	defer cancel()
	r := c.Begin(h)
	err := c.bringLevel(within, t, &r)
	return r.End(err, ctx.Err() != nil, within.Err() != nil)
}

func (c *Config) bringLevel(ctx context.Context, t Try, r *poolwrite.Result) error {
	before := *r
	observed, err := c.Azure.Get(ctx, t.Pool)
	if err != nil {
		return err
	}
	if err = c.writeRead(ctx, t, observed, r); err != nil {
		err = c.secondTry(ctx, t, before, r, err)
	}
	return cmp.Or(err, c.handOver(t, r)) // whatever became of a write: who joins and leaves is another matter
}

// Begin returns the result of an attempt that has found out nothing yet.
func (c *Config) Begin(h poolschedule.History) poolwrite.Result {
	return poolwrite.Begin(h.Writes, c.Behaviour.PoolIfMatch == behaviour.Ignored)
}

// writeRead writes a pool that was read, if it is not level.
func (c *Config) writeRead(ctx context.Context, t Try, observed lb.Pool, r *poolwrite.Result) error {
	write, err := c.Prepare(ctx, t.Ref, observed, c.AdminState, r)
	switch {
	case errors.Is(err, ErrByMachine):
		return c.bringMembers(ctx, t, observed, r)
	case err != nil || !write:
		return err
	}
	return c.put(ctx, t, r)
}

// put writes what a pool has to become.
func (c *Config) put(ctx context.Context, t Try, r *poolwrite.Result) error {
	if err := t.MayWrite(); err != nil {
		return err
	}
	r.Sends()
	shown, err := c.Azure.Put(ctx, r.Todo.Next)
	if err != nil {
		return err
	}
	return r.Shown(shown)
}

// Prepare computes what a pool that was read has to become by the newest membership, and records
// it if that has to be written. states is true if the admin states of a pool of network interfaces
// are, too. One whose members are to be network interfaces is not for it: see bringMembers.
func (c *Config) Prepare(ctx context.Context, ref poolschedule.Ref, observed lb.Pool, states bool, r *poolwrite.Result) (write bool, err error) {
	want, err := c.Desired(ref)
	if err == nil && want.Machines != nil {
		return false, ErrByMachine
	}
	if not := r.Read(observed, states); not != nil {
		return false, not
	}
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
	if err == nil {
		err = c.record(ctx, ref, intent)
	}
	return write && err == nil, err
}

// record has the ledger hold what is about to be written.
func (c *Config) record(ctx context.Context, ref poolschedule.Ref, intent *poolwrite.Intent) error {
	if intent == nil {
		return nil
	}
	if err := c.Ledger.Record(ctx, ref, *intent); err != nil {
		become := "ours"
		if intent.States {
			become = "Down"
		}
		return fmt.Errorf("%w: cannot record which addresses are about to be %s: %w", poolwrite.ErrNotReady, become, err)
	}
	return nil
}

// Desired asks what a pool has to hold. While that is not known nobody's retry pays for it.
func (c *Config) Desired(ref poolschedule.Ref) (poolwrite.Desired, error) {
	want, err := c.Cluster.Desired(ref)
	if err != nil {
		return poolwrite.Desired{}, fmt.Errorf("%w: cannot read what is ours: %w", poolwrite.ErrNotReady, err)
	}
	return want, nil
}
