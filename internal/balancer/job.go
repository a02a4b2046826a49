// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
)

// step is what a job does on one load balancer.
type step struct {
	on lb.LoadBalancerID
	// leaves is true if the Service goes from there.
	leaves bool
	// secures is true for the step on the security group.
	secures bool
	// publishes is true for the step on what publishes the frontends, and clears are the frontends
	// that have to be published no more.
	publishes bool
	clears    []string
}

// links reports whether the step is on Private Link Services.
func (s step) links() bool { return s.publishes || len(s.clears) > 0 }

// key is that of the queue of a step.
func (s step) key() string {
	switch {
	case s.secures:
		return "" // there is one
	case s.links():
		return "private link services/" + string(s.on.Key())
	}
	return string(s.on.Key())
}

// job is a request on its way, and what has come of it so far.
type job struct {
	Result
	steps []step
	// begun is true once one of its steps is done: it is not put off any more.
	begun bool
	// rules are those that it wants on the load balancer of the step for now; see hold.
	rules []lb.Rule
	// converting are the shared pools among those that it needs which are of the other kind yet.
	converting []*conversion
	// wanted is what it wants on the load balancer of the step, by the names that it has there.
	wanted *service.Spec
	// refused is why the plan, or what Azure shows, has nothing for it in this try; nil if it has.
	refused error
	// ips is what it wants of public IPs.
	ips *publicip.Request
	// link is what it wants of Private Link Services. clears are the frontends that it cannot let go of
	// in this try, because they are published, and cleared is true once that was ended for the step.
	link    *privatelinkround.Request
	clears  []string
	cleared bool
}

func newJob(req Request, guarded bool) *job {
	j := &job{Result: Result{Request: req}, steps: steps(req, guarded), wanted: req.Desired}
	if req.Desired != nil {
		j.Pools = req.Desired.Pools
	}
	wanted := req.Desired
	if req.Closes { // it needs no public IP
		wanted = nil
	}
	j.ips = &publicip.Request{
		Service: req.Service, Owner: req.Owner, Created: req.Created, Desired: wanted, Asked: j.asked(), Groups: req.Groups,
		DeleteUnused: req.DeleteUnused && !req.Closes,
	}
	j.link = &privatelinkround.Request{Service: req.Service, Owner: req.Owner, Desired: req.Desired, Asked: j.asked(), Groups: req.LinkGroups}
	return j
}

// namespace is that of a job's Service.
func (j *job) namespace() string { return namespaceOf(j.Service) }

// namespaceOf is the namespace of a Service, by its name.
func namespaceOf(service string) string {
	namespace, _, _ := strings.Cut(service, "/")
	return namespace
}

func (j *job) asked() contest.Asked {
	return contest.Asked{Desired: j.Desired, On: j.On.Key(), Again: j.Again}
}

// contested notes the contests that there are about what a job has.
func (j *job) contested(all ...*contest.Contest) {
	for _, c := range all {
		if c != nil {
			j.Contests = append(j.Contests, *c)
		}
	}
}

// causes are the Services for whose sake Azure is asked.
func causes(jobs []*job) []calls.Cause {
	all := make([]calls.Cause, len(jobs))
	for i, j := range jobs {
		namespace, name, _ := strings.Cut(j.Service, "/")
		all[i] = calls.Cause{Kind: "Service", Namespace: namespace, Name: name}
	}
	return all
}

// unprovided is why it has not the public IPs that it wants; nil if it has.
func (j *job) unprovided() error { return j.ips.Err }

// unprovided is (*job).unprovided, and counts what Azure rejected.
func (b *Balancers) unprovided(j *job) error {
	if j.ips.Err != nil {
		b.rejected(j, j.ips.Err)
	}
	return j.ips.Err
}

// leaves reports whether a job's Service goes from the load balancer of the step.
func (j *job) leaves() bool { return j.steps[0].leaves }

// moves reports whether there are more steps on load balancers.
func (j *job) moves() bool { return len(j.steps) > 1 && !j.steps[1].secures && !j.steps[1].links() }

// requests are what jobs want of public IPs.
func requests(jobs []*job) []*publicip.Request {
	all := make([]*publicip.Request, len(jobs))
	for i, j := range jobs {
		all[i] = j.ips
	}
	return all
}

// result is what comes of a request with its last step, or with an error.
func (j *job) result(err error) Result {
	r := j.Result
	r.Err, r.Changed = err, r.Changed || j.ips.Changed || j.link.Changed
	r.Link = j.link.Outcome
	r.Gone = slices.DeleteFunc(r.Gone, func(id lb.LoadBalancerID) bool {
		return j.Desired != nil && id.Key() == j.On.Key() // it was made again
	})
	return r
}

// steps orders what a request takes. An address that was on one load balancer can be on
// another only when it has left, so public ones leave first; for others it is better
// that the new frontend is there before the old one goes.
//
// The security group opens when the addresses are known, and closes before they are given
// up: what Azure gets back it may give to somebody else, and nothing may be let in there.
// Flows that are open outlive the rule that let them in. A request that closes has no other step, so a restriction is
// in force even if the load balancer cannot be written.
func steps(req Request, guarded bool) []step {
	all := stepsOnBalancers(req)
	switch {
	case !guarded:
		return all
	case req.Closes:
		return []step{{secures: true}}
	case req.Desired == nil:
		return append([]step{{secures: true}}, all...)
	}
	return append(all, step{secures: true})
}

func stepsOnBalancers(req Request) []step {
	var all []step
	if req.Closes {
		return nil
	}
	for _, id := range req.Leave {
		all = append(all, step{on: id, leaves: true})
	}
	if req.Desired == nil {
		return all
	}
	here := step{on: req.On}
	if req.Desired.Internal {
		return append([]step{here}, all...)
	}
	return append(all, here)
}
