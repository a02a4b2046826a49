// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"net/netip"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// Azure reads and writes backend pools. Its errors carry a *armerror.Fault. Safe for concurrent use.
type Azure interface {
	// Enter requests permission for one attempt on the load balancer; the zero time grants it.
	// Otherwise until, in the future, is when to try again, and why is a message about what is
	// closed, empty if only the load balancer's turn has not come.
	Enter(id lb.LoadBalancerID) (until time.Time, why string)
	GetPool(ctx context.Context, id lb.PoolID) (lb.Pool, error)
	// PutPool writes a pool that was read, with other Addresses, or admin states of network interfaces,
	// guarded by its Etag, and returns it as shown on completion.
	PutPool(ctx context.Context, pool lb.Pool) (lb.Pool, error)
	// ResolveMachines returns a pool of network interfaces with the Machine of each.
	ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
}

// LoadBalancers reads and writes load balancers. Its errors carry a *armerror.Fault. Safe for concurrent
// use.
type LoadBalancers interface {
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	// PutLoadBalancer writes a load balancer from GetLoadBalancer unchanged, guarded by its Etag.
	PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error)
}

// Pipeline starts pool writes. Its errors carry a *armerror.Fault. Safe for concurrent use.
type Pipeline interface {
	// Begin sends the write that Azure.PutPool would make, and returns once Azure has accepted it.
	Begin(ctx context.Context, pool lb.Pool) (AcceptedWrite, error)
}

// AcceptedWrite is an accepted pool write. Azure shows it, and may roll it back until it completes.
type AcceptedWrite struct {
	// Etag is the load balancer's, or empty. Completion changes it.
	Etag string
	// Completed is true if it completed at once.
	Completed bool
	// Wait waits for completion and returns the pool, with errors as Azure.PutPool. With looks, reading
	// the pool may prove completion; otherwise only the write's own operation does. Call it at most
	// once.
	Wait func(ctx context.Context, looks bool) (lb.Pool, error)
}

// Cluster reads the newest snapshot and never blocks.
type Cluster interface {
	// DesiredPool returns the desired state of a BackendPool's pool, or an error if it is not known
	// yet.
	DesiredPool(ref schedule.Ref) (diff.Desired, error)
	// IsNeeded reports whether an operation is still needed: the BackendPool is the same object,
	// not paused and holds the pool, and the Service exists.
	IsNeeded(op schedule.Operation) bool
}

// StatusStore durably records which addresses Weir wrote, and which it set Down, so that a crash orphans
// none. It is called under the worker's lock.
type StatusStore interface {
	// Record replaces a pool's record before a write.
	Record(ctx context.Context, ref schedule.Ref, intent diff.Intent) error
}

// Members writes the machines of pools of network interfaces, with one worker per machine. It does not
// block.
type Members interface {
	// SetTarget replaces a pool's desired machines and returns their state. A failure is returned once,
	// and retried with the next call.
	SetTarget(pool nic.Target) nic.State
	// Forget stops machine writes for a pool.
	Forget(pool lb.PoolID)
}

// Lease is the lock shared with other controllers of the load balancers; see leader.SharedLease.
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
	// ReportWait reports that a change waits without a failed attempt, and again if the wait grows much
	// longer. It blocks the worker.
	ReportWait(w Waiting)
}

// Report is the result of one attempt. It is flat because each consumer uses different fields.
type Report struct {
	Ref     schedule.Ref
	Pool    lb.PoolID
	Outcome diff.Outcome
	// Fault is set for failures.
	Fault *armerror.Fault
	// Retrying, Failed and Updated are the Services to notify.
	Retrying, Failed, Updated []schedule.ServiceName
	// FailureReason is the class and code for which the last change was given up, or empty. It is
	// persisted for the next process.
	FailureReason string
	// Admin is true if only admin states caused the attempt: it consumes no retry. Unless the pool
	// is in sync, its other operations are unchanged.
	Admin bool
	// AdminAttempted is true if the attempt included a due or settled admin state change.
	AdminAttempted bool
	// AdminFailed is true on the first failure of an admin state change, AdminDone on success.
	// AdminSince is when it was seen, AdminRetryAt when it is retried; zero if none.
	AdminFailed, AdminDone   bool
	AdminSince, AdminRetryAt time.Time
	// Addresses that became Down, and those that no longer are but remain in the pool.
	MarkedDown, MarkedUp []netip.Addr
	// Conflicting addresses are written although another client keeps reverting them.
	Conflicting []netip.Addr
	// Overlapping are addresses of this cluster's nodes that another cluster has written.
	Overlapping []netip.Addr
	// Written are the addresses that Weir manages, Down those of them that it set Down. Store both
	// if the pool is in sync.
	Written, Down []netip.Addr
	// Instances maps instances of uniform scale sets to addresses among Written.
	Instances map[string]netip.Addr
	// Unusable nodes belong in the pool, but their machines cannot join it. Desired excludes them.
	Unusable []diff.Unusable
	// HasPendingWrite is true if a lost write may still land, because the pool's etag did not change.
	// Written and Down include what it would add.
	HasPendingWrite bool
	// HadConflict is true if another client wrote between read and write.
	HadConflict bool
	// InSync is true if the pool is in sync.
	InSync bool
	// StatesInSync is true if the admin states of a rejected pool of network interfaces are in sync. Store
	// Down then.
	StatesInSync bool
	// WillRetry is true if the membership is attempted again without a new change.
	WillRetry bool
	// Observed includes foreign addresses; -1 if the pool was not read.
	Desired, Observed, Foreign int
	// Diff is what was out of sync when read, or nil.
	Diff *diff.Difference
	// RetriesUsed is the highest among the operations, of Budget.
	RetriesUsed, Budget int
	// NextEligibleAt is the Retry-After of the pool; zero if none.
	NextEligibleAt time.Time
	// RetryAt is when the requeued attempt is due.
	RetryAt time.Time
	// NextCheckAt is the next check; zero is never.
	NextCheckAt time.Time
	// Resync is true if only a resync caused the attempt.
	Resync bool
	// ChangedAt is when the oldest change was seen, zero if none; At is the end of the attempt.
	ChangedAt, At time.Time
	Duration      time.Duration
}
