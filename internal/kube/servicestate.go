// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"time"

	"weir.dev/weir/internal/fault"
)

// serviceState is how far a Service is with its load balancer.
type serviceState string

const (
	stateReady   serviceState = "ready"     // it has what it wants
	stateWaiting serviceState = "waiting"   // it is new, or waits for what Azure asked for
	stateRefused serviceState = "refused"   // somebody has to mend it, or what it names
	stateFailed  serviceState = "failed"    // the last try failed, and another follows
	stateFought  serviceState = "contested" // somebody else keeps undoing what it wants
	stateGoing   serviceState = "leaving"   // it gives its load balancer up
	stateKept    serviceState = "kept"      // it is of another class, and keeps what it has
	stateHeld    serviceState = "held"      // it would lose addresses, and waits for a person
)

// troubleOf says whose an error is: what Azure, or the way there, had no part in is for people
// to mend.
func troubleOf(err error) serviceState {
	if _, ok := errors.AsType[*fault.Fault](err); ok {
		return stateFailed
	}
	return stateRefused
}

// judge notes the state of a Service that was looked at. The caller holds the claim.
func (cl *claim) judge(ours bool, now time.Time) {
	is := stateWaiting
	switch {
	case cl.trouble == stateRefused:
		is = stateRefused
	case cl.notBefore.After(now):
	case cl.trouble != "":
		is = cl.trouble
	case !ours:
		is = stateGoing
	case cl.level != nil && len(cl.contests) > 0:
		is = stateFought
	case cl.level != nil:
		is = stateReady
	}
	cl.state.Store(&is)
	cl.addressed.Store(len(cl.places) > 0 && cl.had)
	if !cl.running {
		cl.looked.Store(true)
	}
}

// ServiceStates counts the Services that have a load balancer of Weir's, or are to have one,
// by state.
func (c *Cluster) ServiceStates() map[string]int {
	count := map[string]int{}
	for _, is := range []serviceState{stateReady, stateWaiting, stateRefused, stateFailed, stateFought, stateGoing, stateKept, stateHeld} {
		count[string(is)] = 0
	}
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	for _, cl := range c.claims.all {
		if is := cl.state.Load(); is != nil {
			count[string(*is)]++
		}
	}
	return count
}

// warn logs what keeps a Service from its load balancer. What the log said last of it is
// repeated for those alone who look closely.
func (c *Cluster) warn(ctx context.Context, cl *claim, what, service string, err error) {
	log := c.opts.Log.WarnContext
	if cl.warned == err.Error() {
		log = c.opts.Log.DebugContext
	}
	cl.warned = err.Error()
	log(ctx, what, "service", service, "err", err)
}
