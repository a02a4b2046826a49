// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// pass starts what is due, as much as may run side by side, and returns when something is due next
// though nothing happens; zero is never.
func (u *Updater) pass(ctx context.Context, start time.Time, run func(func())) time.Time {
	now := time.Now()
	if !u.complete(start, now) {
		return poolschedule.Earlier(start.Add(patience), now.Add(time.Second))
	}
	again := u.listSets(ctx, now, run)
	if u.changed(now) || len(u.due(now)) > 0 {
		u.newest() // which may find that nothing is to be done
	}
	due := u.due(now)
	for _, l := range due {
		if !u.free() {
			break
		}
		if how, may := u.may(l, due, now); may {
			run(func() { u.conclude(ctx, l, u.attempt(ctx, l, how)) })
		}
	}
	return poolschedule.Earlier(u.next(now), again)
}

// complete reports whether all pools were handed over that exist, or were waited for long enough since
// the start: what a machine is in for another pool of ours would look as if it had to go, or to stay
// though its machine moves. A pool that comes to be later is waited for by nobody, for it has no machines.
func (u *Updater) complete(start, now time.Time) bool {
	u.mu.Lock()
	over := u.handed == nil
	u.mu.Unlock()
	if over {
		return true
	}
	ids := u.cfg.Cluster.InterfacePools()
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		if !u.handed[id.Key()] && now.Sub(start) < patience {
			return false
		}
	}
	u.handed = nil
	return true
}

// changed reports whether a change of pools has been there for long enough to be looked at.
func (u *Updater) changed(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stale && !u.staleAt.After(now)
}

// at returns when a lane is due.
func (l *lane) at() time.Time { return poolschedule.Later(l.due, l.notBefore) }

// due returns the lanes that are due, the first to become so first.
func (u *Updater) due(now time.Time) []*lane {
	u.mu.Lock()
	defer u.mu.Unlock()
	var due []*lane
	for _, l := range u.busy {
		if !l.running && !l.due.IsZero() && !l.at().After(now) {
			due = append(due, l)
		}
	}
	slices.SortFunc(due, func(a, b *lane) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.key, b.key)) })
	return due
}

// next returns when the next lane becomes due.
func (u *Updater) next(now time.Time) (next time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stale {
		next = poolschedule.Later(u.staleAt, now)
	}
	for _, l := range u.busy {
		if at := l.at(); !l.running && !l.due.IsZero() && at.After(now) {
			next = poolschedule.Earlier(next, at)
		}
	}
	return next
}

// free reports whether one more resource may be worked on.
func (u *Updater) free() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.running < max(1, u.cfg.Parallel)
}

// reading is how a machine's interface is read.
type reading int

const (
	listed   reading = iota // a list for another machine has shown it
	alone                   // by itself
	together                // with all of its resource group
)

// may takes a lane for an attempt, if that may begin now. Otherwise the lane waits: for the gates, for
// the lease, or for the list of its resource group.
func (u *Updater) may(l *lane, due []*lane, now time.Time) (how reading, may bool) {
	u.mu.Lock()
	id, held, why := l.id, u.heldUntil, u.heldWhy
	behind := !l.listed && u.listing[l.group] != nil
	u.mu.Unlock()
	if behind {
		return 0, false
	}
	if held.After(now) {
		return 0, u.block(l, held, why)
	}
	if until, why := u.cfg.Azure.EnterResource(id); !until.IsZero() {
		return 0, u.block(l, until, why)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lanes[l.key] != l || l.due.IsZero() { // forgotten since
		return 0, false
	}
	switch {
	case l.group == "", l.listed:
	case l.found && !slices.ContainsFunc(due, func(o *lane) bool { return o != l && o.group == l.group && !o.running && !o.listed }):
		how = alone
	default:
		how = together
		u.listing[l.group] = l
	}
	u.running++
	l.running, l.due = true, time.Time{}
	if l.anew {
		l.anew, l.memory.tried, l.memory.overtaken = false, nil, false
	}
	for _, m := range l.machines {
		if m.blocked {
			m.blocked, m.why = false, ""
			u.becomes(m, working)
		}
		if m.state != done {
			m.was = ""
		}
	}
	return how, true
}

// block has a lane wait for leave to work. That is no failure, and if it takes a while people hear why.
func (u *Updater) block(l *lane, until time.Time, why string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lanes[l.key] == l { // not forgotten since
		u.blocks(l, until, why, time.Now())
	}
	return false
}

// blocks is block for who holds u.mu.
func (u *Updater) blocks(l *lane, until time.Time, why string, now time.Time) {
	until = poolschedule.Later(until, now.Add(10*time.Millisecond)) // it is asked again, but not at once
	l.due = until
	u.busy[l.key] = l
	for _, m := range l.machines {
		if m.state == working && why != "" && until.Sub(now) >= worthTelling || m.blocked {
			m.why, m.blocked, m.unusable = why, true, false
			u.becomes(m, waiting)
		}
	}
}

// conclude ends an attempt.
func (u *Updater) conclude(ctx context.Context, l *lane, r result) {
	u.mu.Lock()
	l.running = false
	u.running--
	if u.listing[l.group] == l {
		delete(u.listing, l.group)
	}
	if ctx.Err() == nil {
		u.settle(l, r, time.Now())
	}
	u.mu.Unlock()
	u.tell(ctx)
	u.signal()
}

// settle keeps what an attempt has found, and says when the lane is due next. The caller holds u.mu.
func (u *Updater) settle(l *lane, r result, now time.Time) {
	l.notBefore, l.lookedAt = r.notBefore, now
	if r.writes {
		l.wroteAt = now
	}
	if r.level {
		l.model = r.plan.modelOf(l)
	}
	for key, v := range r.of {
		if m := l.machines[key]; m != nil && m.want == r.plan.of(m.Machine) && !r.readAt.Before(m.asked) {
			m.judged(v)
			u.becomes(m, v.state)
		}
	}
	if r.everybody && r.until.After(u.heldUntil) {
		u.heldUntil, u.heldWhy = r.until, r.why
	}
	works, waits := false, false
	for _, m := range l.machines {
		works, waits = works || m.state == working, waits || m.state == waiting
		u.reap(m)
	}
	switch {
	case len(l.machines) == 0:
	case !r.until.IsZero():
		u.blocks(l, poolschedule.Later(r.until, l.due), r.why, now)
	case r.again:
		u.dueAt(l, now)
	case works:
		u.dueAt(l, now.Add(gather))
	case waits:
		l.waits++
		u.dueAt(l, now.Add(polls.After(l.waits)))
	default:
		l.waits = 0
	}
	u.rest(l)
}

// judged keeps a verdict.
func (m *machine) judged(v verdict) {
	m.look, m.blocked, m.why, m.unusable, m.err, m.told = false, false, v.why, v.unusable, v.err, nil
	switch v.state {
	case done:
		m.was = m.want
	case failing:
		m.told = map[lb.PoolKey]bool{}
	}
}
