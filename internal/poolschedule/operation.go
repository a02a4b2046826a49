// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"time"

	"weir.dev/weir/internal/lb"
)

// Ref names one BackendPool object. The UID tells it from a later one of its name.
type Ref struct {
	Namespace, Name, UID string
}

// ServiceName names a Kubernetes Service; the zero value is no Service.
type ServiceName struct {
	Namespace, Name string
}

// Operation says that a pool's membership has to be applied, or its admin states. Either
// applies both. It is one value, for it is copied, compared and taken back whole; what comes after
// New is the lane's own, zero in what is added.
type Operation struct {
	Ref  Ref
	Pool lb.PoolID
	// Service is whom the outcome is told to, by an event; zero for a pool of
	// nodes and for the removal of what a gone Service left behind.
	Service ServiceName
	// ChangedAt is when the change that this operation stands for was seen; zero if
	// nothing is known to have changed, and the pool just has to be looked at.
	ChangedAt time.Time
	// NotBefore is a Retry-After that an earlier process met: no call for the pool
	// before it. Zero is none.
	NotBefore time.Time
	// Told is what people have heard of the pool from an earlier process; it counts if this
	// one has said nothing yet.
	Told Told
	// Admin is true for a change of admin states. It goes ahead of all others and is tried
	// without end; of it events of pools do not speak.
	Admin bool
	// Stake is what its change is about, as far as that is known; of two pools the one that loses
	// more while it waits goes first.
	Stake Stake
	// Differs is true of one without a known change if what is on record of the pool is another
	// membership: a change came while nobody looked.
	Differs bool
	// Exempt is true of a change that never waits for the share of its namespace.
	Exempt bool
	// New is true if the pool has just been made, and holds nothing of Weir's: it is filled
	// at once, and waits for neither company nor pace.
	New bool

	// Drift marks a look whether the pool still holds what it has to: no change stands
	// behind it, so it costs no budget, and nobody is told what he knows already.
	Drift bool
	// RetryCount is how many retriable failures the operation has consumed.
	RetryCount int
	// NextEligibleAt is what a Retry-After asked for: no call before it.
	NextEligibleAt time.Time
	// Tries counts the failed attempts of an admin operation, and againAt is when the next
	// is due.
	Tries   int
	againAt time.Time
	// Carried is true while an attempt takes the operation along that it is not due for.
	Carried bool
	// absorbed counts the later changes that it stands for, too.
	absorbed int
	// QueuedAt is when the operation, or the first it stands for, was added.
	QueuedAt time.Time
}

// fresh reports whether the operation is a change of the membership that has not failed yet.
func (o Operation) fresh() bool { return !o.Drift && !o.Admin && o.RetryCount == 0 }

// Member reports whether the operation is one of the membership.
func (o Operation) Member() bool { return !o.Admin }

// Looks reports whether no change is known to stand behind the operation.
func (o Operation) Looks() bool { return o.Drift || o.ChangedAt.IsZero() }

// Subject is whom operations of a pool are for: what is kept of the newest one.
type Subject struct {
	Ref     Ref
	Pool    lb.PoolID
	Service ServiceName
}

// Subject returns whom the operation is for.
func (o Operation) Subject() Subject { return Subject{o.Ref, o.Pool, o.Service} }

// AsDrift returns the look for drift on behalf of the subject.
func (s Subject) AsDrift(now time.Time) Operation {
	return Operation{Ref: s.Ref, Pool: s.Pool, Service: s.Service, Drift: true, QueuedAt: now}
}

// covers reports whether an operation of the same pool already says what p says:
// for the same object and Service, with no retry consumed. One that has consumed
// retries keeps its own counter beside a fresh one.
func (o Operation) covers(p Operation) bool {
	return o.fresh() && p.fresh() && o.Ref == p.Ref && o.Service == p.Service
}

// absorb has an admin operation stand for an older one of its pool as well. A flapping taint
// is no way around the back-off.
func (o Operation) absorb(older Operation) Operation {
	if o.Ref == older.Ref {
		o.QueuedAt, o.ChangedAt = older.QueuedAt, Earlier(older.ChangedAt, o.ChangedAt)
		o.Tries, o.againAt = older.Tries, older.againAt
	}
	return o
}

// Told is what people have heard of a pool, as far as it decides what they hear next. Its
// zero value is nothing, or that all is well.
type Told struct {
	// Failure is true if the last word was Retrying or Failed: once the pool is level,
	// somebody waits to hear so.
	Failure bool
	// GivenUpFor is what the last change was given up for; empty if it was not. See Report.
	GivenUpFor string
}

// Afresh returns the operation without our own waiting, and with all of its retries left. What Azure has asked for
// stays, and so does how far an admin operation has backed off: its next wait is as long as ever.
func (o Operation) Afresh() Operation {
	o.RetryCount, o.againAt = 0, time.Time{}
	return o
}

// AsFill returns the operation that fills the pool, which has lost its members, on behalf of
// the subject.
func (s Subject) AsFill(now time.Time) Operation {
	return Operation{Ref: s.Ref, Pool: s.Pool, Service: s.Service, ChangedAt: now, New: true, QueuedAt: now}
}
