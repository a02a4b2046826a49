// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
)

var (
	errLeaseLost = fmt.Errorf("%w: the resource lease is lost, or ends before a write would", diff.ErrNotReady)
	errNotNeeded = fmt.Errorf("%w: no Service needs it any longer", diff.ErrNotReady)
)

type target struct {
	ref               schedule.Ref
	pool              lb.PoolID
	isValid, isNeeded func() bool
}

// checkWrite runs right before a write, because reads and records take time.
func (t target) checkWrite() error {
	switch {
	case !t.isValid():
		return errLeaseLost
	case !t.isNeeded():
		return errNotNeeded
	}
	return nil
}

func withCause(ctx context.Context, ref schedule.Ref) context.Context {
	return requestlog.WithCauses(ctx, requestlog.Cause{Kind: "BackendPool", Namespace: ref.Namespace, Name: ref.Name})
}

func (c *Config) updatePool(ctx context.Context, t target, h schedule.History) diff.Result {
	within, cancel := context.WithTimeout(withCause(ctx, t.ref), diff.AttemptDeadline)
	defer cancel()
	r := c.newResult(h)
	err := c.syncPool(within, t, &r)
	return r.FinishAttempt(err, ctx.Err() != nil, within.Err() != nil)
}

func (c *Config) syncPool(ctx context.Context, t target, r *diff.Result) error {
	before := *r
	observed, err := c.Azure.GetPool(ctx, t.pool)
	if err != nil {
		return err
	}
	if err = c.writeIfNeeded(ctx, t, observed, r); err != nil {
		err = c.retryOnce(ctx, t, before, r, err)
	}
	return cmp.Or(err, c.setMachineTarget(t, r)) // independent of the result of the pool write
}

func (c *Config) newResult(h schedule.History) diff.Result {
	return diff.NewResult(h.Writes, c.Behaviour.PoolIfMatch == behavior.Ignored)
}

func (c *Config) writeIfNeeded(ctx context.Context, t target, observed lb.Pool, r *diff.Result) error {
	write, err := c.prepareWrite(ctx, t.ref, observed, r, true)
	if write {
		err = t.checkWrite()
	}
	if err != nil || !write {
		return err
	}
	r.RecordWrite()
	shown, err := c.Azure.PutPool(ctx, r.Change.Next)
	if err != nil {
		return err
	}
	return r.VerifyWrite(shown)
}

// prepareWrite computes a write and records it. If network interfaces are wanted and machines is false, it returns
// errMachineMembers: members are handed over only at the end of an attempt, because a handover returns each failure
// once.
func (c *Config) prepareWrite(ctx context.Context, ref schedule.Ref, observed lb.Pool, r *diff.Result, machines bool) (write bool, err error) {
	want, err := c.desiredPool(ref)
	isMachines := err == nil && want.Machines != nil
	if isMachines && !machines {
		return false, errMachineMembers
	}
	if !isMachines {
		if not := r.RecordRead(observed, c.AdminState); not != nil {
			return false, not
		}
	}
	if err != nil {
		return false, err
	}
	var intent *diff.Intent
	switch {
	case isMachines:
		write, intent, err = c.prepareMembers(ctx, observed, want, r)
	case !observed.NIC:
		write, intent, err = r.PrepareAddresses(observed, want, c.AdminState)
	case r.HasRemovedNodes(want):
		if observed, err = c.Azure.ResolveMachines(ctx, observed); err != nil {
			return false, err
		}
		write, intent, err = r.PrepareStates(observed, want)
	}
	if err == nil {
		err = c.recordIntent(ctx, ref, intent)
	}
	if err != nil {
		r.MachineTarget = nil // never hand over what is not recorded
	}
	return write && err == nil, err
}

func (c *Config) recordIntent(ctx context.Context, ref schedule.Ref, intent *diff.Intent) error {
	if intent == nil {
		return nil
	}
	if err := c.StatusStore.Record(ctx, ref, *intent); err != nil {
		become := "ours"
		if intent.OnlyStates {
			become = "Down"
		}
		return fmt.Errorf("%w: cannot record which addresses are about to be %s: %w", diff.ErrNotReady, become, err)
	}
	return nil
}

// desiredPool returns a pool's desired state. If it is unknown, no retry is consumed.
func (c *Config) desiredPool(ref schedule.Ref) (diff.Desired, error) {
	want, err := c.Cluster.DesiredPool(ref)
	if err != nil {
		return diff.Desired{}, fmt.Errorf("%w: cannot read what is ours: %w", diff.ErrNotReady, err)
	}
	return want, nil
}

// errMachineMembers excludes pools from batches: their members are written machine by machine.
var errMachineMembers = fmt.Errorf("%w: the members of the pool are network interfaces", diff.ErrNotReady)

var errNoMembers = &armerror.Fault{Class: armerror.Terminal, Code: diff.CodeNICPool, Reason: "nic_pool", Err: errors.New("its members are to be network interfaces, and Weir writes addresses alone here")}

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

// setMachineTarget hands over the machines even of a pool that is in sync, so that other writes of these machines keep
// them in it.
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

// codeInterfaceMember rejects a write of addresses to a pool of network interfaces.
const codeInterfaceMember = "ModificationOfNICIpConfigBackendPoolNotSupported"

const maxOwnWriteIntervals = 3

// retryOnce tries a second time within the attempt after a conflict, a joined interface or a Failed load balancer,
// unless Azure has set a Retry-After.
func (c *Config) retryOnce(ctx context.Context, t target, before diff.Result, r *diff.Result, cause error) error {
	f := armerror.FromError(cause)
	joins := f.Code == codeInterfaceMember && !r.HoldsInterfaces
	switch {
	case joins && !f.RetryAt.IsZero():
		return newInterfaceFault(t.pool, cause)
	case !f.RetryAt.IsZero():
		return cause
	case joins, f.IsPreconditionFailed():
	case f.Code == armerror.CodeParentFailed && c.LoadBalancers != nil:
		if err := c.repairLoadBalancer(ctx, t); err != nil {
			c.Log.WarnContext(ctx, "load balancer is Failed, and could not be written as it is", "loadBalancer", t.pool.LoadBalancer.Name, "err", err)
			return cause
		}
	default:
		return cause
	}
	return c.readAndWrite(ctx, t, before, r, cause)
}

// readAndWrite reads the pool again and writes it if needed. A write rejected with 412 may still have landed: the SDK
// may have sent it twice, and the second request conflicted with the first.
func (c *Config) readAndWrite(ctx context.Context, t target, before diff.Result, r *diff.Result, cause error) error {
	f, maxWait := armerror.FromError(cause), c.Interval
	landed, members := f.IsPreconditionFailed() && f.MayBeApplied, r.ChangesMembers
	switch {
	case landed: // Weir's own write may be in progress
		maxWait = maxOwnWriteIntervals * c.Interval
	case f.Code == codeInterfaceMember:
		maxWait = 0
	}
	*r = r.ForSecondTry(before, f)
	observed, err := c.readIdle(ctx, t.pool, maxWait)
	switch {
	case err != nil:
		return err
	case f.Code == codeInterfaceMember && !observed.NIC: // the next attempt will see it
		return newInterfaceFault(t.pool, cause)
	case !t.isNeeded(): // it has waited since
		return cause
	}
	err = c.writeIfNeeded(ctx, t, observed, r)
	if landed && r.Outcome == diff.Unchanged {
		r.Outcome, r.ChangesMembers = diff.Written, members
	}
	return err
}

// readIdle reads the pool once no write of it runs, because the end of a write changes the etag again. Waiting for up to
// an interval is cheaper than a retry.
func (c *Config) readIdle(ctx context.Context, pool lb.PoolID, maxWait time.Duration) (lb.Pool, error) {
	end, delays := time.Now().Add(maxWait), ratelimit.Exponential{Initial: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		observed, err := c.Azure.GetPool(ctx, pool)
		wait := delays.DelayAfter(n)
		if err != nil || observed.Provisioning != lb.Updating || time.Now().Add(wait).After(end) {
			return observed, err
		}
		if err := ratelimit.Sleep(ctx, wait); err != nil {
			return lb.Pool{}, err
		}
	}
}

func newInterfaceFault(pool lb.PoolID, cause error) error {
	return &armerror.Fault{
		Class: armerror.Retriable, Code: codeInterfaceMember, Reason: "interface_member", RetryAt: armerror.FromError(cause).RetryAt, MayBeApplied: armerror.FromError(cause).MayBeApplied,
		Err: fmt.Errorf("pool %s: a network interface joins it or leaves it: %w", pool.Name, cause),
	}
}

func (c *Config) repairLoadBalancer(ctx context.Context, t target) error {
	b, err := c.LoadBalancers.GetLoadBalancer(ctx, t.pool.LoadBalancer)
	if err != nil || b.Provisioning != lb.Failed {
		return err
	}
	if err = t.checkWrite(); err != nil {
		return err
	}
	_, err = c.LoadBalancers.PutLoadBalancer(ctx, b)
	return err
}
