// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/publicip"
)

type tryResult struct {
	plan.Plan
	// jobs are all jobs, due the jobs of the plan, served those for which Azure shows the planned state.
	jobs, due, inSync []*job
	observed          lb.LoadBalancer
	publicIPs         *publicip.Round
}

func (l *loadBalancer) recordOutcome(ctx context.Context, o tryResult) {
	l.logChanges(ctx, o.Plan, o.due)
	l.cache.recordState(o.observed)
	o.publicIPs.RecordRemoved(o.Changes)
	for _, j := range o.jobs {
		if !slices.Contains(o.due, j) && j.rejection == nil && len(j.toUnpublish) == 0 {
			j.recordUnchanged(o)
		}
	}
	for _, j := range o.inSync {
		l.recordInSync(j, o)
	}
}

func (l *loadBalancer) recordInSync(j *job, o tryResult) {
	changes := changesOf(o.Changes, j.Owner)
	j.Changed = j.Changed || len(changes) > 0
	j.recordRetained(o.RetainedParts)
	if j.isLeaving() {
		j.DrainingPools = append(j.DrainingPools, o.DrainingPools...)
		if len(o.DrainingPools) > 0 && o.RetainedFrontend != nil && o.publicIPs.NeedsAddress(j.Desired, *o.RetainedFrontend) {
			j.NeedsDrain, j.steps = true, j.steps[:1]
		}
	}
	if o.observed.Etag == "" { // deleted now, or by a write with a lost response
		j.DeletedLoadBalancers = append(j.DeletedLoadBalancers, l.id)
	}
	l.recordConversions(j, o.observed)
	for _, name := range append(l.cfg.TemporaryPools(), j.DedicatedPools...) {
		if _, exists := poolNamed(o.observed, name); !exists {
			j.MissingPools = append(j.MissingPools, lb.PoolID{LoadBalancer: l.id, Name: name})
		}
	}
	if l.formerAddresses != nil && j.Desired != nil { // a leaving Service is closed already
		l.formerAddresses.AddAddresses(j.Owner, releasedAddresses(changes, o.publicIPs))
	}
	j.ipRequest.LostGroups = append(j.ipRequest.LostGroups, publicip.LostGroups(changes)...)
	j.recordAddresses(o.observed, o.publicIPs)
}

func (j *job) recordUnchanged(o tryResult) {
	j.recordAddresses(o.observed, o.publicIPs)
	for i, f := range j.Desired.Frontends {
		if j.Addresses[i].IsValid() { // otherwise keep the last known address
			continue
		}
		if at := slices.IndexFunc(j.StatusAddresses, f.Frontend.Family.Contains); at >= 0 {
			j.Addresses[i] = j.StatusAddresses[at]
		}
	}
}

func changesOf(changes []lb.Change, owner string) []lb.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c lb.Change) bool { return !hasPrefixFold(c.Name, owner) })
}

func (j *job) recordAddresses(observed lb.LoadBalancer, ips *publicip.Round) {
	if j.isLeaving() {
		return
	}
	j.Addresses = nil
	for i, f := range j.localSpec.Frontends {
		addr := f.Frontend.PrivateIP
		if ip, public := ips.PublicIPOf(j.ipRequest, i); public {
			addr = ip.Address
		} else if at := plan.FrontendOf(observed, j.localSpec.Rules, f.Frontend.Name); at >= 0 && !f.Frontend.Static {
			addr = observed.Frontends[at].PrivateIP
		} else if !f.Frontend.Static { // without rules, it may have a retained frontend, under another name
			frontend, _ := plan.FrontendAt(observed, j.Owner, plan.PinAddress(f.Frontend, j.Owner, j.Service, j.localSpec.Rules, observed, nil))
			addr = frontend.PrivateIP
		}
		j.Addresses = append(j.Addresses, addr)
	}
}

// recordLeftPools persists which pools stay for foreign members, before their BackendPools are deleted. It returns the
// jobs with recorded pools.
func recordLeftPools(ctx context.Context, l *loadBalancer, jobs []*job, p plan.Plan, observed lb.LoadBalancer) []*job {
	pools := LeftPools{}
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		for _, k := range p.RetainedParts {
			if k.Frontend == nil && k.Owner == j.Owner {
				pools[k.Pool] = j.Service
			}
		}
		err := l.leftPools.RecordLeft(ctx, pools, l.id, observed)
		if err != nil && slices.ContainsFunc(p.RetainedParts, func(k plan.RetainedPart) bool { return k.Frontend == nil && k.Owner == j.Owner }) {
			j.rejection = err
		}
		return j.rejection != nil
	})
}

// recordRetained records the retained pools and frontends: a Service's own and, if it leaves, those that retain the
// load balancer.
func (j *job) recordRetained(parts []plan.RetainedPart) {
	for _, k := range parts {
		belongs := k.Owner == j.Owner || k.Owner == "" && j.isLeaving() || k.IsConversion || k.Frontend != nil && hasPrefixFold(k.Frontend.Name, j.Owner)
		if belongs && !slices.ContainsFunc(j.Retained, func(o plan.RetainedPart) bool { return reflect.DeepEqual(o, k) }) {
			j.Retained = append(j.Retained, k)
		}
	}
}

func (j *job) completeStep(conflicts *conflict.Conflicts) {
	j.steps, j.unpublishDone, j.started = j.steps[1:], false, true
	j.addConflicts(conflicts.RecordMatch(conflict.PublicIPs, j.Service))
	if !j.holdForFill() && !slices.ContainsFunc(j.conversions, j.needsInterim) { // otherwise a rule that still waits for its pool would look like a reverted change
		j.addConflicts(conflicts.RecordMatch(conflict.LoadBalancer, j.Service))
	}
}

func (l *loadBalancer) logChanges(ctx context.Context, p plan.Plan, jobs []*job) {
	log := logFor(l.cfg.Log, "loadBalancer", l.id.Name, jobs)
	switch {
	case p.IsEmpty():
		log.DebugContext(ctx, "load balancer in sync")
	case p.Delete:
		log.InfoContext(ctx, "load balancer deleted: nothing is left on it")
	default:
		log.InfoContext(ctx, "load balancer written", "changes", len(p.Changes))
	}
}

const maxNamed = 10

func logFor(log *slog.Logger, kind, name string, jobs []*job) *slog.Logger {
	var names []string
	for _, j := range jobs[:min(len(jobs), maxNamed)] {
		names = append(names, j.Service)
	}
	text := strings.Join(names, ", ")
	if more := len(jobs) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return log.With(kind, name, "services", text)
}
