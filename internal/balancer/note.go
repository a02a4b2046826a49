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
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
)

// note notes what Azure has for the jobs that were served.
func (l *loadBalancer) note(served []*job, shown lb.LoadBalancer, p plan.Plan, ips *publicip.Round) {
	ips.Retire(p.Changes)
	for _, j := range served {
		its := changesOf(p.Changes, j.Owner)
		j.Changed = j.Changed || len(its) > 0
		j.noteKept(p.Kept)
		if shown.Etag == "" { // deleted now, or by a write whose answer was lost
			j.Gone = append(j.Gone, l.id)
		}
		for _, name := range j.OwnPools {
			if _, there := poolNamed(shown, name); !there {
				j.Without = append(j.Without, lb.PoolID{LoadBalancer: l.id, Name: name})
			}
		}
		if l.former != nil && j.Desired != nil { // one that goes has been closed
			l.former.note(j.Owner, taken(its, ips))
		}
		j.ips.Lost = append(j.ips.Lost, publicip.Lost(its)...)
		j.noteAddresses(shown, ips)
	}
}

// changesOf are the changes of an owner's parts.
func changesOf(changes []plan.Change, owner string) []plan.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c plan.Change) bool { return !hasPrefixFold(c.Name, owner) })
}

// noteAddresses notes the addresses of a job's frontends.
func (j *job) noteAddresses(shown lb.LoadBalancer, ips *publicip.Round) {
	if j.leaves() {
		return
	}
	j.Addresses = nil
	for i, f := range j.Desired.Frontends {
		addr := f.Frontend.PrivateIP
		if ip, public := ips.Of(j.ips, i); public {
			addr = ip.Address
		} else if at := slices.IndexFunc(shown.Frontends, func(s lb.Frontend) bool { return equalFold(s.Name, f.Frontend.Name) }); at >= 0 && !f.Frontend.Static {
			addr = shown.Frontends[at].PrivateIP
		}
		j.Addresses = append(j.Addresses, addr)
	}
}

// noteKept notes the pools that stay for the addresses of others: a Service's own, and of one that
// leaves those that keep the load balancer.
func (j *job) noteKept(all []plan.Kept) {
	for _, k := range all {
		its := k.Owner == j.Owner || k.Owner == "" && j.leaves()
		if its && !slices.ContainsFunc(j.Kept, func(o plan.Kept) bool { return reflect.DeepEqual(o, k) }) {
			j.Kept = append(j.Kept, k)
		}
	}
}

// stepDone takes a job's step off, and notes the contests about what it has.
func (j *job) stepDone(contests *contest.Contests) {
	j.steps = j.steps[1:]
	j.contested(contests.Shown(contest.PublicIPs, j.Service))
	if !j.waitsForFill() { // else a rule that moves to the pool once it is filled was not undone by anybody
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

// mostNamed is how many Services a line of the log names.
const mostNamed = 10

// logFor is the log of what is done to a resource for some jobs.
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
