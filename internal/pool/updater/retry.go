// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/ratelimit"
)

// codeInterfaceMember rejects a write of addresses to a pool of network interfaces.
const codeInterfaceMember = "ModificationOfNICIpConfigBackendPoolNotSupported"

const maxOwnWriteIntervals = 3

// retryOnce never repeats, nor before Retry-After: a conflict, a joined interface or a Failed load balancer.
func (c *Config) retryOnce(ctx context.Context, t target, before diff.Result, r *diff.Result, met error) error {
	f := armerror.FromError(met)
	named := !f.RetryAt.IsZero()
	switch {
	case f.Code == codeInterfaceMember && !r.HoldsInterfaces && named:
		return newInterfaceFault(t.pool, met)
	case named:
		return met
	case f.IsPreconditionFailed(), f.Code == codeInterfaceMember && !r.HoldsInterfaces:
		return c.readAndWrite(ctx, t, before, r, met)
	case f.Code == armerror.CodeParentFailed && c.LoadBalancers != nil:
		if err := c.repairLoadBalancer(ctx, t); err != nil {
			c.Log.WarnContext(ctx, "load balancer is Failed, and could not be written as it is", "loadBalancer", t.pool.LoadBalancer.Name, "err", err)
			return met
		}
		return c.readAndWrite(ctx, t, before, r, met)
	}
	return met
}

// readAndWrite: a write with 412 may have landed, if the SDK sent it twice and the second conflicted with the first.
func (c *Config) readAndWrite(ctx context.Context, t target, before diff.Result, r *diff.Result, met error) error {
	f, patience := armerror.FromError(met), c.Interval
	landed, members := f.IsPreconditionFailed() && f.MayBeApplied, r.ChangesMembers
	switch {
	case landed: // Weir's own write may be in progress
		patience = maxOwnWriteIntervals * c.Interval
	case f.Code == codeInterfaceMember:
		patience = 0
	}
	*r = r.ForSecondTry(before, f)
	observed, err := c.readIdle(ctx, t.pool, patience)
	switch {
	case err != nil:
		return err
	case f.Code == codeInterfaceMember && !observed.NIC: // the next attempt will see it
		return newInterfaceFault(t.pool, met)
	case !t.isNeeded(): // it has waited since
		return met
	}
	err = c.writeIfNeeded(ctx, t, observed, r)
	if landed && r.Outcome == diff.Unchanged {
		r.Outcome, r.ChangesMembers = diff.Written, members
	}
	return err
}

// readIdle waits for a running write, whose end changes the etag again. Up to an interval this is cheaper than a retry.
func (c *Config) readIdle(ctx context.Context, pool lb.PoolID, patience time.Duration) (lb.Pool, error) {
	end, apart := time.Now().Add(patience), ratelimit.Exponential{Initial: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		observed, err := c.Azure.GetPool(ctx, pool)
		wait := apart.DelayAfter(n)
		if err != nil || observed.Provisioning != lb.Updating || time.Now().Add(wait).After(end) {
			return observed, err
		}
		if err := ratelimit.Sleep(ctx, wait); err != nil {
			return lb.Pool{}, err
		}
	}
}

func newInterfaceFault(pool lb.PoolID, met error) error {
	return &armerror.Fault{
		Class: armerror.Retriable, Code: codeInterfaceMember, Reason: "interface_member", RetryAt: armerror.FromError(met).RetryAt, MayBeApplied: armerror.FromError(met).MayBeApplied,
		Err: fmt.Errorf("pool %s: a network interface joins it or leaves it: %w", pool.Name, met),
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
