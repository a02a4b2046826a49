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

// result is what an attempt at a lane has come to.
type result struct {
	// plan is what was wanted, and readAt when what it was compared with was read.
	plan   *plan
	readAt time.Time
	// of says it of machines; those that are not in it are still under way.
	of map[string]verdict
	// level is true if the model of the scale set is as it has to be.
	level bool
	// again is true if the lane has more to do at once.
	again bool
	// until is when leave to work is asked for again, and why what closed it; everybody is true if
	// that is so for all lanes.
	until     time.Time
	why       string
	everybody bool
	// writes is true if something was sent that writes.
	writes bool
	// notBefore is a time that Azure has named.
	notBefore time.Time
}

// verdict is what has become of a machine.
type verdict struct {
	state state
	why   string
	// unusable is true of a machine that is waited for and cannot join as it is.
	unusable bool
	err      error
}

var (
	verdictDone    = verdict{state: done}
	verdictWorking = verdict{state: working}
)

const whyLease = "the resource lease is lost, or ends before a write would"

// try is an attempt under way. What it knows of the lane is from its start.
type try struct {
	u *Updater
	result
	lane  *lane
	id    lb.ResourceID
	how   reading
	start time.Time
	// machines are those that pools name, by key: pending are under way or waited for, and failed has
	// nobody asked for again.
	machines        map[string]nic.Machine
	pending, failed map[string]bool
	// valid reports whether a write may still start.
	valid func() bool
}

// attempt brings a lane's resource level, as far as one attempt does.
func (u *Updater) attempt(ctx context.Context, l *lane, how reading) result {
	t := u.begin(l, how)
	if u.cfg.Lease != nil {
		valid, leave, err := u.cfg.Lease.Enter(ctx)
		if err != nil {
			t.until, t.why, t.everybody = time.Now().Add(leaseAgain), err.Error(), true
			return t.result
		}
		defer leave()
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

func (u *Updater) begin(l *lane, how reading) *try {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.begun(l, how)
}

// begun is begin for who holds u.mu.
func (u *Updater) begun(l *lane, how reading) *try {
	now := time.Now()
	t := &try{
		u: u, lane: l, id: l.id, how: how, start: now, result: result{plan: u.plan, readAt: now, of: map[string]verdict{}},
		machines: map[string]nic.Machine{}, pending: map[string]bool{}, failed: map[string]bool{}, valid: func() bool { return true },
	}
	for key, m := range l.machines {
		t.machines[key] = m.Machine
		t.pending[key], t.failed[key] = m.state == working || m.state == waiting, m.state == failing
	}
	return t
}

// endedFor returns the verdict of a request about a machine that failed. It is working if the request
// never left: then the lane waits.
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

// gone returns the verdict of a machine that is not there: it has left whatever it had to leave.
func (t *try) gone(m nic.Machine) verdict {
	if p := t.plan.desired.Machine(m); len(p[lb.IPv4])+len(p[lb.IPv6]) > 0 {
		return verdict{state: waiting, why: "Azure has no " + m.String(), unusable: true}
	}
	return verdictDone
}

// ended is endedFor of all machines that are under way.
func (t *try) ended(err error) {
	for key, m := range t.machines {
		if t.pending[key] {
			if v := t.endedFor(m, err); v != verdictWorking {
				t.of[key] = v
			}
		}
	}
}

// blocked has the lane wait for leave to work.
func (t *try) blocked(until time.Time, why string) {
	if now := time.Now(); !until.After(now) {
		until = now.Add(leaseAgain)
	}
	t.until, t.why = until, why
}

// mayWrite asks once more, right before a write: reads have taken their time.
func (t *try) mayWrite() bool {
	if !t.valid() {
		t.blocked(time.Time{}, whyLease)
		return false
	}
	return true
}

// met reports whether a write was refused because somebody else has written since the read, and
// Azure has named no time.
func met(err error) bool {
	f := fault.From(err)
	return f.Overtaken() && f.RetryAt.IsZero()
}

// notShown is the fault of a write that Azure took, and does not show.
func notShown(what string) error {
	return &fault.Fault{
		Class: fault.Retriable, Code: "NotShown", Reason: "not_shown",
		Err: fmt.Errorf("%s: %w", what, errNotShown),
	}
}

var errNotShown = errors.New("Azure has taken what was written, and does not show it")
