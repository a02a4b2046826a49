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

// Azure reads and writes pools. Safe for concurrent use.
type Azure interface {
	poolattempt.Azure
	// Enter requests permission for one attempt on the load balancer; the zero time grants it.
	// Otherwise until, in the future, is when to try again, and why is a message about what is
	// closed, empty if only the load balancer's turn has not come.
	Enter(id lb.LoadBalancerID) (until time.Time, why string)
}

// Pipeline starts pool writes. Its errors carry a *fault.Fault. Safe for concurrent use.
type Pipeline interface {
	// Begin sends the write that Azure.Put would make, and returns once Azure has accepted it.
	Begin(ctx context.Context, pool lb.Pool) (Begun, error)
}

// Begun is an accepted pool write. Azure shows it, and may roll it back until it completes.
type Begun struct {
	// Etag is the load balancer's, or empty. Completion changes it.
	Etag string
	// Over is true if it completed at once.
	Over bool
	// End waits for completion and returns the pool, with errors as Azure.Put. With looks, reading
	// the pool may prove completion; otherwise only the write's own operation does. Call it at most
	// once.
	End func(ctx context.Context, looks bool) (lb.Pool, error)
}

// Cluster reads the newest snapshot and never blocks.
type Cluster interface {
	poolattempt.Cluster
	// Relevant reports whether an operation is still needed: the BackendPool is the same object,
	// not paused and holds the pool, and the Service exists.
	Relevant(op poolschedule.Operation) bool
}

// Members writes the machines of pools of network interfaces.
type Members interface {
	poolattempt.Members
	// Forget stops machine writes for a pool.
	Forget(pool lb.PoolID)
}

// Lease is the lock shared with other controllers of the load balancers; see lease.Shared.
type Lease interface {
	// Enter joins the lease for one pass. valid reports whether a write may still start; it never
	// becomes true again. Call leave once. err is a message that only changes with the cause.
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}

// Reporter receives the results of attempts and the waits before them.
type Reporter interface {
	// Report is called once per attempt, under the worker's lock, except for operations that are no
	// longer needed.
	Report(ctx context.Context, r Report)
	// Wait reports that a change waits without a failed attempt, and again if the wait grows much
	// longer. It blocks the worker.
	Wait(w Waiting)
}

// Report is the result of one attempt. It is flat because each consumer uses different fields.
type Report struct {
	Ref     poolschedule.Ref
	Pool    lb.PoolID
	Outcome poolwrite.Outcome
	// Fault is set for failures.
	Fault *fault.Fault
	// Retrying, Failed and Updated are the Services to notify.
	Retrying, Failed, Updated []poolschedule.ServiceName
	// GivenUpFor is the class and code for which the last change was given up, or empty. It is
	// persisted for the next process.
	GivenUpFor string
	// Admin is true if only admin states caused the attempt: it consumes no retry. Unless the pool
	// is in sync, its other operations are unchanged.
	Admin bool
	// AdminTried is true if the attempt included a due or settled admin state change.
	AdminTried bool
	// AdminFailed is true on the first failure of an admin state change, AdminDone on success.
	// AdminSince is when it was seen, AdminRetryAt when it is retried; zero if none.
	AdminFailed, AdminDone   bool
	AdminSince, AdminRetryAt time.Time
	// Addresses that became Down, and those that no longer are but remain in the pool.
	Downed, Restored []netip.Addr
	// Contested addresses are written although another client keeps reverting them.
	Contested []netip.Addr
	// Written are the addresses that Weir manages, Down those of them that it set Down. Store both
	// if the pool is in sync.
	Written, Down []netip.Addr
	// Instances maps instances of uniform scale sets to addresses among Written.
	Instances map[string]netip.Addr
	// Unusable nodes belong in the pool, but their machines cannot join it. Desired excludes them.
	Unusable []poolwrite.Unusable
	// MayLand is true if a lost write may still land, because the pool's etag did not change.
	// Written and Down include what it would add.
	MayLand bool
	// Overtaken is true if another client wrote between read and write.
	Overtaken bool
	// Settled is true if the pool is in sync.
	Settled bool
	// States is true if the admin states of a rejected pool of network interfaces are in sync. Store
	// Down then.
	States bool
	// Requeued is true if the membership is attempted again without a new change.
	Requeued bool
	// Observed includes foreign addresses; -1 if the pool was not read.
	Desired, Observed, Foreign int
	// Differs is what was out of sync when read, or nil.
	Differs *poolwrite.Differs
	// RetriesUsed is the highest among the operations, of Budget.
	RetriesUsed, Budget int
	// NextEligibleAt is the Retry-After of the pool; zero if none.
	NextEligibleAt time.Time
	// RetryAt is when the requeued attempt is due.
	RetryAt time.Time
	// LookAt is the next check; zero is never.
	LookAt time.Time
	// Drift is true if only a resync caused the attempt.
	Drift bool
	// ChangedAt is when the oldest change was seen, zero if none; At is the end of the attempt.
	ChangedAt, At time.Time
	Took          time.Duration
}
