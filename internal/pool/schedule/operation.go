// SPDX-License-Identifier: Apache-2.0

// Package schedule decides when and in which order pools are attempted, and what happens to their operations
// afterwards. Operation is the work for a pool, History what is known of it, and Group its operations as scheduled.
package schedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// Ref identifies a BackendPool object.
type Ref struct {
	Namespace, Name, UID string
}

// ServiceName is zero for none.
type ServiceName struct {
	Namespace, Name string
}

// Operation requests that a pool get in sync, its membership or its admin states; either applies both. The fields after
// New belong to the worker.
type Operation struct {
	Ref     Ref
	Pool    lb.PoolID
	Service ServiceName
	// ChangedAt is when the change was seen; zero for a check.
	ChangedAt        time.Time
	NotBefore        time.Time
	LastNotification LastNotification
	// Admin operations go first, are retried without limit, and emit no pool events.
	Admin  bool
	Impact Impact
	// OutOfSync is true if the record differs: the change happened while Weir was not running.
	OutOfSync bool
	// Exempt changes ignore the namespace's share.
	Exempt bool
	// FillsPool is true for a new pool, which is empty: it is filled without debouncing or pace.
	FillsPool bool

	Resync         bool
	RetryCount     int
	NextEligibleAt time.Time
	FailedAttempts int
	retryAt        time.Time
	// Extra is true if an attempt included the operation before it was due.
	Extra      bool
	mergeCount int
	QueuedAt   time.Time
}

func (o Operation) isFirstAttempt() bool { return !o.Resync && !o.Admin && o.RetryCount == 0 }

// IsMember reports whether it is for the membership.
func (o Operation) IsMember() bool { return !o.Admin }

// IsCheck reports whether no change is known.
func (o Operation) IsCheck() bool { return o.Resync || o.ChangedAt.IsZero() }

// Subject is the target of operations.
type Subject struct {
	Ref     Ref
	Pool    lb.PoolID
	Service ServiceName
}

// Subject returns the target.
func (o Operation) Subject() Subject { return Subject{o.Ref, o.Pool, o.Service} }

// NewResync returns a resync.
func (s Subject) NewResync(now time.Time) Operation {
	return Operation{Ref: s.Ref, Pool: s.Pool, Service: s.Service, Resync: true, QueuedAt: now}
}

// covers reports whether it replaces an older one. Operations with consumed retries keep their own counter.
func (o Operation) covers(older Operation) bool {
	if o.Admin || older.Admin {
		return o.Admin && older.Admin
	}
	return older.isFirstAttempt() && o.isFirstAttempt() && o.Ref == older.Ref && (older.Service == o.Service || older.Service == ServiceName{})
}

// mergeInto keeps the older backoff: a flapping taint must not bypass it.
func (o Operation) mergeInto(older Operation) Operation {
	if o.Ref == older.Ref {
		o.QueuedAt, o.ChangedAt = older.QueuedAt, ratelimit.MinTime(older.ChangedAt, o.ChangedAt)
		o.FailedAttempts, o.retryAt = older.FailedAttempts, older.retryAt
	}
	return o
}

// LastNotification is a pool's last notification, as far as it affects the next one. Zero is none, or success.
type LastNotification struct {
	IsFailure bool
	// FailureReason is the error for which the last change was given up, or empty.
	FailureReason string
}

// ResetRetries removes Weir's own delays. It keeps Retry-After, and an admin operation's backoff.
func (o Operation) ResetRetries() Operation {
	o.RetryCount, o.retryAt = 0, time.Time{}
	return o
}

// NewFill returns the operation that fills a recreated pool.
func (s Subject) NewFill(now time.Time) Operation {
	return Operation{Ref: s.Ref, Pool: s.Pool, Service: s.Service, ChangedAt: now, FillsPool: true, QueuedAt: now}
}

// MergeOperations appends operations, or replaces older ones. One with a Service also replaces one without.
func MergeOperations(older []Operation, newer ...Operation) []Operation {
	for _, op := range newer {
		at := slices.IndexFunc(older, op.covers)
		switch {
		case at < 0:
			older = append(older, op)
		case op.Admin:
			older[at] = op.mergeInto(older[at])
		default:
			o := older[at]
			op.QueuedAt, op.ChangedAt, op.NextEligibleAt = o.QueuedAt, ratelimit.MinTime(o.ChangedAt, op.ChangedAt), ratelimit.MaxTime(o.NextEligibleAt, op.NextEligibleAt)
			op.FillsPool, op.OutOfSync, op.Exempt = op.FillsPool || o.FillsPool, op.OutOfSync || o.OutOfSync, op.Exempt || o.Exempt
			op.mergeCount += 1 + o.mergeCount
			older[at] = op
		}
	}
	return older
}

// Cause is what caused an attempt. Operations that were not due count once they are settled.
type Cause struct {
	Member, Admin bool
	hasChange     bool
}

// CauseOf returns the cause of an attempt at these operations.
func CauseOf(ops []Operation, settled bool) Cause {
	var c Cause
	for _, op := range ops {
		if op.Extra && !settled {
			continue
		}
		c.hasChange = c.hasChange || op.IsMember() && (!op.IsCheck() || op.OutOfSync)
		c.Admin = c.Admin || op.Admin
		c.Member = c.Member || op.IsMember() && !op.Extra
	}
	return c
}

// OldestChange returns when the oldest membership change was seen.
func OldestChange(ops []Operation) time.Time {
	var oldest time.Time
	for _, op := range ops {
		if op.IsMember() {
			oldest = ratelimit.MinTime(oldest, op.ChangedAt)
		}
	}
	return oldest
}
