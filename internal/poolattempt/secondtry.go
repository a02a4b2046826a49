// SPDX-License-Identifier: Apache-2.0

package poolattempt

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/sleep"
)

// CodeInterfaceMember is Azure's code for a write of addresses to a pool of network interfaces.
const CodeInterfaceMember = "ModificationOfNICIpConfigBackendPoolNotSupported"

// EchoPatience is how many intervals an attempt waits for a write that may be Weir's own.
const EchoPatience = 3

// secondTry reads and writes again after a conflicting write, a joined interface or a Failed load
// balancer: once, and not before Retry-After. before is the result before the first try.
func (c *Config) secondTry(ctx context.Context, t Try, before poolwrite.Result, r *poolwrite.Result, met error) error {
	f := fault.From(met)
	named := !f.RetryAt.IsZero()
	switch {
	case f.Code == CodeInterfaceMember && !r.Interfaces && named:
		return interfaceMoves(t.Pool, met)
	case named:
		return met
	case f.Overtaken():
		return c.tryAgain(ctx, t, before, r, met)
	case f.Code == CodeInterfaceMember && !r.Interfaces:
		return c.readAsInterfaces(ctx, t, before, r, met)
	case f.Code == fault.CodeParentFailed && c.Whole != nil:
		if err := c.mend(ctx, t); err != nil {
			c.Log.WarnContext(ctx, "load balancer is Failed, and could not be written as it is", "loadBalancer", t.Pool.LoadBalancer.Name, "err", err)
			return met
		}
		return c.tryAgain(ctx, t, before, r, met)
	}
	return met
}

// tryAgain reads and writes once more. The rejected write may have landed: if the SDK sent it
// twice, the second request conflicted with the first.
func (c *Config) tryAgain(ctx context.Context, t Try, before poolwrite.Result, r *poolwrite.Result, met error) error {
	f, patience := fault.From(met), c.Interval
	landed, members := f.Overtaken() && f.Undecided, r.Members
	if landed { // Weir's own write may be in progress
		patience = EchoPatience * c.Interval
	}
	*r = r.Anew(before, f)
	observed, err := c.readAtRest(ctx, t.Pool, patience)
	if err != nil {
		return err
	}
	if !t.Needed() { // it has waited since
		return met
	}
	err = c.writeRead(ctx, t, observed, r)
	if landed && r.Outcome == poolwrite.Unchanged {
		r.Outcome, r.Members = poolwrite.Written, members
	}
	return err
}

// readAtRest waits for a running write, because its completion changes the etag again: an earlier
// write would fail with 412, or overwrite it. Up to an interval this is cheaper than a retry.
func (c *Config) readAtRest(ctx context.Context, pool lb.PoolID, patience time.Duration) (lb.Pool, error) {
	end, apart := time.Now().Add(patience), backoff.Doubling{First: time.Second, Max: 10 * time.Second}
	for n := 1; ; n++ {
		observed, err := c.Azure.Get(ctx, pool)
		wait := apart.After(n)
		if err != nil || observed.Provisioning != lb.Updating || time.Now().Add(wait).After(end) {
			return observed, err
		}
		if err := sleep.For(ctx, wait); err != nil {
			return lb.Pool{}, err
		}
	}
}

// readAsInterfaces reads a pool that has network interfaces, according to Azure. If none are shown
// yet, the next attempt will see them.
func (c *Config) readAsInterfaces(ctx context.Context, t Try, before poolwrite.Result, r *poolwrite.Result, met error) error {
	*r = r.Anew(before, fault.From(met))
	observed, err := c.Azure.Get(ctx, t.Pool)
	switch {
	case err != nil:
		return err
	case !observed.NIC:
		return interfaceMoves(t.Pool, met)
	}
	return c.writeRead(ctx, t, observed, r)
}

func interfaceMoves(pool lb.PoolID, met error) error {
	return &fault.Fault{
		Class: fault.Retriable, Code: CodeInterfaceMember, Reason: "interface_member", RetryAt: fault.From(met).RetryAt, Undecided: fault.From(met).Undecided,
		Err: fmt.Errorf("pool %s: a network interface joins it or leaves it: %w", pool.Name, met),
	}
}

// mend rewrites a Failed load balancer unchanged.
func (c *Config) mend(ctx context.Context, t Try) error {
	b, err := c.Whole.GetLoadBalancer(ctx, t.Pool.LoadBalancer)
	if err != nil || b.Provisioning != lb.Failed {
		return err
	}
	if err = t.MayWrite(); err != nil {
		return err
	}
	_, err = c.Whole.PutLoadBalancer(ctx, b)
	return err
}
