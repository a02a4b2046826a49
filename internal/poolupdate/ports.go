// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"context"
	"net/netip"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolattempt"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// Azure reads and writes pools, and limits when an attempt may start. Safe for concurrent use.
type Azure interface {
	poolattempt.Azure
	// Enter requests permission for one attempt on a pool of this load balancer; the zero time
	// grants it. Otherwise until is when to try again, always in the future, and why is a message
	// that names what is closed. why is empty if nothing is closed and only this load balancer's
	// turn has not come.
	Enter(id lb.LoadBalancerID) (until time.Time, why string)
}

// Pipeline starts pool writes without waiting for completion. Its errors carry a *fault.Fault. Safe
// for concurrent use.
type Pipeline interface {
	// Begin starts the write that Azure.Put would make, and returns once Azure has accepted it.
	Begin(ctx context.Context, pool lb.Pool) (Begun, error)
}

// Begun is a pool write that Azure has accepted. It is visible in Azure's model, and may be rolled
// back until it completes.
type Begun struct {
	// Etag is the load balancer's etag in the response, or empty. It changes again on completion.
	Etag string
	// Over is true if the write was complete when Azure responded.
	Over bool
	// End waits for completion and returns the pool that Azure then shows; its errors are those of
	// Azure.Put. If looks is true, reading the pool may prove completion; otherwise only the
	// write's own operation does. Calling it is optional; call it at most once.
	End func(ctx context.Context, looks bool) (lb.Pool, error)
}

// Cluster reads the newest snapshot of the cluster and never blocks.
type Cluster interface {
	poolattempt.Cluster
	// Relevant reports whether an operation is still needed: its BackendPool is the same object,
	// not paused and holds the pool, and its Service exists. Other operations are dropped silently.
	Relevant(op poolschedule.Operation) bool
}

// Members writes the machines that belong to pools of network interfaces.
type Members interface {
	poolattempt.Members
	// Forget drops a pool: no machine joins or leaves it afterwards.
	Forget(pool lb.PoolID)
}

// Lease is the lock shared with other controllers of the cluster's load balancers. All workers
// share it; see lease.Shared.
type Lease interface {
	// Enter joins the lease for one pass. valid reports whether a write may still start; once false
	// it stays false. Call leave exactly once. err is a message for the user, identical for as long
	// as the cause is the same.
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}

// Reporter receives the results of attempts and the waits before them.
type Reporter interface {
	// Report is called once per attempt, under the worker's lock. Silently dropped operations are
	// not reported.
	Report(ctx context.Context, r Report)
	// Wait reports a change that waits although no attempt has failed since. It is called once, and
	// again only if the wait grows much longer. The worker blocks until it returns.
	Wait(w Waiting)
}

// Report is the result of one attempt to bring a pool in sync. It is flat because status, events,
// status store, log and metrics each use different fields.
type Report struct {
	Ref     poolschedule.Ref
	Pool    lb.PoolID
	Outcome poolwrite.Outcome
	// Fault is set for every failure.
	Fault *fault.Fault
	// Retrying, Failed and Updated are the Services to notify, each listed once.
	Retrying, Failed, Updated []poolschedule.ServiceName
	// GivenUpFor is the class and code for which the last change was given up, or empty. It is
	// persisted so that the next process repeats no notification (see Operation.Told).
	GivenUpFor string
	// Admin is true if only an admin state change caused the attempt: no retry is consumed, and
	// other operations in it are unchanged unless Settled.
	Admin bool
	// AdminTried is true if the attempt was caused by, or settled, an admin state change.
	AdminTried bool
	// AdminFailed is true when an admin state change fails for the first time, AdminDone when it is
	// applied. AdminSince is when the oldest such change was seen, AdminRetryAt when it is retried;
	// zero if none.
	AdminFailed, AdminDone   bool
	AdminSince, AdminRetryAt time.Time
	// Downed addresses became Down; Restored ones are no longer Down and still in the pool.
	Downed, Restored []netip.Addr
	// Contested addresses are those that another client keeps removing, or whose admin states it
	// keeps reverting. Weir writes them anyway.
	Contested []netip.Addr
	// Written are the addresses that Weir manages from now on; Down is the subset that Weir set
	// Down. Both go to the status store if Settled.
	Written, Down []netip.Addr
	// Instances maps instances of uniform scale sets to their addresses among Written.
	Instances map[string]netip.Addr
	// Unusable are nodes that belong in the pool but whose machine cannot join it. Desired excludes
	// them.
	Unusable []poolwrite.Unusable
	// MayLand is true if a write with a lost response may still take effect, because the write
	// after it did not change the pool's etag. Written and Down include what it would add.
	MayLand bool
	// Overtaken is true if another client wrote between read and write, which were then repeated.
	Overtaken bool
	// Settled is true if the pool is known to be in sync.
	Settled bool
	// States is true if a pool of network interfaces was Refused but has the desired admin states.
	// Down then goes to the status store.
	States bool
	// Requeued is true if a membership attempt follows without a new change.
	Requeued bool
	// Desired, Observed and Foreign count addresses. Observed includes foreign ones and is -1 if
	// the pool was not read.
	Desired, Observed, Foreign int
	// Differs is the difference that the attempt read; nil if it read nothing or is Settled.
	Differs *poolwrite.Differs
	// RetriesUsed is the highest count among the operations, out of Budget.
	RetriesUsed, Budget int
	// NextEligibleAt is the time before which Azure must not be called for the pool, with or
	// without a pending attempt; zero if unrestricted.
	NextEligibleAt time.Time
	// RetryAt is when the next attempt is due if requeued; never before NextEligibleAt or At.
	RetryAt time.Time
	// LookAt is when the pool is next read without a change; zero is never.
	LookAt time.Time
	// Drift is true if only the periodic drift check caused the attempt.
	Drift bool
	// ChangedAt is when the oldest change in the attempt was seen, zero if none. At is when the
	// attempt ended.
	ChangedAt, At time.Time
	// Took is the duration of the attempt.
	Took time.Duration
}
