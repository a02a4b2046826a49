// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// A probe opens a connection and sends nothing. Intervals are jittered upwards.
const (
	minProbeInterval = time.Minute
	maxProbes        = 60
)

// ProbeState is the probe state of one wait, in memory only: after a restart the attempt starts at its
// regular time.
type ProbeState struct {
	// Number and Since identify the wait.
	Number int64
	Since  time.Time
	Count  int
	Next   time.Time
	// Failed is set after a failed probe, and the other one once a later probe succeeds. If the first
	// probe succeeds, probing stops.
	Failed, Recovered bool
}

// NextProbe returns the probe state of the current wait and the time of the next probe; zero means
// never. random is in [0, 1).
func (s State) NextProbe(k ProbeState, in Input, random float64, now time.Time) (ProbeState, time.Time) {
	if s.Phase != Waiting || s.RetryRequested || s.Cancelled || s.SpecDigest != in.SpecDigest {
		return ProbeState{}, time.Time{}
	}
	if !s.isCurrentWait(k) {
		k = ProbeState{Number: s.Number, Since: s.Since, Next: s.notBefore(now).Add(s.probeInterval(in.Policy, random))}
	}
	at := s.notBefore(k.Next)
	if k.Recovered || k.Count > 0 && !k.Failed || k.Count >= maxProbes || !at.Before(s.NextAttemptAt(in.Policy)) {
		return k, time.Time{}
	}
	return k, at
}

// RecordProbe returns the probe state after one more probe.
func (s State) RecordProbe(k ProbeState, answered bool, p Policy, random float64, now time.Time) ProbeState {
	k.Count++
	k.Recovered = answered && k.Failed
	k.Failed = k.Failed || !answered
	k.Next = now.Add(s.probeInterval(p, random))
	return k
}

func (s State) isCurrentWait(k ProbeState) bool {
	return k.Number == s.Number && k.Since.Equal(s.Since)
}

func (s State) notBefore(at time.Time) time.Time {
	if s.NotBefore.After(at) {
		return s.NotBefore
	}
	return at
}

func (s State) probeInterval(p Policy, random float64) time.Duration {
	least := max(minProbeInterval, s.currentWait(p)/maxProbes)
	return least + time.Duration(random*float64(least)/2)
}

func (s State) hasRecovered(in Input) bool {
	return in.Probes.Recovered && !s.RetryRequested && !s.Cancelled && s.isCurrentWait(in.Probes)
}
