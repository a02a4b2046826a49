// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
)

// carryOut carries out a plan, with the newest addresses of all pools.
func (l *loadBalancer) carryOut(ctx context.Context, observed lb.LoadBalancer, p plan.Plan) (lb.LoadBalancer, error) {
	if p.Delete {
		err := l.cfg.Azure.DeleteLoadBalancer(ctx, observed)
		return lb.LoadBalancer{ID: l.id}, err
	}
	next := p.Next
	pools, settled := l.cfg.Lanes.Carry(ctx, l.id, next.Pools)
	next.Pools = pools
	shown, err := l.cfg.Azure.PutLoadBalancer(ctx, next)
	if err != nil {
		f := fault.From(err) // what Azure accepted may have made pools, whatever it then says
		settled(nil, f.Undecided || f.Ended || ctx.Err() != nil)
		return lb.LoadBalancer{}, err
	}
	settled(shown.Pools, false)
	return shown, nil
}

// check compares what Azure shows after a write with what was written. The Services whose parts
// are otherwise have to try again, and the others are returned; if a part is nobody's, all have to.
func (l *loadBalancer) check(shown lb.LoadBalancer, served []*job, seen snapshot, p plan.Plan, refused map[*job]error) ([]*job, error) {
	if p.Delete {
		return served, nil
	}
	seen.observed = shown
	again := plan.Make(l.input(served, seen))
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
		return served, l.otherwise(len(again.Changes), fmt.Sprintf("%s %s %s", first.Action, first.Kind, first.Name))
	}
	return slices.DeleteFunc(slices.Clone(served), func(j *job) bool {
		if len(of[j]) == 0 {
			return false
		}
		l.contests.ShownOtherwise(contest.LoadBalancer, j.Service, time.Now())
		refused[j] = l.otherwise(len(of[j]), of[j][0].Text)
		return true
	}), nil
}

// otherwise is the fault of a write after which Azure shows something else.
func (l *loadBalancer) otherwise(parts int, first string) error {
	return &fault.Fault{
		Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown",
		Err: fmt.Errorf("load balancer %s: Azure reported success, and shows %d parts otherwise than written: %s", l.id.Name, parts, first),
	}
}
