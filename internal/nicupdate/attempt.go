// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/poolschedule"
)

type result struct {
	// plan is the desired state; readAt is when the state it was compared with was read.
	plan   *plan
	readAt time.Time
	// of holds results by machine key; missing machines are still working.
	of map[string]verdict
	// level is true if the scale set model is in sync.
	level bool
	// again requests another attempt at once.
	again bool
	// until is when to request admission again; blocksAll applies it to all workers.
	until     time.Time
	why       string
	everybody bool
	writes    bool
	// notBefore is the Retry-After time from Azure.
	notBefore time.Time
}

type verdict struct {
	state state
	why   string
	// unusable is true for a waiting machine that cannot join.
	unusable bool
	err      error
}

var (
	verdictDone    = verdict{state: done}
	verdictWorking = verdict{state: working}
)

const whyLease = "the resource lease is lost, or ends before a write would"

// try is a running attempt, with a snapshot of its worker.
type try struct {
	u *Updater
	result
	lane  *lane
	id    lb.ResourceID
	how   reading
	start time.Time
	// machines are those named by pools. Pending ones are working or waiting; failed ones were not
	// requested again.
	machines        map[string]nic.Machine
	pending, failed map[string]bool
	// valid reports whether a write may still start.
	valid func() bool
}

func (u *Updater) attempt(ctx context.Context, l *lane, mode reading) result {
	t := u.begin(l, mode)
	if u.cfg.Lease != nil {
		valid, release, err := u.cfg.Lease.Enter(ctx)
		if err != nil {
			t.until, t.why, t.everybody = time.Now().Add(leaseAgain), err.Error(), true
			return t.result
		}
		defer release()
		t.valid = valid
	}
	within, cancel := context.WithTimeout(ctx, attemptLasts)
	defer cancel()
	if l.group == "" {
		t.scaleSet(within)
	} else {
		for _, m := range t.machines {
			t.machine(within, m)
		}
	}
	return t.result
}

func (u *Updater) begin(l *lane, mode reading) *try {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.begun(l, mode)
}

// begun requires u.mu.
func (u *Updater) begun(l *lane, mode reading) *try {
	now := time.Now()
	t := &try{
		u: u, lane: l, id: l.id, how: mode, start: now, result: result{plan: u.plan, readAt: now, of: map[string]verdict{}},
		machines: map[string]nic.Machine{}, pending: map[string]bool{}, failed: map[string]bool{}, valid: func() bool { return true },
	}
	for key, m := range l.machines {
		t.machines[key] = m.Machine
		t.pending[key], t.failed[key] = m.state == working || m.state == waiting, m.state == failing
	}
	return t
}

// endedFor returns working if the request was never sent: then the worker waits.
func (t *try) endedFor(m nic.Machine, err error) verdict {
	f := fault.From(err)
	t.readAt, t.notBefore = poolschedule.Later(t.readAt, t.start), poolschedule.Later(t.notBefore, f.RetryAt)
	switch {
	case f.Class == fault.Stale:
		return t.gone(m)
	case f.Unsent():
		t.blocked(f.RetryAt, f.Error())
		return verdictWorking
	}
	return verdict{state: failing, err: err}
}

// gone returns the result for a missing machine, which is in no pool.
func (t *try) gone(m nic.Machine) verdict {
	if p := t.plan.desired.Machine(m); len(p[lb.IPv4])+len(p[lb.IPv6]) > 0 {
		return verdict{state: waiting, why: "Azure has no " + m.String(), unusable: true}
	}
	return verdictDone
}

func (t *try) ended(err error) {
	for key, m := range t.machines {
		if t.pending[key] {
			if v := t.endedFor(m, err); v != verdictWorking {
				t.of[key] = v
			}
		}
	}
}

func (t *try) blocked(until time.Time, reason string) {
	if now := time.Now(); !until.After(now) {
		until = now.Add(leaseAgain)
	}
	t.until, t.why = until, reason
}

// mayWrite checks the lease again, because reads take time.
func (t *try) mayWrite() bool {
	if !t.valid() {
		t.blocked(time.Time{}, whyLease)
		return false
	}
	return true
}

// met reports whether the resource changed after it was read, and Azure sent no Retry-After.
func met(err error) bool {
	f := fault.From(err)
	return f.Overtaken() && f.RetryAt.IsZero()
}

// notShown is the fault of a write that Azure accepted but does not show.
func notShown(what string) error {
	return &fault.Fault{
		Class: fault.Retriable, Code: "NotShown", Reason: "not_shown",
		Err: fmt.Errorf("%s: %w", what, errNotShown),
	}
}

var errNotShown = errors.New("Azure has taken what was written, and does not show it")
