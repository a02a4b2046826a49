// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
)

// uncontested returns the jobs but for those whose parts of the load balancer are contested:
// these stay as they are.
func (w *worker) uncontested(jobs []*job, p plan.Plan) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		switch {
		case j.steps[0].leaves:
			w.contests.Forget(j.Service, contest.LoadBalancer)
			return false
		case p.Refused[j.Owner] != nil:
			return false
		}
		return w.contests.Leave(contest.LoadBalancer, j.Service, j.asked(), "load balancer "+w.id.Name, differing(j, p.Changes), time.Now())
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

// notShown is for a write after which Azure shows parts otherwise than written. The Services
// whose parts these are have to try again, and the others are returned; if a part is nobody's,
// all have to.
func (w *worker) notShown(served []*job, again plan.Plan, refused map[*job]error) ([]*job, error) {
	fail := func(changes []contest.Undone, first string) error {
		return &fault.Fault{
			Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown",
			Err: fmt.Errorf("load balancer %s: Azure reported success, and shows %d parts otherwise than written: %s", w.id.Name, len(changes), first),
		}
	}
	blamed := map[string]bool{}
	var all []contest.Undone
	for _, c := range again.Changes {
		all = append(all, contest.UndoneBy(c))
	}
	of := map[*job][]contest.Undone{}
	for _, j := range served {
		if j.steps[0].leaves {
			continue
		}
		of[j] = differing(j, again.Changes)
		for _, u := range of[j] {
			blamed[u.Part] = true
		}
	}
	if slices.ContainsFunc(all, func(u contest.Undone) bool { return !blamed[u.Part] }) {
		return served, fail(all, describe(again.Changes[0]))
	}
	return slices.DeleteFunc(slices.Clone(served), func(j *job) bool {
		if len(of[j]) == 0 {
			return false
		}
		w.contests.ShownOtherwise(contest.LoadBalancer, j.Service, time.Now())
		refused[j] = fail(of[j], of[j][0].Text)
		return true
	}), nil
}

// stays notes what a job has that is left as it is.
func (w *worker) stays(jobs, due []*job, shown lb.LoadBalancer, ips *publicip.Round) {
	for _, j := range jobs {
		if slices.Contains(due, j) {
			continue
		}
		w.address(j, shown, ips)
		for i, f := range j.Desired.Frontends {
			if j.addresses[i].IsValid() { // else its frontend is gone, and what people know of it stays
				continue
			}
			at := slices.IndexFunc(j.Shown, f.Frontend.Family.Of)
			if at >= 0 {
				j.addresses[i] = j.Shown[at]
			}
		}
	}
}
