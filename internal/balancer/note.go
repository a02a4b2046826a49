// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/leftpool"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
)

type outcome struct {
	plan.Plan
	// jobs are all jobs, due the jobs of the plan, served those for which Azure shows the planned state.
	jobs, due, served []*job
	shown             lb.LoadBalancer
	ips               *publicip.Round
}

func (l *loadBalancer) settle(ctx context.Context, o outcome) {
	l.log(ctx, o.Plan, o.due)
	l.placements.saw(o.shown)
	o.ips.Retire(o.Changes)
	for _, j := range o.jobs {
		if !slices.Contains(o.due, j) && j.refused == nil && len(j.clears) == 0 {
			j.noteLeft(o)
		}
	}
	for _, j := range o.served {
		l.noteServed(j, o)
	}
}

func (l *loadBalancer) noteServed(j *job, o outcome) {
	its := changesOf(o.Changes, j.Owner)
	j.Changed = j.Changed || len(its) > 0
	j.noteKept(o.Kept)
	if j.leaves() {
		j.Emptying = append(j.Emptying, o.Emptying...)
		if len(o.Emptying) > 0 && o.Retained != nil && o.ips.Needs(j.Desired, *o.Retained) {
			j.Awaits, j.steps = true, j.steps[:1]
		}
	}
	if o.shown.Etag == "" { // deleted now, or by a write with a lost response
		j.Gone = append(j.Gone, l.id)
	}
	l.noteConversions(j, o.shown)
	for _, name := range append(l.cfg.InterimPools(), j.OwnPools...) {
		if _, exists := poolNamed(o.shown, name); !exists {
			j.Without = append(j.Without, lb.PoolID{LoadBalancer: l.id, Name: name})
		}
	}
	if l.former != nil && j.Desired != nil { // a leaving Service is closed already
		l.former.Note(j.Owner, taken(its, o.ips))
	}
	j.ips.Lost = append(j.ips.Lost, publicip.Lost(its)...)
	j.noteAddresses(o.shown, o.ips)
}

func (j *job) noteLeft(o outcome) {
	j.noteAddresses(o.shown, o.ips)
	for i, f := range j.Desired.Frontends {
		if j.Addresses[i].IsValid() { // otherwise keep the last known address
			continue
		}
		if at := slices.IndexFunc(j.Shown, f.Frontend.Family.Of); at >= 0 {
			j.Addresses[i] = j.Shown[at]
		}
	}
}

func changesOf(changes []plan.Change, owner string) []plan.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c plan.Change) bool { return !hasPrefixFold(c.Name, owner) })
}

func (j *job) noteAddresses(observed lb.LoadBalancer, ips *publicip.Round) {
	if j.leaves() {
		return
	}
	j.Addresses = nil
	for i, f := range j.wanted.Frontends {
		addr := f.Frontend.PrivateIP
		if ip, public := ips.Of(j.ips, i); public {
			addr = ip.Address
		} else if at := plan.FrontendOf(observed, j.wanted.Rules, f.Frontend.Name); at >= 0 && !f.Frontend.Static {
			addr = observed.Frontends[at].PrivateIP
		}
		j.Addresses = append(j.Addresses, addr)
	}
}

// noteLeft persists which pools stay for foreign members, before their BackendPools are deleted. It returns the
// jobs with recorded pools.
func noteLeft(ctx context.Context, l *loadBalancer, jobs []*job, p plan.Plan, observed lb.LoadBalancer) []*job {
	left := leftpool.Left{}
	return slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool {
		for _, k := range p.Kept {
			if k.Frontend == nil && k.Owner == j.Owner {
				left[k.Pool] = j.Service
			}
		}
		err := l.left.Note(ctx, left, l.id, observed)
		if err != nil && slices.ContainsFunc(p.Kept, func(k plan.Kept) bool { return k.Frontend == nil && k.Owner == j.Owner }) {
			j.refused = err
		}
		return j.refused != nil
	})
}

// noteKept records the retained pools and frontends: a Service's own and, if it leaves, those that retain the
// load balancer.
func (j *job) noteKept(all []plan.Kept) {
	for _, k := range all {
		its := k.Owner == j.Owner || k.Owner == "" && j.leaves() || k.Converting || k.Frontend != nil && hasPrefixFold(k.Frontend.Name, j.Owner)
		if its && !slices.ContainsFunc(j.Kept, func(o plan.Kept) bool { return reflect.DeepEqual(o, k) }) {
			j.Kept = append(j.Kept, k)
		}
	}
}

func (j *job) stepDone(contests *contest.Contests) {
	j.steps, j.cleared, j.begun = j.steps[1:], false, true
	j.contested(contests.Shown(contest.PublicIPs, j.Service))
	if !j.waitsForFill() && !slices.ContainsFunc(j.converting, j.takes) { // otherwise a rule that still waits for its pool would look like a reverted change
		j.contested(contests.Shown(contest.LoadBalancer, j.Service))
	}
}

func (l *loadBalancer) log(ctx context.Context, p plan.Plan, jobs []*job) {
	log := logFor(l.cfg.Log, "loadBalancer", l.id.Name, jobs)
	switch {
	case p.Empty():
		log.DebugContext(ctx, "load balancer level")
	case p.Delete:
		log.InfoContext(ctx, "load balancer deleted: nothing is left on it")
	default:
		log.InfoContext(ctx, "load balancer written", "changes", len(p.Changes))
	}
}

const mostNamed = 10

func logFor(log *slog.Logger, kind, name string, jobs []*job) *slog.Logger {
	var names []string
	for _, j := range jobs[:min(len(jobs), mostNamed)] {
		names = append(names, j.Service)
	}
	text := strings.Join(names, ", ")
	if more := len(jobs) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return log.With(kind, name, "services", text)
}
