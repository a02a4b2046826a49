// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// withoutConflicts returns the jobs without conflicts; the parts of the others stay as they are. A missing load
// balancer has its own conflict: all of its parts are missing, and only another deletion is a revert.
func (l *loadBalancer) withoutConflicts(jobs []*job, p plan.Plan, missing bool) []*job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		switch {
		case j.isLeaving():
			l.conflicts.RemoveService(j.Service, conflict.LoadBalancer)
			return false
		case p.Rejected[j.Owner] != nil:
			return false
		}
		differ := jobChanges(j, p.Changes)
		if missing && len(differ) > 0 {
			differ = []conflict.RevertedPart{{Part: string(conflict.LoadBalancer), Text: "it is gone", IsResource: true}}
		}
		return l.conflicts.RecordReverts(conflict.LoadBalancer, j.Service, j.desiredKey(), l.name(), differ, time.Now())
	})
}

func jobChanges(j *job, changes []lb.Change) []conflict.RevertedPart {
	var parts []conflict.RevertedPart
	for _, c := range changes {
		shared := c.Kind == lb.KindProbe && slices.ContainsFunc(j.localSpec.Probes, func(p lb.Probe) bool { return strings.EqualFold(p.Name, c.Name) }) ||
			c.Kind == lb.KindPool && slices.ContainsFunc(j.Pools, func(p service.Pool) bool { return strings.EqualFold(p.Name, c.Name) })
		if shared || c.Kind != lb.KindPool && hasPrefixFold(c.Name, j.Owner) {
			parts = append(parts, conflict.NewRevertedPart(c))
		}
	}
	return parts
}

// checkResult compares the load balancer after a write with the plan and returns the Services in sync; the others
// must retry. If a part without a Service differs, all must retry.
func (l *loadBalancer) checkResult(observed lb.LoadBalancer, served []*job, snap snapshot, p plan.Plan) ([]*job, error) {
	if p.Delete {
		return served, nil
	}
	snap.observed = observed
	replanned := plan.Make(l.planInput(served, snap))
	if replanned.IsEmpty() {
		return served, nil
	}
	blamed := map[string]bool{}
	of := map[*job][]conflict.RevertedPart{}
	for _, j := range served {
		if j.isLeaving() {
			continue
		}
		of[j] = jobChanges(j, replanned.Changes)
		for _, u := range of[j] {
			blamed[u.Part] = true
		}
	}
	if slices.ContainsFunc(replanned.Changes, func(c lb.Change) bool { return !blamed[conflict.NewRevertedPart(c).Part] }) {
		first := replanned.Changes[0]
		return served, mismatchFault(l.id, len(replanned.Changes), fmt.Sprintf("%s %s %s", first.Action, first.Kind, first.Name))
	}
	return slices.DeleteFunc(slices.Clone(served), func(j *job) bool {
		if len(of[j]) == 0 {
			return false
		}
		l.conflicts.RecordMismatch(conflict.LoadBalancer, j.Service, time.Now())
		j.rejection = mismatchFault(l.id, len(of[j]), of[j][0].Text)
		return true
	}), nil
}

func mismatchFault(on lb.LoadBalancerID, parts int, first string) error {
	return &armerror.Fault{
		Class: armerror.Retriable, Code: armerror.CodeOutcomeUnknown, Reason: "outcome_unknown",
		Err: fmt.Errorf("load balancer %s: Azure reported success, and shows %d parts otherwise than written: %s", on.Name, parts, first),
	}
}
