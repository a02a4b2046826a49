// SPDX-License-Identifier: Apache-2.0

package servicelb

import "time"

// emptyAfter is how long a Service has had no endpoints before its status says so: a rollout of one pod is
// no news, and what comes and goes faster costs no write.
const emptyAfter = 30 * time.Second

// noEndpoints is what a Service with all that it wants of Azure says while nothing answers there.
const noEndpoints = "Azure has what the Service wants, but no endpoint is ready to take its traffic"

// Endpoints says whether anything takes the traffic of a Service.
type Endpoints struct {
	// empty is true once the status is to say that nothing does, since is from when on nothing does,
	// as far as this process knows; zero while something does.
	empty bool
	since time.Time
}

// endpoints takes in whether anything takes the traffic of a Service that Azure has all of. It returns when to
// look at it again; 0 for never.
func (r *Reconciler) endpoints(s Service, st *State, now time.Time) time.Duration {
	if st.Pending.Running || st.condition(s.Ours(r.cfg.Settings.Class), now) != Ready {
		return 0
	}
	st.Endpoints.sees(r.cfg.Cluster.HasEndpoints(s.Name), s.Programmed, now)
	st.Unfilled.sees(r.cfg.Cluster.EmptyPool(st.Level.request.On, st.Level.request.Desired.Pools), s.Programmed, now)
	return sooner(st.Endpoints.wait(now), st.Unfilled.wait(now))
}

// sees takes in whether a Service has endpoints, and what its status says of Azure. That it has some is
// said at once, that it has none after a while, and goes on being said.
func (e *Endpoints) sees(has bool, shown string, now time.Time) {
	switch {
	case has:
		*e = Endpoints{}
		return
	case e.since.IsZero():
		e.since = now
	}
	e.empty = e.empty || shown == WhyNoEndpoints || !now.Before(e.since.Add(emptyAfter))
}

// wait is when a Service is looked at again that may come to have none; 0 for never.
func (e *Endpoints) wait(now time.Time) time.Duration {
	if e.empty || e.since.IsZero() {
		return 0
	}
	return max(e.since.Add(emptyAfter).Sub(now), time.Millisecond)
}

// emptyText says that nothing takes the traffic, and what follows from it for Local.
func (s Service) emptyText() string {
	if s.Object.Local {
		return noEndpoints + ": with externalTrafficPolicy Local no node takes any"
	}
	return noEndpoints
}

// sooner is the earlier of two times to look again, of which 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
