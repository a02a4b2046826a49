// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/publicip"
)

// step is what a job does on one load balancer.
type step struct {
	on lb.LoadBalancerID
	// leaves is true if the Service goes from there.
	leaves bool
	// secures is true for the step on the security group.
	secures bool
}

// job is a request on its way, and what has come of it so far.
type job struct {
	Result
	steps []step
	// rules are those that it wants on the load balancer of the step for now; see hold.
	rules []lb.Rule
	// refused is why the plan, or what Azure shows, has nothing for it in this try; nil if it has.
	refused error
	// ips is what it wants of public IPs.
	ips *publicip.Request
}

func newJob(req Request, guarded bool) *job {
	j := &job{Result: Result{Request: req}, steps: steps(req, guarded)}
	j.ips = &publicip.Request{Service: req.Service, Owner: req.Owner, Desired: req.Desired, Asked: j.asked(), Groups: req.Groups}
	return j
}

// namespace is that of a job's Service.
func (j *job) namespace() string {
	namespace, _, _ := strings.Cut(j.Service, "/")
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

// unprovided is why it has not the public IPs that it wants; nil if it has.
func (j *job) unprovided() error { return j.ips.Err }

// leaves reports whether a job's Service goes from the load balancer of the step.
func (j *job) leaves() bool { return j.steps[0].leaves }

// moves reports whether there are more steps on load balancers.
func (j *job) moves() bool { return len(j.steps) > 1 && !j.steps[1].secures }

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
	r.Err, r.Changed = err, r.Changed || j.ips.Changed
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
// Flows that are open outlive the rule that let them in.
func steps(req Request, guarded bool) []step {
	all := stepsOnBalancers(req)
	switch {
	case !guarded:
		return all
	case req.Desired == nil:
		return append([]step{{secures: true}}, all...)
	}
	return append(all, step{secures: true})
}

func stepsOnBalancers(req Request) []step {
	var all []step
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
