// SPDX-License-Identifier: Apache-2.0

package provision

import "time"

// A probe opens a connection and sends nothing. Intervals are jittered upwards.
const (
	knockDistance = time.Minute
	mostKnocks    = 60
)

// Knocks is the probe state of one wait, in memory only: after a restart the attempt starts at its
// regular time.
type Knocks struct {
	// Number and Since identify the wait.
	Number int64
	Since  time.Time
	Made   int
	Next   time.Time
	// Away is set after a failed probe, and the other one once a later probe succeeds. If the first
	// probe succeeds, probing stops.
	Away, Answered bool
}

// Knock returns the probe state of the current wait and the time of the next probe; zero means
// never. random is in [0, 1).
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

// Knocked returns the probe state after one more probe.
func (s State) Knocked(k Knocks, answered bool, p Policy, random float64, now time.Time) Knocks {
	k.Made++
	k.Answered = answered && k.Away
	k.Away = k.Away || !answered
	k.Next = now.Add(s.distance(p, random))
	return k
}

func (s State) knew(k Knocks) bool { return k.Number == s.Number && k.Since.Equal(s.Since) }

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

func (s State) answers(in Input) bool {
	return in.Knocks.Answered && !s.Asked && !s.Cancelled && s.knew(in.Knocks)
}
