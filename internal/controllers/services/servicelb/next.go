// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
)

// Step is the next step for a Service.
type Step string

// Steps of a Service without a running request.
const (
	StepNone    Step = "none"    // nothing until a change or a timer
	StepReject  Step = "reject"  // report what is wrong with it
	StepPublish Step = "publish" // in sync: write the status
	StepDryRun  Step = "dryRun"  // report what would change
	StepRequest Step = "request" // send a request, unless it would remove addresses
)

// Steps after the result of a request.
const (
	StepBlock   Step = "block"   // it would lose addresses
	StepFail    Step = "fail"    // report the failure and retry
	StepRetry   Step = "retry"   // another client is updating it: retry without an event
	StepDefer   Step = "defer"   // its namespace or the Service waits for its next write
	StepSkip    Step = "skip"    // a resync without an Azure call: nothing is known to be wrong
	StepFill    Step = "fill"    // create the BackendPools that must fill first
	StepMove    Step = "move"    // the former load balancer serves until the new addresses do, and are published
	StepDrain   Step = "drain"   // remove network interfaces that block the deletion
	StepRelease Step = "release" // nothing is left: remove the finalizer
	StepDrop    Step = "drop"    // the Service is leaving: create nothing more
	StepFinish  Step = "finish"  // in sync: persist it
)

// NextStep returns the next step for a Service.
func NextStep(st State, s Service, d Desired, now time.Time) Step {
	switch {
	case len(d.Problems) > 0:
		return StepReject
	case !s.DryRun && !st.Placement.hasLostFinalizer(s) && st.Sync.isInSync(d, s.RetryToken, now) && !st.PoolWait.isDue(now) && (!s.AllowRemoval || !st.Sync.unused):
		return StepPublish
	case d.Spec == nil && st.Placement.free:
		return StepNone
	case !s.DryRun && st.PoolWait.mustWait(d.Spec, s.RetryToken, now):
		return StepNone
	case s.DryRun:
		return StepDryRun
	}
	return StepRequest
}

// ResolveStep returns the step after a result. managed is false for a leaving Service.
func ResolveStep(r loadbalancer.Result, managed, isResync bool) Step {
	if r.Err != nil {
		if _, ok := asRemovalError(r.Err); ok {
			return StepBlock
		}
		f, _ := errors.AsType[*armerror.Fault](r.Err)
		switch {
		case f.IsDeferred():
			return StepDefer
		case isResync && f.IsNotSent() && !r.Changed:
			return StepSkip
		case f != nil && f.Code == conflict.CodeUpdating:
			return StepRetry
		}
		return StepFail
	}
	switch {
	case len(r.FillingPools) > 0 && managed:
		return StepFill
	case (r.Desired == nil || r.NeedsDrain) && len(r.DrainingPools) > 0:
		return StepDrain
	case r.Desired == nil:
		return StepRelease
	case !managed:
		return StepDrop
	case r.KeepFormer:
		return StepMove
	}
	return StepFinish
}
