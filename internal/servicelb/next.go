// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
)

// Step is the next step for a Service.
type Step string

// Steps of a Service without a running request.
const (
	Rest     Step = "rest"     // nothing until a change or a timer
	Refuse   Step = "refuse"   // report what is wrong with it
	Publish  Step = "publish"  // in sync: write the status
	Rehearse Step = "rehearse" // report what would change
	Ask      Step = "ask"      // send a request, unless it would remove addresses
)

// Steps after the result of a request.
const (
	Hold     Step = "hold"      // it would lose addresses
	Complain Step = "complain"  // report the failure and retry
	TryAgain Step = "try again" // another client is updating it: retry without an event
	Defer    Step = "defer"     // its namespace or the Service waits for its next write
	PutOff   Step = "put off"   // a resync without an Azure call: nothing is known to be wrong
	Fill     Step = "fill"      // create the BackendPools that must fill first
	Empty    Step = "empty"     // remove network interfaces that block the deletion
	Release  Step = "release"   // nothing is left: remove the finalizer
	Drop     Step = "drop"      // the Service is leaving: create nothing more
	Finish   Step = "finish"    // in sync: persist it
)

// Next returns the next step for a Service.
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

// Settle returns the step after a result. managed is false for a leaving Service.
func Settle(r balancer.Result, managed, isResync bool) Step {
	if r.Err != nil {
		if _, held := wouldLose(r.Err); held {
			return Hold
		}
		f, _ := errors.AsType[*fault.Fault](r.Err)
		switch {
		case f.Deferred():
			return Defer
		case isResync && f.Unsent() && !r.Changed:
			return PutOff
		case f != nil && f.Code == contest.CodeUpdating:
			return TryAgain
		}
		return Complain
	}
	switch {
	case len(r.Filling) > 0 && managed:
		return Fill
	case (r.Desired == nil || r.Awaits) && len(r.Emptying) > 0:
		return Empty
	case r.Desired == nil:
		return Release
	case !managed:
		return Drop
	}
	return Finish
}
