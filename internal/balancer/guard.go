// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
	"weir.dev/weir/internal/plan"
)

// guard brings the cluster's security group level: all Services that are due in one write,
// as a worker does with a load balancer. It alone writes the group, and holds up no load
// balancer.
type guard struct {
	*worker
	// known are the Services for which the group holds what they want, by owner, and those that leave and for
	// which it is closed.
	known map[string]guarded
	// had are the destinations that were ours at the last write: those that nobody asks for
	// any more are closed by the next.
	had map[netip.Addr]bool
	// holds says which Service was the first to name an additional address.
	holds map[netip.Addr]string
	// left are the rules of the group as the last pass left them, or would have without contests.
	left []lb.SecurityRule
}

// Reached is where a Service of the cluster is reached, as far as Kubernetes shows.
type Reached struct {
	Owner string
	// Service is its namespace and name, with a slash.
	Service string
	// Addresses are those that its status shows.
	Addresses []netip.Addr
	NodePorts []int32
	// Additional are the further addresses that it names.
	Additional []netip.Addr
}

func newGuard(b *Balancers) *guard {
	g := &guard{worker: &worker{Balancers: b, wake: make(chan struct{}, 1)}, known: map[string]guarded{}, had: map[netip.Addr]bool{}}
	g.work = g.pass
	return g
}

// pass has the group admit what these jobs want.
func (g *guard) pass(ctx context.Context, jobs []*job) {
	// In which order load balancers are ready is chance: priorities are not to depend on it.
	slices.SortStableFunc(jobs, func(a, b *job) int { return strings.Compare(a.Service, b.Service) })
	jobs = slices.DeleteFunc(jobs, func(j *job) bool {
		why := g.refused(contest.SecurityGroup, j)
		if why != nil {
			g.fail(ctx, j, why)
		}
		return why != nil
	})
	for _, j := range g.blame(ctx, jobs, contest.SecurityGroup, g.write) {
		j.steps = j.steps[1:]
		g.trust(contest.SecurityGroup, j)
		g.next(j)
	}
}

// write plans for these jobs and carries it out, in one write.
func (g *guard) write(ctx context.Context, jobs []*job) (refused map[*job]error, err error) {
	within, cancel := context.WithTimeout(ctx, passDeadline)
	defer cancel()
	if failed := contest.Leased(within, g.cfg.Lease, func(valid func() bool) {
		refused, err = contest.Twice(func() (map[*job]error, error) { return g.apply(within, jobs, valid) }, g.overtaken(resourceSecurityGroup))
	}); failed != nil {
		return nil, failed
	}
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = &fault.Fault{
			Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown", Undecided: true,
			Err: fmt.Errorf("%s: no end within %s: %w", g.name(), passDeadline, err),
		}
	}
	return refused, err
}

func (g *guard) name() string { return "security group " + g.cfg.SecurityGroup.Name }

func (g *guard) apply(ctx context.Context, jobs []*job, valid func() bool) (map[*job]error, error) {
	observed, err := g.cfg.Azure.GetSecurityGroup(ctx, g.cfg.SecurityGroup)
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		return g.missing(jobs), nil
	}
	if err != nil {
		return nil, err
	}
	if observed.Provisioning == lb.Updating {
		return nil, g.busy.Found(g.name(), time.Now())
	}
	g.busy.Free(g.name())
	s := g.survey(jobs, nil)
	p := nsg.Merge(s.input(observed.Rules))
	left := p.Next
	if stay := g.fought(jobs, s, p, observed.Rules); len(stay) > 0 {
		s = g.survey(jobs, stay)
		p = nsg.Merge(s.input(observed.Rules))
	}
	if !p.Empty() {
		if !valid() {
			return nil, contest.ErrLeaseLost
		}
		if err := g.put(ctx, observed, s, p); err != nil {
			return g.refusals(jobs, p), err
		}
	}
	g.left = left
	g.log(ctx, p, jobs)
	note := g.note(observed)
	refused := g.refusals(jobs, p)
	for _, j := range jobs {
		if refused[j] == nil {
			g.settle(j, s, p)
			if j.Desired != nil && len(g.admissions(guardedBy(j))) > 0 {
				j.note = joined(note, s.naming.withheld(guardedBy(j)))
			}
		}
	}
	g.had = s.ours(g.known)
	g.holds = s.naming.holders(g.known)
	g.seen(jobs, p)
	return refused, nil
}

// note says what keeps the group from guarding the nodes. A group of a network interface
// is not given to the interfaces of new nodes.
func (g *guard) note(shown lb.SecurityGroup) string {
	switch {
	case shown.Subnets > 0:
		return ""
	case shown.Interfaces > 0:
		return fmt.Sprintf("%s is on %d network interfaces and on no subnet: its rules do not count for nodes whose interfaces do not have it", g.name(), shown.Interfaces)
	}
	return g.name() + " is on no subnet and on no network interface: its rules have no effect"
}

// put writes the group, and checks what Azure then shows.
func (g *guard) put(ctx context.Context, observed lb.SecurityGroup, s situation, p nsg.Plan) error {
	observed.Rules = p.Next
	shown, err := g.cfg.Azure.PutSecurityGroup(ctx, observed)
	if err != nil {
		return err
	}
	if again := nsg.Merge(s.input(shown.Rules)); !again.Empty() {
		return &fault.Fault{
			Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown",
			Err: fmt.Errorf("%s: Azure reported success, and shows %d rules otherwise than written: %s", g.name(), len(again.Changes), describe(again.Changes[0])),
		}
	}
	return nil
}

// missing lets those go who leave, or ask for nothing: a group that is not there admits
// nobody, and keeps nobody out.
func (g *guard) missing(jobs []*job) map[*job]error {
	refused := map[*job]error{}
	for _, j := range jobs {
		if j.Desired != nil && len(g.admissions(guardedBy(j))) > 0 {
			refused[j] = fmt.Errorf("%s: resource group %s has none of that name: create it and give it to the nodes' subnet, or correct securityGroupName and securityGroupResourceGroup in azure.json",
				g.name(), g.cfg.SecurityGroup.ResourceGroup)
		}
	}
	return refused
}

func (g *guard) refusals(jobs []*job, p nsg.Plan) map[*job]error {
	refused := map[*job]error{}
	for _, j := range jobs {
		if why := p.Refused[j.Owner]; why != nil {
			refused[j] = fmt.Errorf("%s: %w", g.name(), why)
		} else if j.Desired != nil && j.Desired.NodePorts() != nil {
			if _, ok := g.cfg.Cluster.NodesOf(j.On); !ok {
				refused[j] = errors.New(g.name() + ": the nodes behind load balancer " + j.On.Name + " are not known yet")
			}
		}
	}
	return refused
}

// settle notes that the group holds what a job wants.
func (g *guard) settle(j *job, s situation, p nsg.Plan) {
	here := s.places(guardedBy(j))
	j.changed = j.changed || slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return concerns(c, here) })
	g.known[j.Owner] = guardedBy(j)
}

// concerns reports whether a change of a rule lets somebody in at these addresses, or keeps
// him out, who was not or was.
func concerns(c plan.Change, at []netip.Addr) bool {
	was, _ := c.Was.(lb.SecurityRule)
	is, _ := c.Is.(lb.SecurityRule)
	return slices.ContainsFunc(at, func(a netip.Addr) bool {
		return slices.Contains(was.Destinations, a.String()) != slices.Contains(is.Destinations, a.String())
	})
}

func (g *guard) log(ctx context.Context, p nsg.Plan, jobs []*job) {
	log := g.cfg.Log.With("securityGroup", g.cfg.SecurityGroup.Name, "services", servicesOf(jobs))
	if p.Empty() {
		log.DebugContext(ctx, "security group level")
		return
	}
	log.InfoContext(ctx, "security group written", "changes", len(p.Changes))
}
