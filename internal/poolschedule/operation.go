// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/lb"
)

// Ref identifies a BackendPool. UID distinguishes a recreated object.
type Ref struct {
	Namespace, Name, UID string
}

// ServiceName names a Kubernetes Service; the zero value is none.
type ServiceName struct {
	Namespace, Name string
}

// Operation requests that a pool's membership and admin states be applied; either kind applies
// both. It is one flat value because it is copied, compared and requeued as a whole. Fields after
// New belong to the worker and are zero when added.
type Operation struct {
	Ref  Ref
	Pool lb.PoolID
	// Service receives events about the outcome; zero for a pool of nodes and for the cleanup after
	// a deleted Service.
	Service ServiceName
	// ChangedAt is when the change was seen; zero for a check without a known change.
	ChangedAt time.Time
	// NotBefore is a Retry-After received by an earlier process. Zero is none.
	NotBefore time.Time
	// Told is the last notification from an earlier process; used until this process sends one.
	Told Told
	// Admin is true for an admin state change. It goes first, is retried without limit and emits no
	// pool events.
	Admin bool
	// Stake is the traffic impact of the change, as far as known; the pool that loses more while
	// waiting goes first.
	Stake Stake
	// Differs is true for an operation without a known change if the recorded membership differs: a
	// change happened while no process was watching.
	Differs bool
	// Exempt is true if the change is exempt from its namespace's share.
	Exempt bool
	// New is true if the pool was just created and is empty: it is filled at once, without
	// debouncing or pace.
	New bool

	// Drift marks a drift check: it has no change, consumes no retries and repeats no notification.
	Drift bool
	// RetryCount is the number of retries consumed.
	RetryCount int
	// NextEligibleAt is the time before which Azure must not be called (Retry-After).
	NextEligibleAt time.Time
	// Tries is the number of failed attempts of an admin operation; againAt is when the next is
	// due.
	Tries   int
	againAt time.Time
	// Carried is true during an attempt if the operation was included without being due.
	Carried bool
	// absorbed is the number of later changes coalesced into this one.
	absorbed int
	// QueuedAt is when the operation, or the first one coalesced into it, was added.
	QueuedAt time.Time
}

// fresh reports whether the operation is a membership change that has not failed.
func (o Operation) fresh() bool { return !o.Drift && !o.Admin && o.RetryCount == 0 }

// Member reports whether the operation is for the membership.
func (o Operation) Member() bool { return !o.Admin }

// Looks reports whether the operation has no known change.
func (o Operation) Looks() bool { return o.Drift || o.ChangedAt.IsZero() }

// Subject is the target of a pool's operations, taken from the newest one.
type Subject struct {
	Ref     Ref
	Pool    lb.PoolID
	Service ServiceName
}

// Subject returns the operation's target.
func (o Operation) Subject() Subject { return Subject{o.Ref, o.Pool, o.Service} }

// AsDrift returns a drift check of the subject.
func (s Subject) AsDrift(now time.Time) Operation {
	return Operation{Ref: s.Ref, Pool: s.Pool, Service: s.Service, Drift: true, QueuedAt: now}
}

// covers reports whether p adds nothing to o: same object and Service, no retries consumed. An
// operation with retries keeps its own counter.
func (o Operation) covers(p Operation) bool {
	return o.fresh() && p.fresh() && o.Ref == p.Ref && o.Service == p.Service
}

// absorb merges an older admin operation of the pool. It keeps the backoff, so that a flapping
// taint cannot bypass it.
func (o Operation) absorb(older Operation) Operation {
	if o.Ref == older.Ref {
		o.QueuedAt, o.ChangedAt = older.QueuedAt, Earlier(older.ChangedAt, o.ChangedAt)
		o.Tries, o.againAt = older.Tries, older.againAt
	}
	return o
}

// Told is the last notification about a pool, as far as it affects the next one. The zero value
// means none, or in sync.
type Told struct {
	// Failure is true after Retrying or Failed: success has to be reported.
	Failure bool
	// GivenUpFor is the error for which the last change was given up, or empty. See Report.
	GivenUpFor string
}

// Afresh returns the operation without Weir's own delays and with all retries left. It keeps
// Retry-After, and the backoff step of an admin operation.
func (o Operation) Afresh() Operation {
	o.RetryCount, o.againAt = 0, time.Time{}
	return o
}

// AsFill returns the operation that fills the subject's pool after it lost its members.
func (s Subject) AsFill(now time.Time) Operation {
	return Operation{Ref: s.Ref, Pool: s.Pool, Service: s.Service, ChangedAt: now, New: true, QueuedAt: now}
}
