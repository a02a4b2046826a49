// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
)

// uncontested returns the jobs but for those whose parts of the load balancer are contested:
// these stay as they are.
func (l *loadBalancer) uncontested(jobs []*job, p plan.Plan) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		switch {
		case j.leaves():
			l.contests.Forget(j.Service, contest.LoadBalancer)
			return false
		case p.Refused[j.Owner] != nil:
			return false
		}
		return l.contests.Leave(contest.LoadBalancer, j.Service, j.asked(), "load balancer "+l.id.Name, differing(j, p.Changes), time.Now())
	})
}

// differing are the changes of what a job has on the load balancer, what it shares with
// others included.
func differing(j *job, changes []plan.Change) []contest.Undone {
	var all []contest.Undone
	for _, c := range changes {
		shared := c.Kind == plan.Probe && slices.ContainsFunc(j.Desired.Probes, func(p lb.Probe) bool { return equalFold(p.Name, c.Name) }) ||
			c.Kind == plan.Pool && slices.ContainsFunc(j.Desired.Pools, func(p service.Pool) bool { return equalFold(p.Name, c.Name) })
		if shared || c.Kind != plan.Pool && hasPrefixFold(c.Name, j.Owner) {
			all = append(all, contest.UndoneBy(c))
		}
	}
	return all
}

// noteLeft notes what the jobs have that are not due, and left as they are.
func (l *loadBalancer) noteLeft(jobs, due []*job, shown lb.LoadBalancer, ips *publicip.Round) {
	for _, j := range jobs {
		if slices.Contains(due, j) {
			continue
		}
		j.noteAddresses(shown, ips)
		for i, f := range j.Desired.Frontends {
			if j.Addresses[i].IsValid() { // else its frontend is gone, and what people know of it stays
				continue
			}
			at := slices.IndexFunc(j.Shown, f.Frontend.Family.Of)
			if at >= 0 {
				j.Addresses[i] = j.Shown[at]
			}
		}
	}
}
