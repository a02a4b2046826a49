// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/lb"
)

// Ref identifies a BackendPool object.
type Ref struct {
	Namespace, Name, UID string
}

// ServiceName is zero for none.
type ServiceName struct {
	Namespace, Name string
}

// Operation requests that a pool get in sync: its membership, or its admin states if Admin. Either
// applies both. The fields after New belong to the worker.
type Operation struct {
	Ref  Ref
	Pool lb.PoolID
	// Service is notified of the outcome; zero for pools of nodes and for cleanups.
	Service ServiceName
	// ChangedAt is when the change was seen; zero for a check.
	ChangedAt time.Time
	// NotBefore is a Retry-After from an earlier process, or zero.
	NotBefore time.Time
	// Told is the last notification by an earlier process.
	Told Told
	// Admin operations go first, are retried without limit, and emit no pool events.
	Admin bool
	// Stake orders pools by what they lose while waiting.
	Stake Stake
	// Differs is true if the record differs although no change was seen: it happened while Weir was
	// not running.
	Differs bool
	// Exempt changes ignore the namespace's share.
	Exempt bool
	// New pools are empty: they are filled without debouncing or pace.
	New bool

	// Drift marks a resync. It consumes no retries.
	Drift bool
	// RetryCount counts consumed retries.
	RetryCount int
	// NextEligibleAt is a Retry-After.
	NextEligibleAt time.Time
	// Tries counts failures of an admin operation.
	Tries   int
	againAt time.Time
	// Carried is true if an attempt included the operation before it was due.
	Carried bool
	// absorbed counts coalesced changes.
	absorbed int
	// QueuedAt is that of the oldest coalesced operation.
	QueuedAt time.Time
}

func (o Operation) fresh() bool { return !o.Drift && !o.Admin && o.RetryCount == 0 }

// Member reports whether it is for the membership.
func (o Operation) Member() bool { return !o.Admin }

// Looks reports whether no change is known.
func (o Operation) Looks() bool { return o.Drift || o.ChangedAt.IsZero() }

// Subject is the target of operations.
type Subject struct {
	Ref     Ref
	Pool    lb.PoolID
	Service ServiceName
}

// Subject returns the target.
func (o Operation) Subject() Subject { return Subject{o.Ref, o.Pool, o.Service} }

// AsDrift returns a resync.
func (s Subject) AsDrift(now time.Time) Operation {
	return Operation{Ref: s.Ref, Pool: s.Pool, Service: s.Service, Drift: true, QueuedAt: now}
}

// covers reports whether p adds nothing to o. Operations with consumed retries keep their own
// counter.
func (o Operation) covers(p Operation) bool {
	return o.fresh() && p.fresh() && o.Ref == p.Ref && o.Service == p.Service
}

// absorb merges an older admin operation, and keeps its backoff: a flapping taint must not bypass
// it.
func (o Operation) absorb(older Operation) Operation {
	if o.Ref == older.Ref {
		o.QueuedAt, o.ChangedAt = older.QueuedAt, Earlier(older.ChangedAt, o.ChangedAt)
		o.Tries, o.againAt = older.Tries, older.againAt
	}
	return o
}

// Told is a pool's last notification, as far as it affects the next one. Zero is none, or success.
type Told struct {
	// Failure is true after Retrying or Failed.
	Failure bool
	// GivenUpFor is the error for which the last change was given up, or empty.
	GivenUpFor string
}

// Afresh removes Weir's own delays and restores all retries. It keeps Retry-After, and an admin
// operation's backoff.
func (o Operation) Afresh() Operation {
	o.RetryCount, o.againAt = 0, time.Time{}
	return o
}

// AsFill returns the operation that fills a recreated pool.
func (s Subject) AsFill(now time.Time) Operation {
	return Operation{Ref: s.Ref, Pool: s.Pool, Service: s.Service, ChangedAt: now, New: true, QueuedAt: now}
}
