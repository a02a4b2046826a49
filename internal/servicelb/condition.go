// SPDX-License-Identifier: Apache-2.0

package servicelb

import "time"

// Condition is how far a Service is with its load balancer.
type Condition string

// The conditions.
const (
	Ready     Condition = "ready"     // it has what it wants
	Waits     Condition = "waiting"   // it is new, or waits for what Azure asked for
	Refused   Condition = "refused"   // somebody has to mend it, or what it names
	Failed    Condition = "failed"    // the last try failed, and another follows
	Contested Condition = "contested" // somebody else keeps undoing what it wants
	Leaving   Condition = "leaving"   // it gives its load balancer up
	Kept      Condition = "kept"      // it is of another class, and keeps what it has
	Held      Condition = "held"      // it would lose addresses, and waits for a person
)

// Conditions are all of them.
func Conditions() []Condition {
	return []Condition{Ready, Waits, Refused, Failed, Contested, Leaving, Kept, Held}
}

// condition is that of a Service that was looked at.
func (st *State) condition(ours bool, now time.Time) Condition {
	switch {
	case st.Told.trouble == Refused:
		return Refused
	case st.Waiting.notBefore.After(now):
		return Waits
	case st.Told.trouble != "":
		return st.Told.trouble
	case !ours:
		return Leaving
	case st.Level.request != nil && len(st.Level.contests) > 0:
		return Contested
	case st.Level.request != nil:
		return Ready
	}
	return Waits
}
