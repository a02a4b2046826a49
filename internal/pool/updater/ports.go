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
	// Enter permits one attempt if until is zero. Otherwise reason names the closed gate, or is empty if the caller has
	// to wait for its turn.
	Enter(id lb.LoadBalancerID) (until time.Time, reason string)
	GetPool(ctx context.Context, id lb.PoolID) (lb.Pool, error)
	// PutPool writes a pool that was read, guarded by its Etag, and returns it as shown on completion.
	PutPool(ctx context.Context, pool lb.Pool) (lb.Pool, error)
	ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
}

// LoadBalancers reads and writes load balancers. Its errors carry a *armerror.Fault. Safe for concurrent use.
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
	Etag      string
	Completed bool
	// Wait waits for completion, with errors as Azure.PutPool, at most once. With looks, reading the pool may prove
	// completion; otherwise only the write's own operation does.
	Wait func(ctx context.Context, looks bool) (lb.Pool, error)
}

// Cluster reads the newest snapshot and never blocks.
type Cluster interface {
	// DesiredPool returns an error if the state is not known yet.
	DesiredPool(ref schedule.Ref) (diff.Desired, error)
	// IsNeeded reports whether the Service exists, and the BackendPool is the same object, not paused, and still refers
	// to the pool.
	IsNeeded(op schedule.Operation) bool
}

// StatusStore durably records which addresses Weir wrote, and set Down, so that a crash orphans none. The caller holds
// w.slot.
type StatusStore interface {
	Record(ctx context.Context, ref schedule.Ref, intent diff.Intent) error
}

// Members writes the machines of pools of network interfaces. It does not block.
type Members interface {
	// SetTarget replaces a pool's machines and returns their state. A failure is returned once, and retried with the
	// next call.
	SetTarget(pool nic.Target) nic.State
	Forget(pool lb.PoolID)
}

// Lease is the lock shared with other controllers of the load balancers; see leader.SharedLease.
type Lease interface {
	// Enter joins the lease for one pass. valid, whether a write may still start, never becomes true again. Call leave
	// once. err is a message that only changes with the cause.
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}

// Reporter receives the results of attempts and the waits before them.
type Reporter interface {
	// Report is called once per attempt, under w.slot, except for operations that are no longer needed.
	Report(ctx context.Context, r Report)
	// ReportWait reports a wait that no failed attempt explains, and reports it again if it grows much longer. It blocks
	// the worker.
	ReportWait(w Waiting)
}

// Report is the result of one attempt. It is flat because each consumer uses different fields.
type Report struct {
	Ref                       schedule.Ref
	Pool                      lb.PoolID
	Outcome                   diff.Outcome
	Fault                     *armerror.Fault
	Retrying, Failed, Updated []schedule.ServiceName
	// FailureReason is why the last change was given up, or empty. It is persisted for the next process.
	FailureReason string
	// Admin is true if only admin states caused the attempt. Operations of the membership are then unchanged, unless the
	// pool is in sync.
	Admin bool
	// AdminAttempted is true if the attempt included a due or settled admin state change.
	AdminAttempted bool
	// AdminFailed is true on the first failure of an admin state change, which was seen at AdminSince.
	AdminFailed, AdminDone   bool
	AdminSince, AdminRetryAt time.Time
	// Addresses that became Down, and those that no longer are but remain in the pool.
	MarkedDown, MarkedUp []netip.Addr
	// Conflicting addresses are written although another client keeps reverting them.
	Conflicting []netip.Addr
	Overlapping []netip.Addr
	// Store Written and Down, the addresses that Weir manages and set Down, if the pool is in sync.
	Written, Down []netip.Addr
	Instances     map[string]netip.Addr
	// Unusable nodes belong in the pool, but their machines cannot join it. Desired excludes them.
	Unusable []diff.Unusable
	// HasPendingWrite is true if a lost write may still land. Written and Down include what it would add.
	HasPendingWrite bool
	HadConflict     bool
	InSync          bool
	// StatesInSync is true if the admin states of a rejected pool of network interfaces are in sync. Store Down then.
	StatesInSync               bool
	WillRetry                  bool
	Desired, Observed, Foreign int
	Diff                       *diff.Difference
	RetriesUsed, Budget        int
	NextEligibleAt             time.Time
	RetryAt                    time.Time
	NextCheckAt                time.Time
	Resync                     bool
	// ChangedAt is when the oldest change was seen, zero if none; At is the end of the attempt.
	ChangedAt, At time.Time
	Duration      time.Duration
}
