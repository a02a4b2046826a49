// SPDX-License-Identifier: Apache-2.0

package servicelb

import "time"

// State is what is known of the load balancer of one Service. Each part is written by the methods
// of one file.
type State struct {
	Placement Placement
	Pending   Pending
	Level     Level
	Waiting   Waiting
	Told      Told
	Removal   Removal
	Filling   Filling
	Plan      Planned
}

// newState is that of a Service which this process sees for the first time.
func newState(s Service) State {
	// One that has been served before is not told so again.
	had := len(s.Shown) > 0
	return State{Placement: Placement{Record: s.Record}, Told: Told{had: had, announced: !s.Finalizer || !had}}
}

// absentState is that of a Service that went while nobody watched, and left something on a load
// balancer.
func absentState(place string) State {
	return State{Placement: Placement{Record: Record{Places: []string{place}}}, Told: Told{had: true, announced: true}}
}

// loses takes in that a BackendPool is gone.
func (st *State) loses(p LostPool) {
	if st.Level.needs(p) {
		st.Level.drop()
	}
	st.Filling.misses(p)
}

// wait returns how long until it is time to look again; 0 for never, or not now.
func (st *State) wait(now time.Time) time.Duration {
	var until time.Time
	switch {
	case !st.Plan.until.IsZero():
		until = st.Plan.until
	case st.Pending.Running:
	case st.Filling.asked != nil:
		until = st.Filling.until
	case st.Removal.losing != nil:
		until = st.Removal.again
	case st.Level.request != nil:
		until = st.Level.lookAt
	}
	if !until.After(now) { // it waits for somebody to change it
		return 0
	}
	return max(until.Sub(now), time.Millisecond)
}
