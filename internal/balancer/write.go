// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
)

// passDeadline bounds one write of a load balancer. What it leaves behind is settled by
// the next read.
const passDeadline = 10 * time.Minute

// write plans the next step of these jobs on the load balancer and carries it out, in one
// write. The jobs of refused are left out. An error is that of all others.
func (w *worker) write(ctx context.Context, jobs []*job, ips *publicip.Round) (refused map[*job]error, err error) {
	unlock, err := w.cfg.Lanes.Lock(ctx, w.id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := w.gate(ctx); err != nil {
		return nil, err
	}
	within, cancel := context.WithTimeout(ctx, passDeadline)
	defer cancel()
	if failed := contest.Leased(within, w.cfg.Lease, func(valid func() bool) {
		refused, err = contest.Twice(func() (map[*job]error, error) { return w.apply(within, jobs, ips, valid) }, w.overtaken(resourceBalancer))
	}); failed != nil {
		return nil, failed
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = &fault.Fault{
			Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown", Undecided: true,
			Err: fmt.Errorf("load balancer %s: no end within %s: %w", w.id.Name, passDeadline, err),
		}
	}
	return refused, err
}

// gate waits for the load balancer's turn. What is closed is an error: who asked waits,
// and not the lane.
func (w *worker) gate(ctx context.Context) error {
	for {
		until, why := w.cfg.Azure.Enter(w.id)
		switch {
		case until.IsZero():
			return nil
		case why != "":
			return &fault.Fault{Class: fault.Retriable, Code: fault.CodeGateClosed, Reason: "gate_closed", RetryAt: until, Err: errors.New("not sent: " + why)}
		case !pause(ctx, time.Until(until)):
			return ctx.Err()
		}
	}
}

// apply reads the load balancer, plans, writes, and checks what Azure then shows.
func (w *worker) apply(ctx context.Context, jobs []*job, ips *publicip.Round, valid func() bool) (map[*job]error, error) {
	observed, err := w.read(ctx, jobs)
	if err != nil {
		return nil, err
	}
	owners := w.others()
	foreign, err := w.foreign(ctx, observed, jobs)
	if err != nil {
		return nil, err
	}
	w.hold(jobs, observed)
	p := plan.Make(w.input(observed, jobs, owners, foreign, ips))
	all := jobs
	if jobs = w.uncontested(all, p); len(jobs) < len(all) {
		p = plan.Make(w.input(observed, jobs, owners, foreign, ips))
	}
	refused := map[*job]error{}
	for _, j := range jobs {
		if why := p.Refused[j.Owner]; why != nil {
			refused[j] = why
		}
	}
	served := slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return refused[j] != nil })
	shown := observed
	if !p.Empty() || observed.Provisioning == lb.Failed {
		if !valid() {
			return nil, contest.ErrLeaseLost
		}
		if shown, err = w.carryOut(ctx, observed, p); err != nil {
			return refused, err
		}
		if again := plan.Make(w.input(shown, served, owners, foreign, ips)); !p.Delete && !again.Empty() {
			if served, err = w.notShown(served, again, refused); err != nil {
				return refused, err
			}
		}
	}
	w.atlas.saw(shown)
	w.stays(all, jobs, shown, ips)
	w.log(ctx, p, jobs)
	ips.Retire(p.Changes)
	for _, j := range served {
		j.changed = j.changed || touches(p.Changes, j.Owner)
		j.keeps(p.Kept)
		if shown.Etag == "" { // deleted now, or by a write whose answer was lost
			j.gone = append(j.gone, w.id)
		}
		for _, name := range j.OwnPools {
			if !slices.ContainsFunc(shown.Pools, func(p lb.Pool) bool { return equalFold(p.ID.Name, name) }) {
				j.without = append(j.without, lb.PoolID{LoadBalancer: w.id, Name: name})
			}
		}
		j.ips.Lost = append(j.ips.Lost, publicip.Lost(changesOf(p.Changes, j.Owner))...)
		w.address(j, shown, ips)
	}
	return refused, nil
}

// read returns the load balancer; where there is none, the one that would be made.
func (w *worker) read(ctx context.Context, jobs []*job) (lb.LoadBalancer, error) {
	observed, err := w.cfg.Azure.GetLoadBalancer(ctx, w.id)
	f := fault.From(err)
	switch {
	case f != nil && f.Class == fault.Stale:
		needed := slices.ContainsFunc(jobs, func(j *job) bool { return !j.steps[0].leaves })
		if needed && w.cfg.Location == "" {
			return lb.LoadBalancer{}, fmt.Errorf(`load balancer %s has to be made, and azure.json does not say where: set its key "location"`, w.id.Name)
		}
		return lb.LoadBalancer{ID: w.id, Location: w.cfg.Location, SKU: lb.Standard, Tags: maps.Clone(w.cfg.Tags)}, nil
	case err != nil:
		return lb.LoadBalancer{}, err
	case observed.SKU != lb.Standard:
		return lb.LoadBalancer{}, fmt.Errorf("load balancer %s is of SKU %s: Weir writes Standard ones only. Upgrade it: https://learn.microsoft.com/azure/load-balancer/upgrade-basic-standard-with-powershell", w.id.Name, observed.SKU)
	case observed.Provisioning == lb.Updating:
		return lb.LoadBalancer{}, w.busy.Found("load balancer "+w.id.Name, time.Now())
	}
	w.busy.Free("load balancer " + w.id.Name)
	return observed, nil
}

// others are the owners of Services that may have something on the load balancer.
func (w *worker) others() []string {
	elsewhere := w.atlas.elsewhere(w.id.Name)
	return slices.DeleteFunc(w.cfg.Cluster.Owners(), func(owner string) bool { return elsewhere[owner] })
}

func (w *worker) input(observed lb.LoadBalancer, jobs []*job, owners []string, foreign map[string][]netip.Addr, ips *publicip.Round) plan.Input {
	in := plan.Input{
		Observed: observed, MostRules: w.cfg.MostRules,
		SharedPools: w.cfg.SharedPools(), SharedProbes: []string{service.SharedProbeName},
		Foreign: foreign, ServiceOf: w.serviceOf(), AddressAt: ips.AddressAt,
	}
	due := map[string]bool{}
	for _, j := range jobs {
		in.Shares = append(in.Shares, w.share(j, ips))
		due[j.Owner] = true
	}
	for _, owner := range owners {
		if !due[owner] {
			in.Others = append(in.Others, owner)
		}
	}
	return in
}

// serviceOf names the Service of the cluster that a rule is of. It looks at all of them when it
// is asked first.
func (w *worker) serviceOf() func(rule string) string {
	services := sync.OnceValue(func() map[string]string {
		of := map[string]string{}
		for _, r := range w.cfg.Cluster.Reached() {
			of[strings.ToLower(r.Owner)] = r.Service
		}
		return of
	})
	return func(rule string) string {
		owner, _, _ := strings.Cut(rule, "-")
		return services()[strings.ToLower(owner)]
	}
}

// carryOut carries out a plan, with the newest addresses of all pools.
func (w *worker) carryOut(ctx context.Context, observed lb.LoadBalancer, p plan.Plan) (lb.LoadBalancer, error) {
	if p.Delete {
		err := w.cfg.Azure.DeleteLoadBalancer(ctx, observed)
		return lb.LoadBalancer{ID: w.id}, err
	}
	next := p.Next
	pools, settled := w.cfg.Lanes.Carry(ctx, w.id, next.Pools)
	next.Pools = pools
	shown, err := w.cfg.Azure.PutLoadBalancer(ctx, next)
	if err != nil {
		f := fault.From(err) // what Azure accepted may have made pools, whatever it then says
		settled(nil, f.Undecided || f.Ended || ctx.Err() != nil)
		return lb.LoadBalancer{}, err
	}
	settled(shown.Pools, false)
	return shown, nil
}

// address notes the addresses of a job's frontends.
func (w *worker) address(j *job, shown lb.LoadBalancer, ips *publicip.Round) {
	if j.steps[0].leaves {
		return
	}
	j.addresses = nil
	for i, f := range j.Desired.Frontends {
		addr := f.Frontend.PrivateIP
		if ip, public := ips.Of(j.ips, i); public {
			addr = ip.Address
		} else if at := slices.IndexFunc(shown.Frontends, func(s lb.Frontend) bool { return equalFold(s.Name, f.Frontend.Name) }); at >= 0 && !f.Frontend.Static {
			addr = shown.Frontends[at].PrivateIP
		}
		j.addresses = append(j.addresses, addr)
	}
}

// changesOf are the changes of an owner's parts.
func changesOf(changes []plan.Change, owner string) []plan.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c plan.Change) bool { return !hasPrefixFold(c.Name, owner) })
}

// touches reports whether a plan changes what is an owner's.
func touches(changes []plan.Change, owner string) bool {
	return slices.ContainsFunc(changes, func(c plan.Change) bool { return hasPrefixFold(c.Name, owner) })
}

func describe(c plan.Change) string {
	return strings.Join([]string{string(c.Action), string(c.Kind), c.Name}, " ")
}

func (w *worker) log(ctx context.Context, p plan.Plan, jobs []*job) {
	log := w.cfg.Log.With("loadBalancer", w.id.Name, "services", servicesOf(jobs))
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

func servicesOf(jobs []*job) string {
	var names []string
	for _, j := range jobs[:min(len(jobs), mostNamed)] {
		names = append(names, j.Service)
	}
	text := strings.Join(names, ", ")
	if more := len(jobs) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
