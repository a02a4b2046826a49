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

// CodeInterfaceMember is Azure's for a write that changes the addresses of a pool of which
// members are network interfaces.
const CodeInterfaceMember = "ModificationOfNICIpConfigBackendPoolNotSupported"

// EchoPatience is how many intervals a pool is waited for whose write may be our own: as long it
// keeps the lane.
const EchoPatience = 3

// secondTry makes good within the attempt what a fresh read can make good: that somebody else
// wrote since the first read, that an interface has joined, or that the load balancer has to be
// written before. Whatever comes of it is the attempt's end: there is no third try, and none before
// a time that Azure has named. before is what was known before the first.
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

// tryAgain reads and writes a pool once more. The first write may have landed although it was
// refused: the SDK sent it twice, and the second met what the first had changed.
func (c *Config) tryAgain(ctx context.Context, t Try, before poolwrite.Result, r *poolwrite.Result, met error) error {
	f, patience := fault.From(met), c.Interval
	landed, members := f.Overtaken() && f.Undecided, r.Members
	if landed { // it may be our own write that is under way
		patience = EchoPatience * c.Interval
	}
	*r = r.Anew(before, f)
	observed, err := c.readAtRest(ctx, t.Pool, patience)
	if err != nil {
		return err
	}
	if !t.Needed() { // since it has waited
		return met
	}
	err = c.writeRead(ctx, t, observed, r)
	if landed && r.Outcome == poolwrite.Unchanged {
		r.Outcome, r.Members = poolwrite.Written, members
	}
	return err
}

// readAtRest reads a pool, and again while a write to it is under way, as long as patience
// allows: the end of that write changes the etag once more, so what is read before would be met
// with 412 again, or would take the other's place. Up to an interval this is cheaper than a retry.
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

// readAsInterfaces looks what a pool has become that Azure calls one of network interfaces: if
// the read shows no more than an address beside them, or nothing of them, the next attempt tells.
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

// interfaceMoves is for an interface that the next attempt will see.
func interfaceMoves(pool lb.PoolID, met error) error {
	return &fault.Fault{
		Class: fault.Retriable, Code: CodeInterfaceMember, Reason: "interface_member", RetryAt: fault.From(met).RetryAt, Undecided: fault.From(met).Undecided,
		Err: fmt.Errorf("pool %s: a network interface joins it or leaves it: %w", pool.Name, met),
	}
}

// mend writes a load balancer that is Failed as it was read. That changes none of its pools.
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
