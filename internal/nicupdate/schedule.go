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

// pass starts the due attempts within the limit and returns when the next one is due; zero means
// never.
func (u *Updater) pass(ctx context.Context, start time.Time, run func(func())) time.Time {
	now := time.Now()
	if !u.complete(start, now) {
		return poolschedule.Earlier(start.Add(patience), now.Add(time.Second))
	}
	again := u.listSets(ctx, now, run)
	if u.changed(now) || len(u.due(now)) > 0 {
		u.newest() // may find that there is nothing to do
	}
	due := u.due(now)
	for _, l := range due {
		if !u.free() {
			break
		}
		if mode, allowed := u.may(l, due, now); allowed {
			run(func() { u.conclude(ctx, l, u.attempt(ctx, l, mode)) })
		}
	}
	return poolschedule.Earlier(u.next(now), again)
}

// complete reports whether all existing pools have a target, or the startup wait is over. Without
// all targets, membership of another managed pool would look like something to remove. Newer pools
// have no members yet.
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

func (u *Updater) changed(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stale && !u.staleAt.After(now)
}

func (l *lane) at() time.Time { return poolschedule.Later(l.due, l.notBefore) }

// due returns the earliest first.
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

func (u *Updater) free() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.running < max(1, u.cfg.Parallel)
}

type reading int

const (
	listed   reading = iota // from a list read for another machine
	alone                   // by its own request
	together                // with its whole resource group
)

// may returns false if the worker waits for the throttle gate, the lease, or a running list of its
// resource group.
func (u *Updater) may(l *lane, due []*lane, now time.Time) (mode reading, allowed bool) {
	u.mu.Lock()
	id, held, reason := l.id, u.heldUntil, u.heldWhy
	behind := !l.listed && u.listing[l.group] != nil
	u.mu.Unlock()
	if behind {
		return 0, false
	}
	if held.After(now) {
		return 0, u.block(l, held, reason)
	}
	if until, reason := u.cfg.Azure.EnterResource(id); !until.IsZero() {
		return 0, u.block(l, until, reason)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lanes[l.key] != l || l.due.IsZero() { // removed in the meantime
		return 0, false
	}
	switch {
	case l.group == "", l.listed:
	case l.found && !slices.ContainsFunc(due, func(o *lane) bool { return o != l && o.group == l.group && !o.running && !o.listed }):
		mode = alone
	default:
		mode = together
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
	return mode, true
}

// block is not a failure; a long wait is reported.
func (u *Updater) block(l *lane, until time.Time, reason string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.lanes[l.key] == l { // not removed in the meantime
		u.blocks(l, until, reason, time.Now())
	}
	return false
}

// blocks requires u.mu.
func (u *Updater) blocks(l *lane, until time.Time, reason string, now time.Time) {
	until = poolschedule.Later(until, now.Add(10*time.Millisecond)) // retry, but not immediately
	l.due = until
	u.busy[l.key] = l
	for _, m := range l.machines {
		if m.state == working && reason != "" && until.Sub(now) >= worthTelling || m.blocked {
			m.why, m.blocked, m.unusable = reason, true, false
			u.becomes(m, waiting)
		}
	}
}

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

// settle requires u.mu.
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

func (m *machine) judged(v verdict) {
	m.look, m.blocked, m.why, m.unusable, m.err, m.told = false, false, v.why, v.unusable, v.err, nil
	switch v.state {
	case done:
		m.was = m.want
	case failing:
		m.told = map[lb.PoolKey]bool{}
	}
}
