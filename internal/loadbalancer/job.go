// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/publicip"
	"weir.dev/weir/internal/requestlog"
	"weir.dev/weir/internal/service"
)

type step struct {
	on            lb.LoadBalancerID
	remove        bool
	securityGroup bool
	// publish marks the Private Link step. Otherwise, these frontends must be unpublished.
	publish   bool
	unpublish []string
}

func (s step) isPrivateLink() bool { return s.publish || len(s.unpublish) > 0 }

func (s step) queueKey() string {
	switch {
	case s.securityGroup:
		return "" // there is one security group
	case s.isPrivateLink():
		return "private link services/" + string(s.on.Key())
	}
	return string(s.on.Key())
}

type job struct {
	Result
	steps []step
	// started is set after the first step; the job can no longer be deferred.
	started bool
	// wasHeld is set once the job waited for others; see takeovers.
	wasHeld     bool
	rules       []lb.Rule
	conversions []*conversion
	localSpec   *service.Spec
	rejection   error
	ipRequest   *publicip.Request
	// link is its Private Link request. Published frontends that it cannot release in this try are unpublished
	// before the step is repeated.
	link          *privatelink.Request
	toUnpublish   []string
	unpublishDone bool
}

func newJob(req Request, guarded bool) *job {
	j := &job{Result: Result{Request: req}, steps: planSteps(req, guarded), localSpec: req.Desired}
	if req.Desired != nil {
		j.Pools = req.Desired.Pools
	}
	wanted := req.Desired
	if req.CloseOnly { // it needs no public IP
		wanted = nil
	}
	j.ipRequest = &publicip.Request{
		Service: req.Service, Owner: req.Owner, Created: req.Created, Desired: wanted, DesiredKey: j.desiredKey(), Groups: req.Groups,
		DeleteUnused: req.DeleteUnused && !req.CloseOnly, Retain: req.Retain,
	}
	j.link = &privatelink.Request{Service: req.Service, Owner: req.Owner, Desired: req.Desired, DesiredKey: j.desiredKey(), ResourceGroups: req.LinkGroups}
	return j
}

// retainFor returns the Service if its addresses are retained when it leaves them.
func (j *job) retainFor() string {
	if j.Retain {
		return j.Service
	}
	return ""
}

func (j *job) namespace() string { return namespaceOf(j.Service) }

func namespaceOf(service string) string {
	namespace, _, _ := strings.Cut(service, "/")
	return namespace
}

func (j *job) desiredKey() conflict.DesiredKey {
	return conflict.DesiredKey{Desired: j.Desired, LoadBalancer: j.On.Key(), RetryToken: j.RetryToken}
}

func (j *job) addConflicts(conflicts ...*conflict.Conflict) {
	for _, c := range conflicts {
		if c != nil {
			j.Conflicts = append(j.Conflicts, *c)
		}
	}
}

func requestCauses(jobs []*job) []requestlog.Cause {
	causes := make([]requestlog.Cause, len(jobs))
	for i, j := range jobs {
		namespace, name, _ := strings.Cut(j.Service, "/")
		causes[i] = requestlog.Cause{Kind: "Service", Namespace: namespace, Name: name}
	}
	return causes
}

func (j *job) publicIPError() error { return j.ipRequest.Err }

func (b *LoadBalancers) checkPublicIPs(j *job) error {
	if j.ipRequest.Err != nil {
		b.recordJobRejection(j, j.ipRequest.Err)
	}
	return j.ipRequest.Err
}

func (j *job) isLeaving() bool { return j.steps[0].remove }

func (j *job) hasNextLoadBalancer() bool {
	return len(j.steps) > 1 && !j.steps[1].securityGroup && !j.steps[1].isPrivateLink()
}

func ipRequests(jobs []*job) []*publicip.Request {
	requests := make([]*publicip.Request, len(jobs))
	for i, j := range jobs {
		requests[i] = j.ipRequest
	}
	return requests
}

func (j *job) buildResult(err error) Result {
	r := j.Result
	r.Err, r.Changed = err, r.Changed || j.ipRequest.Changed || j.link.Changed
	r.Link = j.link.Result
	r.DeletedLoadBalancers = slices.DeleteFunc(r.DeletedLoadBalancers, func(id lb.LoadBalancerID) bool {
		return j.Desired != nil && id.Key() == j.On.Key() // it was made again
	})
	return r
}

// planSteps orders the work of a request. A public address must leave one load balancer before another can use it;
// otherwise the new frontend is made before the old one is removed.
//
// The security group opens when the addresses are known and closes before they are released, because Azure may
// assign them to another customer; a retained address is kept, and serves until then. Established flows outlive the rule
// that admitted them. A closing request has no other step, so a restriction takes effect even if the load balancer cannot be written.
func planSteps(req Request, guarded bool) []step {
	steps := loadBalancerSteps(req)
	switch {
	case !guarded:
		return steps
	case req.CloseOnly:
		return []step{{securityGroup: true}}
	case req.Desired == nil && !req.Retain:
		return append([]step{{securityGroup: true}}, steps...)
	}
	return append(steps, step{securityGroup: true})
}

func loadBalancerSteps(req Request) []step {
	var steps []step
	if req.CloseOnly {
		return nil
	}
	for _, id := range req.RemoveFrom {
		steps = append(steps, step{on: id, remove: true})
	}
	if req.Desired == nil {
		return steps
	}
	current := step{on: req.On}
	if req.KeepFormer {
		return []step{current}
	}
	if req.Desired.Internal {
		return append([]step{current}, steps...)
	}
	return append(steps, current)
}
