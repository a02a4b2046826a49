// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
	"weir.dev/weir/internal/plan"
)

// Write writes the rules of these Services at once. The error applies to all requests without an Err of their
// own. Earlier requests take precedence.
func (g *Group) Write(ctx context.Context, requests []*Request, log *slog.Logger) error {
	for _, r := range requests {
		r.Demand = g.completeClosing(r.Demand)
	}
	return contest.Write(ctx, g.cfg.Lease, g.name(), g.cfg.Overtaken, func(ctx context.Context, valid func() bool) error {
		return g.try(ctx, requests, valid, log)
	})
}

// try reads, plans, writes, verifies and records the result.
func (g *Group) try(ctx context.Context, requests []*Request, valid func() bool, log *slog.Logger) error {
	observed, there, err := g.observe(ctx, requests)
	if !there || err != nil {
		return err
	}
	s, p, left := g.plan(requests, observed)
	if !p.Empty() && !valid() {
		return contest.ErrLeaseLost
	}
	if !p.Empty() {
		err = g.put(ctx, observed, s, p)
		if g.withoutUnknownTags(ctx, requests, observed, err, valid, log) && requests[0].Closes {
			return nil // the write of all its rules reports the tag
		}
	}
	g.refuse(requests, p)
	g.room.wrote(requests, p, err == nil)
	if err == nil {
		g.left = left
		logWritten(ctx, log, p)
		g.settle(requests, s, p, observed)
	}
	return err
}

func (g *Group) observe(ctx context.Context, requests []*Request) (observed lb.SecurityGroup, there bool, err error) {
	for _, r := range requests {
		r.Err = nil
	}
	observed, err = g.cfg.Azure.GetSecurityGroup(ctx, g.cfg.ID)
	switch f := fault.From(err); {
	case f != nil && f.Class == fault.Stale:
		g.missing(requests)
		return observed, false, nil
	case err != nil:
		return observed, false, err
	case observed.Provisioning == lb.Updating:
		return observed, true, g.cfg.InProgress.Found(g.name(), time.Now())
	}
	g.cfg.InProgress.Free(g.name())
	return observed, true, nil
}

// plan computes a plan that keeps contested Services unchanged. left are the rules as written without
// conflicts.
func (g *Group) plan(requests []*Request, observed lb.SecurityGroup) (s survey, p nsg.Plan, left []lb.SecurityRule) {
	s = g.survey(requests, nil)
	p = nsg.Merge(s.input(observed.Rules))
	left = p.Next
	if stay := g.contested(requests, s, p, observed.Rules); len(stay) > 0 {
		s = g.survey(requests, stay)
		p = nsg.Merge(s.input(observed.Rules))
	}
	return s, p, left
}

// settle records the written demands and the results of the requests.
func (g *Group) settle(requests []*Request, s survey, p nsg.Plan, observed lb.SecurityGroup) {
	for _, r := range requests {
		if r.Err != nil {
			continue
		}
		here := s.places(r.Demand)
		r.Changed = r.Changed || slices.ContainsFunc(p.Changes, func(c plan.Change) bool { return concerns(c, here) })
		known := r.Demand
		if !r.Closes {
			known.Had = nil // closed by now
		}
		g.known[r.Owner] = known
		if r.Desired != nil && !r.Closes && len(g.admissions(r.Demand)) > 0 {
			r.Note = joined(g.note(observed), s.naming.withheld(r.Demand))
		}
	}
	g.had = s.ours(g.known)
	g.sees(s.nodes, p.Next)
	g.holds = s.naming.holders(g.known)
	g.shown(requests, p)
}

// note returns a warning if the group does not protect all nodes. A group of a network interface does not
// apply to new nodes.
func (g *Group) note(shown lb.SecurityGroup) string {
	switch {
	case shown.Subnets > 0:
		return ""
	case shown.Interfaces > 0:
		return fmt.Sprintf("%s is on %d network interfaces and on no subnet: its rules do not count for nodes whose interfaces do not have it", g.name(), shown.Interfaces)
	}
	return g.name() + " is on no subnet and on no network interface: its rules have no effect"
}

// put writes the group and verifies the response.
func (g *Group) put(ctx context.Context, observed lb.SecurityGroup, s survey, p nsg.Plan) error {
	observed.Rules = p.Next
	shown, err := g.cfg.Azure.PutSecurityGroup(ctx, observed)
	if err == nil {
		err = g.check(nsg.Merge(s.input(shown.Rules)))
	}
	return err
}

// check returns an error if a plan for the response is not empty.
func (g *Group) check(again nsg.Plan) error {
	if again.Empty() {
		return nil
	}
	c := again.Changes[0]
	return &fault.Fault{
		Class: fault.Retriable, Code: fault.CodeOutcomeUnknown, Reason: "outcome_unknown",
		Err: fmt.Errorf("%s: Azure reported success, and shows %d rules otherwise than written: %s %s %s", g.name(), len(again.Changes), c.Action, c.Kind, c.Name),
	}
}

// missing handles a group that does not exist: removals succeed. If the group reappears, the next write
// removes their rules.
func (g *Group) missing(requests []*Request) {
	for _, r := range requests {
		if _, known := g.known[r.Owner]; known && r.Desired == nil {
			g.known[r.Owner] = r.Demand
		}
		if r.Desired != nil && !r.Closes && len(g.admissions(r.Demand)) > 0 {
			r.Err = fmt.Errorf("%s: resource group %s has none of that name: create it and give it to the nodes' subnet, or correct securityGroupName and securityGroupResourceGroup in azure.json",
				g.name(), g.cfg.ID.ResourceGroup)
		}
	}
}

func (g *Group) refuse(requests []*Request, p nsg.Plan) {
	for _, r := range requests {
		if why := p.Refused[r.Owner]; why != nil {
			r.Err = fmt.Errorf("%s: %w", g.name(), why)
		} else if r.Desired != nil && !r.Closes && r.Desired.NodePorts() != nil {
			if _, ok := g.cfg.Cluster.NodesOf(r.On, r.Desired.OwnPools()); !ok {
				r.Err = errors.New(g.name() + ": the nodes behind load balancer " + r.On.Name + " are not known yet")
			}
		}
	}
}

func concerns(c plan.Change, at []netip.Addr) bool {
	was, _ := c.Was.(lb.SecurityRule)
	is, _ := c.Is.(lb.SecurityRule)
	return slices.ContainsFunc(at, func(a netip.Addr) bool {
		return slices.Contains(was.Destinations, a.String()) != slices.Contains(is.Destinations, a.String())
	})
}

func logWritten(ctx context.Context, log *slog.Logger, p nsg.Plan) {
	if p.Empty() {
		log.DebugContext(ctx, "security group level")
		return
	}
	log.InfoContext(ctx, "security group written", "changes", len(p.Changes))
}
