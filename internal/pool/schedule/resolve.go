// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"time"

	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/ratelimit"
)

// Notification is a notification of a Service.
type Notification string

// The notifications.
const (
	notifyNone     Notification = ""
	NotifyUpdated  Notification = "Updated"
	NotifyRetrying Notification = "Retrying"
	NotifyFailed   Notification = "Failed"
)

// Notifications is each Service's last notification. It is usually one: a map would take ten times the memory.
type Notifications []lastNotification

type lastNotification struct {
	service ServiceName
	is      Notification
}

// Of returns the last notification of a Service.
func (n Notifications) Of(s ServiceName) Notification {
	for _, last := range n {
		if last.service == s {
			return last.is
		}
	}
	return notifyNone
}

// With replaces the last notification of a Service.
func (n Notifications) With(s ServiceName, notification Notification) Notifications {
	n = slices.DeleteFunc(n, func(last lastNotification) bool { return last.service == s })
	return append(n, lastNotification{s, notification})
}

type resultAction struct {
	requeue      bool // requeue
	consumeRetry bool // consume a retry
	backOff      bool // delay by the operation's own backoff
	notify       Notification
}

// actionSet has the action for each kind of operation. givenUp is for operations without a change after giving up, extra
// for those that were not due.
type actionSet struct{ retriesLeft, noRetries, givenUp, admin, extra resultAction }

var (
	updated = resultAction{notify: NotifyUpdated}
	giveUp  = resultAction{notify: NotifyFailed}
	repeat  = resultAction{requeue: true}
	retry   = resultAction{requeue: true, consumeRetry: true, notify: NotifyRetrying}
	delay   = resultAction{requeue: true, backOff: true}

	// actionTable alone decides what happens to operations.
	actionTable = map[diff.Outcome]actionSet{
		diff.Written:   {retriesLeft: updated, noRetries: updated, givenUp: updated, extra: updated},
		diff.Unchanged: {},
		diff.Stale:     {},
		diff.Retriable: {retriesLeft: retry, noRetries: giveUp, givenUp: giveUp, admin: delay, extra: repeat},
		diff.Terminal:  {retriesLeft: giveUp, noRetries: giveUp, givenUp: giveUp, admin: delay, extra: repeat},
		diff.Rejected:  {},
		diff.Postponed: {retriesLeft: repeat, noRetries: repeat, givenUp: repeat, admin: repeat, extra: repeat},
		diff.Shutdown:  {},
	}
)

// PoolStatus is the state of a pool before an attempt is settled.
type PoolStatus struct {
	LastNotifications        Notifications
	HasFinalError, SameError bool
	OnlyAdminStates          bool          // only admin states were written
	Now                      time.Time     // end of the attempt
	MaxBackoff               time.Duration // maximum backoff
}

// Result is the result for a pool's operations.
type Result struct {
	Requeue                []Operation
	Notifications          map[Notification][]ServiceName
	RetriesUsed            int
	AdminFailed, AdminDone bool
	AdminSince             time.Time
}

// ResolveOperations applies the table and decides the notifications. ofMembers, if not empty, replaces outcome for
// operations of the membership. An unchanged pool, an admin operation, and a process's first check that wrote only admin
// states notify only after Retrying or Failed. A resync repeats no error.
func ResolveOperations(outcome, ofMembers diff.Outcome, retryAt time.Time, ops []Operation, maxRetries int, past PoolStatus) Result {
	v := Result{Notifications: map[Notification][]ServiceName{}}
	var gaveUp []ServiceName // by checks
	for _, op := range ops {
		outcome := outcome
		if ofMembers != "" && !op.Admin && outcome != diff.Postponed {
			outcome = ofMembers
		}
		d, isMemberCheck := past.findAction(outcome, op, maxRetries), op.IsCheck() && !op.Admin
		if op.Admin {
			v.resolveAdmin(outcome, d, &op, past)
		}
		if d.consumeRetry {
			op.Resync = false
			op.RetryCount++
			op.NextEligibleAt = retryAt
		}
		v.RetriesUsed = max(v.RetriesUsed, op.RetryCount)
		if d.requeue {
			op.Extra = false
			v.Requeue = append(v.Requeue, op)
		}
		if isMemberCheck && d.notify == NotifyFailed {
			gaveUp = append(gaveUp, op.Service)
			continue
		}
		v.addNotification(d.notify, op.Service)
	}
	for _, s := range gaveUp {
		if !slices.ContainsFunc(v.Requeue, Operation.IsMember) { // a check gives up nothing while a change is retried
			v.addNotification(NotifyFailed, s)
		}
	}
	v.preferRetrying()
	return v
}

func (r *Result) preferRetrying() {
	for _, op := range r.Requeue {
		if at := slices.Index(r.Notifications[NotifyFailed], op.Service); at >= 0 && op.IsMember() {
			r.Notifications[NotifyFailed] = slices.Delete(r.Notifications[NotifyFailed], at, at+1)
			r.addNotification(NotifyRetrying, op.Service)
		}
	}
}

func (p PoolStatus) findAction(outcome diff.Outcome, op Operation, maxRetries int) resultAction {
	row := actionTable[outcome]
	d := row.retriesLeft
	switch {
	case op.Extra:
		d = row.extra
	case op.Admin:
		d = row.admin
	case op.IsCheck() && p.HasFinalError:
		d = row.givenUp
		if p.SameError && d.notify == NotifyFailed {
			d.notify = notifyNone
		}
	case op.RetryCount >= maxRetries:
		d = row.noRetries
	}
	if op.Admin || op.IsCheck() && !op.Resync && p.OnlyAdminStates && outcome == diff.Written {
		d.notify = notifyNone
	}
	last := p.LastNotifications.Of(op.Service)
	if hasFailed := last == NotifyRetrying || last == NotifyFailed; hasFailed && (outcome == diff.Unchanged || outcome == diff.Written) {
		d.notify = NotifyUpdated
	}
	return d
}

func (r *Result) resolveAdmin(outcome diff.Outcome, d resultAction, op *Operation, past PoolStatus) {
	r.AdminSince = op.ChangedAt
	r.AdminDone = outcome == diff.Written || outcome == diff.Unchanged
	if d.backOff {
		op.FailedAttempts++
		op.retryAt = past.Now.Add(ratelimit.Exponential{Initial: time.Second, Max: past.MaxBackoff}.DelayAfter(op.FailedAttempts))
		r.AdminFailed = op.FailedAttempts == 1
	}
}

func (r *Result) addNotification(w Notification, to ServiceName) {
	if w != notifyNone && to != (ServiceName{}) && !slices.Contains(r.Notifications[w], to) {
		r.Notifications[w] = append(r.Notifications[w], to)
	}
}
