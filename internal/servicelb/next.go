// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
)

// Step is what follows for a Service.
type Step string

// Steps of a Service that no request is under way for.
const (
	Rest     Step = "rest"     // nothing, until something changes or it is time
	Refuse   Step = "refuse"   // say what is wrong with it
	Publish  Step = "publish"  // Azure holds what it wants: the status has to show it
	Rehearse Step = "rehearse" // say what would change
	Ask      Step = "ask"      // ask for what it wants, unless addresses have to be spared
)

// Steps that follow from the result of a request.
const (
	Hold     Step = "hold"      // it would lose addresses
	Complain Step = "complain"  // say what failed, and try again
	TryAgain Step = "try again" // somebody is just writing there: nobody has to be told
	Defer    Step = "defer"     // its namespace, or it itself, has to wait for its next write
	PutOff   Step = "put off"   // it was to be compared, and Azure was not asked: nothing is known to be wrong
	Fill     Step = "fill"      // make the BackendPools that have to be filled first
	Empty    Step = "empty"     // have network interfaces leave, which keep the load balancer
	Release  Step = "release"   // nothing is left of it: let go of it
	Drop     Step = "drop"      // it leaves meanwhile: nothing is made for it any more
	Finish   Step = "finish"    // Azure holds what it wants: write that down
)

// Next says what follows from what is known of a Service, and what it wants.
func Next(st State, s Service, d Desired, now time.Time) Step {
	switch {
	case len(d.Problems) > 0:
		return Refuse
	case !s.DryRun && !st.Placement.lostFinalizer(s) && st.Level.holds(d, s.WriteAgain, now) && !st.Emptying.due(now) && (!s.AllowRemoval || !st.Level.unused):
		return Publish
	case d.Spec == nil && st.Placement.free:
		return Rest
	case !s.DryRun && st.Filling.waits(d.Spec, s.WriteAgain, now):
		return Rest
	case !s.DryRun && st.Emptying.waits(d.Spec, s.WriteAgain, now):
		return Rest
	case s.DryRun:
		return Rehearse
	}
	return Ask
}

// Settle says what follows from the result of a request. ours is false for a Service that leaves, and
// looked is true if Azure was known to hold what was asked for.
func Settle(r balancer.Result, ours, looked bool) Step {
	if r.Err != nil {
		if _, held := wouldLose(r.Err); held {
			return Hold
		}
		f, _ := errors.AsType[*fault.Fault](r.Err)
		switch {
		case f.Deferred():
			return Defer
		case looked && f.Unsent() && !r.Changed:
			return PutOff
		case f != nil && f.Code == contest.CodeUpdating:
			return TryAgain
		}
		return Complain
	}
	switch {
	case len(r.Filling) > 0 && ours:
		return Fill
	case (r.Desired == nil || r.Awaits) && len(r.Emptying) > 0:
		return Empty
	case r.Desired == nil:
		return Release
	case !ours:
		return Drop
	}
	return Finish
}
