// SPDX-License-Identifier: Apache-2.0

package contest

import (
	"context"
	"errors"
	"time"

	"weir.dev/weir/internal/fault"
)

// Lease is the lock that other controllers of the load balancers take; see
// poolupdate.Lease.
type Lease interface {
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}

// ErrLeaseLost says that a write was not made.
var ErrLeaseLost = &fault.Fault{
	Class: fault.Retriable, Code: "LeaseLost", Reason: "lease",
	Err: errors.New("the resource lease is lost, or ends before a write would"),
}

// leaseAgainAfter is when the lease is asked for again that somebody else has.
const leaseAgainAfter = 30 * time.Second

// Leased does something while the lease is held; without one, until the context is done. Nothing
// is to be written any more once valid returns false.
func Leased(ctx context.Context, lease Lease, do func(valid func() bool)) error {
	if lease == nil {
		do(func() bool { return ctx.Err() == nil })
		return nil
	}
	valid, leave, err := lease.Enter(ctx)
	if err != nil {
		return &fault.Fault{Class: fault.Retriable, Code: "LeaseHeld", Reason: "lease", RetryAt: time.Now().Add(leaseAgainAfter), Err: err}
	}
	defer leave()
	do(valid)
	return nil
}
