// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// uncontested returns the jobs without conflicts; the parts of the others stay as they are. A missing load
// balancer is a conflict of its own: deleting it again is the only change that keeps it missing.
func (l *loadBalancer) uncontested(jobs []*job, p plan.Plan, missing bool) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		switch {
		case j.leaves():
			l.contests.Forget(j.Service, contest.LoadBalancer)
			return false
		case p.Refused[j.Owner] != nil:
			return false
		}
		differ := differing(j, p.Changes)
		if missing && len(differ) > 0 {
			differ = []contest.Undone{{Part: string(contest.LoadBalancer), Text: "it is gone"}}
		}
		return l.contests.Leave(contest.LoadBalancer, j.Service, j.asked(), l.name(), differ, time.Now())
	})
}

func differing(j *job, changes []plan.Change) []contest.Undone {
	var all []contest.Undone
	for _, c := range changes {
		shared := c.Kind == plan.Probe && slices.ContainsFunc(j.wanted.Probes, func(p lb.Probe) bool { return strings.EqualFold(p.Name, c.Name) }) ||
			c.Kind == plan.Pool && slices.ContainsFunc(j.Pools, func(p service.Pool) bool { return strings.EqualFold(p.Name, c.Name) })
		if shared || c.Kind != plan.Pool && hasPrefixFold(c.Name, j.Owner) {
			all = append(all, contest.UndoneBy(c))
		}
	}
	return all
}

// check compares the load balancer after a write with the plan and returns the Services in sync; the others
// must retry. If a part without a Service differs, all must retry.
func (l *loadBalancer) check(observed lb.LoadBalancer, served []*job, snap snapshot, p plan.Plan) ([]*job, error) {
	if p.Delete {
		return served, nil
	}
	snap.observed = observed
	again := plan.Make(l.input(served, snap))
	if again.Empty() {
		return served, nil
	}
	blamed := map[string]bool{}
	of := map[*job][]contest.Undone{}
	for _, j := range served {
		if j.leaves() {
			continue
		}
		of[j] = differing(j, again.Changes)
		for _, u := range of[j] {
			blamed[u.Part] = true
		}
	}
	if slices.ContainsFunc(again.Changes, func(c plan.Change) bool { return !blamed[contest.UndoneBy(c).Part] }) {
		first := again.Changes[0]
		return served, otherwise(l.id, len(again.Changes), fmt.Sprintf("%s %s %s", first.Action, first.Kind, first.Name))
	}
	return slices.DeleteFunc(slices.Clone(served), func(j *job) bool {
		if len(of[j]) == 0 {
			return false
		}
		l.contests.ShownOtherwise(contest.LoadBalancer, j.Service, time.Now())
		j.refused = otherwise(l.id, len(of[j]), of[j][0].Text)
		return true
	}), nil
}

func otherwise(on lb.LoadBalancerID, parts int, first string) error {
	return &fault.Fault{
		Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown",
		Err: fmt.Errorf("load balancer %s: Azure reported success, and shows %d parts otherwise than written: %s", on.Name, parts, first),
	}
}
