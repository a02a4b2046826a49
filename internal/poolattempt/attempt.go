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

var (
	// ErrLeaseEnds applies to all writes of a pass.
	ErrLeaseEnds = fmt.Errorf("%w: the resource lease is lost, or ends before a write would", poolwrite.ErrNotReady)
	errUnneeded  = fmt.Errorf("%w: nobody is left to write it for", poolwrite.ErrNotReady)
)

// Try is the target and the conditions of an attempt.
type Try struct {
	Ref  poolschedule.Ref
	Pool lb.PoolID
	// Whether a write may start, and whether it is still needed.
	Valid, Needed func() bool
}

// MayWrite checks both right before a write, because reads and records take time.
func (t Try) MayWrite() error {
	switch {
	case !t.Valid():
		return ErrLeaseEnds
	case !t.Needed():
		return errUnneeded
	}
	return nil
}

// CauseOf attributes calls to a BackendPool.
func CauseOf(ref poolschedule.Ref) calls.Cause {
	return calls.Cause{Kind: "BackendPool", Namespace: ref.Namespace, Name: ref.Name}
}

// Attempt reads a pool, computes the desired pool from the newest membership, records the write and
// writes. h is the pool's history.
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
	return cmp.Or(err, c.handOver(t, r)) // independent of the result of the pool write
}

// Begin returns an empty result.
func (c *Config) Begin(h poolschedule.History) poolwrite.Result {
	return poolwrite.Begin(h.Writes, c.Behaviour.PoolIfMatch == behaviour.Ignored)
}

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

// Prepare computes and records a write. states includes the admin states of network interfaces. It
// returns ErrByMachine if network interfaces are wanted.
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

// Desired returns a pool's desired state. If it is unknown, no retry is consumed.
func (c *Config) Desired(ref poolschedule.Ref) (poolwrite.Desired, error) {
	want, err := c.Cluster.Desired(ref)
	if err != nil {
		return poolwrite.Desired{}, fmt.Errorf("%w: cannot read what is ours: %w", poolwrite.ErrNotReady, err)
	}
	return want, nil
}
