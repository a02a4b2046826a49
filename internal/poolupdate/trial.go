// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"time"

	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// leaves say which changes pools may be written together for.
type leaves struct{ addresses, states wholewrite.Leave }

// none reports whether there is no leave at all.
func (may leaves) none() bool { return may.addresses == wholewrite.No && may.states == wholewrite.No }

// lets reports whether a group may take part, as far as its operations tell. What fails for reasons
// of its own would only keep a trial from a verdict.
func (may leaves) lets(g group) bool {
	if g.failing() && (g.changes() && may.addresses == wholewrite.Try || g.admin != nil && may.states == wholewrite.Try) {
		return false
	}
	return (!g.changes() || may.addresses != wholewrite.No) && (g.admin == nil || may.states != wholewrite.No)
}

// allows reports whether what is to be written may be a part. A node is never taken down by a
// trial, and what is only written once more, so that it comes into force, is not left to one.
func (may leaves) allows(todo poolwrite.Change) bool {
	addresses, states := todo.Changes()
	switch {
	case !addresses && !states:
		return may.addresses == wholewrite.Yes
	case addresses && may.addresses == wholewrite.No, states && may.states == wholewrite.No:
		return false
	}
	return may.states != wholewrite.Try || len(todo.Downed) == 0
}

// tries returns what is on trial in a write.
func (may leaves) tries(writes []parcel) []wholewrite.Change {
	var all []wholewrite.Change
	for _, c := range changesIn(writes) {
		if c == wholewrite.Addresses && may.addresses == wholewrite.Try || c == wholewrite.AdminStates && may.states == wholewrite.Try {
			all = append(all, c)
		}
	}
	return all
}

// changesIn returns the changes that a write makes.
func changesIn(writes []parcel) []wholewrite.Change {
	var addresses, states bool
	for _, p := range writes {
		a, s := p.r.Todo.Changes()
		addresses, states = addresses || a, states || s
	}
	var all []wholewrite.Change
	if addresses {
		all = append(all, wholewrite.Addresses)
	}
	if states {
		all = append(all, wholewrite.AdminStates)
	}
	return all
}

// unrest says, for people, why now is no moment to try something on the load balancer; empty if
// it is one. Admin states can be tried where nodes only return: nobody loses a flow by a write
// that is ignored.
func (q *queue) unrest(now time.Time, c wholewrite.Change) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key, w := range q.pools {
		g := w.group(key)
		if why := g.unrest(now, c); why != "" {
			return why
		}
	}
	return ""
}

func (g group) unrest(now time.Time, c wholewrite.Change) string {
	switch {
	case g.earliest().After(now):
		return "a pool waits for a Retry-After"
	case g.failing():
		return ""
	case g.admin != nil && g.admin.Stake.Leaves > 0:
		return "nodes drain"
	case g.admin != nil && c != wholewrite.AdminStates:
		return "nodes return"
	case g.retry, g.admin != nil && g.admin.tries > 0:
		return "a pool fails"
	case g.history.writes.Lost != "":
		return "the fate of a write is not known"
	case g.history.postponed > 0:
		return "something of Weir's own is not ready"
	}
	return ""
}

// failsForGood is how often in a row a pool has to fail, or to be put off, without a budget that ends
// that, to be one that fails for reasons of its own.
const failsForGood = 5

// failing reports whether the pool fails, and no end is to be seen: its last change was given up, or
// it was refused by itself, or it has been tried time and again. Such a pool has no part in a trial,
// and forbids none.
func (g group) failing() bool {
	tries := 0
	if g.admin != nil {
		tries = g.admin.tries
	}
	return g.history.gaveUp != "" || g.history.apart && (g.retry || tries > 0) || tries >= failsForGood || g.history.postponed >= failsForGood
}
