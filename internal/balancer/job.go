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

type step struct {
	on      lb.LoadBalancerID
	leaves  bool
	secures bool
	// publishes marks the Private Link step. Otherwise, these frontends must be unpublished.
	publishes bool
	clears    []string
}

func (s step) links() bool { return s.publishes || len(s.clears) > 0 }

func (s step) key() string {
	switch {
	case s.secures:
		return "" // there is one security group
	case s.links():
		return "private link services/" + string(s.on.Key())
	}
	return string(s.on.Key())
}

type job struct {
	Result
	steps []step
	// begun is set after the first step; the job can no longer be deferred.
	begun      bool
	rules      []lb.Rule
	converting []*conversion
	wanted     *service.Spec
	refused    error
	ips        *publicip.Request
	// link is its Private Link request. Published frontends that it cannot release in this try are unpublished
	// before the step is repeated.
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

func (j *job) namespace() string { return namespaceOf(j.Service) }

func namespaceOf(service string) string {
	namespace, _, _ := strings.Cut(service, "/")
	return namespace
}

func (j *job) asked() contest.Asked {
	return contest.Asked{Desired: j.Desired, On: j.On.Key(), Again: j.Again}
}

func (j *job) contested(all ...*contest.Contest) {
	for _, c := range all {
		if c != nil {
			j.Contests = append(j.Contests, *c)
		}
	}
}

func causes(jobs []*job) []calls.Cause {
	all := make([]calls.Cause, len(jobs))
	for i, j := range jobs {
		namespace, name, _ := strings.Cut(j.Service, "/")
		all[i] = calls.Cause{Kind: "Service", Namespace: namespace, Name: name}
	}
	return all
}

func (j *job) unprovided() error { return j.ips.Err }

func (b *Balancers) unprovided(j *job) error {
	if j.ips.Err != nil {
		b.rejected(j, j.ips.Err)
	}
	return j.ips.Err
}

func (j *job) leaves() bool { return j.steps[0].leaves }

func (j *job) moves() bool { return len(j.steps) > 1 && !j.steps[1].secures && !j.steps[1].links() }

func requests(jobs []*job) []*publicip.Request {
	all := make([]*publicip.Request, len(jobs))
	for i, j := range jobs {
		all[i] = j.ips
	}
	return all
}

func (j *job) result(err error) Result {
	r := j.Result
	r.Err, r.Changed = err, r.Changed || j.ips.Changed || j.link.Changed
	r.Link = j.link.Outcome
	r.Gone = slices.DeleteFunc(r.Gone, func(id lb.LoadBalancerID) bool {
		return j.Desired != nil && id.Key() == j.On.Key() // it was made again
	})
	return r
}

// steps orders the work of a request. A public address must leave one load balancer before another can use it;
// otherwise the new frontend is made before the old one is removed.
//
// The security group opens when the addresses are known and closes before they are released, because Azure may
// assign them to another customer. Established flows outlive the rule that admitted them. A closing request has
// no other step, so a restriction takes effect even if the load balancer cannot be written.
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
