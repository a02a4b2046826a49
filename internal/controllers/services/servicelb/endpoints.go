// SPDX-License-Identifier: Apache-2.0

package servicelb

import "time"

// noEndpointsDelay delays the status change of a Service without endpoints: short gaps, such as a rollout of one pod,
// cost no write.
const noEndpointsDelay = 30 * time.Second

const noEndpoints = "Azure has everything that is requested, but no endpoint is ready to take its traffic"

// Endpoints tracks whether a Service has ready endpoints.
type Endpoints struct {
	// empty is set once the status must report no endpoints; since is when this process saw the last one
	// disappear, zero while there are some.
	empty bool
	since time.Time
}

// updateEndpoints updates the endpoint state of a Service that is in sync. It returns when to check again; 0 for
// never.
func (r *Reconciler) updateEndpoints(s Service, st *State, now time.Time) time.Duration {
	if st.Pending.Running || st.currentCondition(s.IsManaged(r.cfg.Settings.Class), now) != ConditionReady {
		return 0
	}
	st.Endpoints.recordEndpoints(r.cfg.Cluster.HasEndpoints(s.Name), s.ProgrammedReason, now)
	pool, known := r.cfg.Cluster.EmptyPool(st.Sync.request.On, st.Sync.pools)
	st.EmptyPool.recordEmptyPool(pool, known, s.ProgrammedReason, now)
	return minDelay(st.Endpoints.nextCheck(now), st.EmptyPool.nextCheck(now))
}

// recordEndpoints records whether a Service has endpoints; reason is that of its condition. New endpoints are reported at
// once, missing ones after a delay.
func (e *Endpoints) recordEndpoints(hasEndpoints bool, reason string, now time.Time) {
	switch {
	case hasEndpoints:
		*e = Endpoints{}
		return
	case e.since.IsZero():
		e.since = now
	}
	e.empty = e.empty || reason == ConditionReasonNoEndpoints || !now.Before(e.since.Add(noEndpointsDelay))
}

// nextCheck returns when to check a Service without endpoints again; 0 for never.
func (e *Endpoints) nextCheck(now time.Time) time.Duration {
	if e.empty || e.since.IsZero() {
		return 0
	}
	return max(e.since.Add(noEndpointsDelay).Sub(now), time.Millisecond)
}

// emptyText is the message for a Service without endpoints; it explains the effect of Local.
func (s Service) emptyText() string {
	if s.Object.Local {
		return noEndpoints + ": with externalTrafficPolicy Local no node receives any"
	}
	return noEndpoints
}

// minDelay returns the shorter delay; 0 means never.
func minDelay(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
