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

// Azure is what attempts ask of Azure, and whether one may begin.
// It is called from several lanes at once.
type Azure interface {
	poolattempt.Azure
	// Enter asks for leave to attempt a pool of this load balancer now; the zero time
	// gives it, for one attempt. Otherwise until is when to ask again, which is after
	// now, and why says what is closed, for people; it is empty where nothing is
	// closed any more and only this load balancer's turn has not come.
	Enter(id lb.LoadBalancerID) (until time.Time, why string)
}

// Pipeline writes pools without waiting for the end. Its errors carry a *fault.Fault.
// It is called from several lanes at once.
type Pipeline interface {
	// Begin writes a pool as Azure.Put does, and returns once Azure has accepted it.
	Begin(ctx context.Context, pool lb.Pool) (Begun, error)
}

// Begun is a write of a pool that Azure has accepted: it is in force in Azure's model, and may be
// taken back until its end.
type Begun struct {
	// Etag is that of the load balancer by the answer, empty if it tells none. The end of the write
	// changes it once more.
	Etag string
	// Over is true if Azure was done with it when it answered.
	Over bool
	// End waits until Azure is done, and returns what Azure then shows. Its errors are those of
	// Azure.Put. looks allows to see the end by the pool itself; else only the end of the write's own
	// operation counts. It need not be called, and may be called once.
	End func(ctx context.Context, looks bool) (lb.Pool, error)
}

// Cluster answers from the newest snapshot of the cluster, without waiting.
type Cluster interface {
	poolattempt.Cluster
	// Relevant reports whether an operation still has anyone to serve: the same
	// BackendPool, not paused, holder of that pool, and its Service still there.
	// An operation that is not is dropped quietly.
	Relevant(op poolschedule.Operation) bool
}

// Members is what attempts ask of those who write machines, and how they are told of a pool's end.
type Members interface {
	poolattempt.Members
	// Forget drops a pool: nobody is made a member of it any more, or taken out of it.
	Forget(pool lb.PoolID)
}

// Lease is the lock that other controllers of the cluster's load balancers take, too.
// It is shared by all lanes; see lease.Shared.
type Lease interface {
	// Enter takes part in the lease for one pass. valid reports whether a write may
	// still start, and stays false once it was; leave has to be called once. An error
	// says, for people, why the pass has to wait: in the same words as long as it is
	// for the same reason.
	Enter(ctx context.Context) (valid func() bool, leave func(), err error)
}

// Reporter tells people what the lanes know.
type Reporter interface {
	// Report tells what became of an attempt. It is called once per attempt, under the
	// lane's lock, and never for operations that were dropped quietly.
	Report(ctx context.Context, r Report)
	// Wait tells that a change of a pool waits although no attempt failed since. It
	// is called once, and again only if the wait becomes much longer; the lane waits
	// for its return.
	Wait(w Waiting)
}

// Report is what became of one attempt to bring a pool level. It is one flat value, because status,
// events, ledger, log and metrics each take another part of it.
type Report struct {
	Ref     poolschedule.Ref
	Pool    lb.PoolID
	Outcome poolwrite.Outcome
	// Fault is set for every outcome that is a failure.
	Fault *fault.Fault
	// Retrying, Failed and Updated are the Services to be told so, each once.
	Retrying, Failed, Updated []poolschedule.ServiceName
	// GivenUpFor is what the last change is given up for, class and code; empty if it is not.
	// Whoever tells the next process has it repeat no word (see Operation.Told).
	GivenUpFor string
	// Admin is true if nothing but a change of admin states caused the attempt: it costs no
	// budget, and what it took along is as before unless Settled.
	Admin bool
	// AdminTried is true if a change of admin states caused the attempt, or was settled by it.
	AdminTried bool
	// AdminFailed is true when a change of admin states could not be applied for the first
	// time, and AdminDone when it is. AdminSince is when the oldest change was seen that
	// this speaks of, AdminRetryAt when it is tried again; zero if it is not.
	AdminFailed, AdminDone   bool
	AdminSince, AdminRetryAt time.Time
	// Downed are the addresses that are Down from now on, and Restored those that are not
	// any more and have stayed in the pool.
	Downed, Restored []netip.Addr
	// Contested are the addresses that somebody else keeps taking out of the pool, or whose
	// admin states he keeps setting back, after Weir has written them. They are written all
	// the same.
	Contested []netip.Addr
	// Written are the addresses that are ours from now on, and Down those of them that
	// are Down by us. They are meant for the ledger if Settled.
	Written, Down []netip.Addr
	// Instances are the addresses of those of Written that instances of uniform scale sets have, by machine.
	Instances map[string]netip.Addr
	// Unusable are nodes that belong in the pool and whose machine cannot join it. Desired leaves them out.
	Unusable []poolwrite.Unusable
	// MayLand is true if a write whose answer was lost may land yet, for writing the pool once
	// more left its etag as it was: Written and Down hold what it would bring, too.
	MayLand bool
	// Overtaken is true if somebody else wrote between the read and the write of the attempt,
	// which has read and written a second time for it.
	Overtaken bool
	// Settled is true when the pool is known to be level.
	Settled bool
	// States is true when a pool of network interfaces, which is Refused, is known to have
	// the admin states that it has to: Down is meant for the ledger, then.
	States bool
	// Requeued is true when another attempt follows for the membership without a new
	// change.
	Requeued bool
	// Observed and Desired count addresses; Observed includes foreign ones and is
	// -1 if the pool was not read.
	Desired, Observed, Foreign int
	// Differs is how the pool differed when the attempt read it; nil if it did not come so far, or
	// is Settled.
	Differs *poolwrite.Differs
	// RetriesUsed is the highest count among the operations, of Budget allowed.
	RetriesUsed, Budget int
	// NextEligibleAt is before when Azure wants no call for the pool, whether or not
	// another attempt follows; zero if any time is right.
	NextEligibleAt time.Time
	// RetryAt is when the next attempt is due, if it was requeued; never before
	// NextEligibleAt or At.
	RetryAt time.Time
	// LookAt is when the pool is looked at next though nothing changes; zero is never.
	LookAt time.Time
	// Drift is true if nothing but the time to look again caused the attempt.
	Drift bool
	// ChangedAt is when the oldest change that the attempt carried was seen, zero if
	// there was none; At is when the attempt ended.
	ChangedAt, At time.Time
	// Took is how long the attempt lasted.
	Took time.Duration
}
