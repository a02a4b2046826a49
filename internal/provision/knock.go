// SPDX-License-Identifier: Apache-2.0

package provision

import "time"

// How a target is knocked at while the next attempt is waited for: a connection is made, and nothing is
// asked. Distances are jittered upwards, so that these are bounds.
const (
	// knockDistance is the shortest time between two.
	knockDistance = time.Minute
	// mostKnocks is how many there are in one wait.
	mostKnocks = 60
)

// Knocks are those of one wait. They are in the memory of a process: one that is gone takes them along,
// and the attempt begins when it would have begun without.
type Knocks struct {
	// Number and Since are which wait it is: after which attempt, and from when on.
	Number int64
	Since  time.Time
	Made   int
	Next   time.Time
	// Away is whether one was not answered, Answered whether a later one was. A target that answers
	// from the beginning is not what the attempt has failed for, and is left alone.
	Away, Answered bool
}

// Knock returns the knocks of the present wait, and when to knock next; zero is never. random is from 0 to 1.
func (s State) Knock(k Knocks, in Input, random float64, now time.Time) (Knocks, time.Time) {
	if s.Phase != Waiting || s.Asked || s.Cancelled || s.Job != in.Job {
		return Knocks{}, time.Time{}
	}
	if !s.knew(k) {
		k = Knocks{Number: s.Number, Since: s.Since, Next: s.later(now).Add(s.distance(in.Policy, random))}
	}
	at := s.later(k.Next)
	if k.Answered || k.Made > 0 && !k.Away || k.Made >= mostKnocks || !at.Before(s.Due(in.Policy)) {
		return k, time.Time{}
	}
	return k, at
}

// Knocked returns the knocks after one more.
func (s State) Knocked(k Knocks, answered bool, p Policy, random float64, now time.Time) Knocks {
	k.Made++
	k.Answered = answered && k.Away
	k.Away = k.Away || !answered
	k.Next = now.Add(s.distance(p, random))
	return k
}

// knew reports whether knocks are of the present wait.
func (s State) knew(k Knocks) bool { return k.Number == s.Number && k.Since.Equal(s.Since) }

// later is no sooner than what a server named.
func (s State) later(at time.Time) time.Time {
	if s.NotBefore.After(at) {
		return s.NotBefore
	}
	return at
}

func (s State) distance(p Policy, random float64) time.Duration {
	least := max(knockDistance, s.wait(p)/mostKnocks)
	return least + time.Duration(random*float64(least)/2)
}

// answers reports whether the target was away in this wait, and answers again.
func (s State) answers(in Input) bool {
	return in.Knocks.Answered && !s.Asked && !s.Cancelled && s.knew(in.Knocks)
}
