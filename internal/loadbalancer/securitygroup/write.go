// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
)

// WriteRules writes the rules of these Services at once. The error applies to all requests without an Err of their
// own. Earlier requests take precedence.
func (g *Group) WriteRules(ctx context.Context, requests []*Request, log *slog.Logger) error {
	for _, r := range requests {
		r.Demand = g.completeClosing(r.Demand)
	}
	return conflict.RunWrite(ctx, g.cfg.Lease, g.displayName(), g.cfg.OnConflict, func(ctx context.Context, valid func() bool) error {
		return g.writeOnce(ctx, requests, valid, log)
	})
}

// writeOnce reads, plans, writes, verifies and records the result.
func (g *Group) writeOnce(ctx context.Context, requests []*Request, valid func() bool, log *slog.Logger) error {
	observed, exists, err := g.readGroup(ctx, requests)
	if !exists || err != nil {
		return err
	}
	s, p, rules := g.buildPlan(requests, observed)
	if !p.IsEmpty() && !valid() {
		return conflict.ErrLeaseExpired
	}
	if !p.IsEmpty() {
		next := observed
		next.Rules = p.Next
		var shown lb.SecurityGroup
		if shown, err = g.cfg.Azure.PutSecurityGroup(ctx, next); err == nil {
			err = g.verifyWrite(service.BuildSecurityPlan(s.mergeInput(shown.Rules)))
		}
		if known, ok := withoutUnknownTags(requests, observed, err); ok { // otherwise the group would remain open
			if err := g.writeOnce(ctx, []*Request{{Demand: known}}, valid, log); err != nil {
				log.WarnContext(ctx, "security group not closed to clients that the Service does not name any more", "err", err)
			} else if requests[0].ClosesOnly {
				return nil // the write of all its rules reports the tag
			}
		}
	}
	g.setRejections(requests, p)
	g.usage.recordPlan(requests, observed, p, err == nil)
	if err == nil {
		g.lastRules = rules
		logWritten(ctx, log, p)
		g.recordResults(requests, s, p, observed)
	}
	return err
}

func (g *Group) readGroup(ctx context.Context, requests []*Request) (observed lb.SecurityGroup, exists bool, err error) {
	for _, r := range requests {
		r.Err = nil
	}
	observed, err = g.cfg.Azure.GetSecurityGroup(ctx, g.cfg.ID)
	switch f := armerror.FromError(err); {
	case f != nil && f.Class == armerror.Stale:
		g.usage.forgetObserved()
		g.handleMissing(requests)
		return observed, false, nil
	case err != nil:
		return observed, false, err
	case observed.Provisioning == lb.Updating:
		return observed, true, g.cfg.InProgress.RecordUpdating(g.displayName(), time.Now())
	}
	g.cfg.InProgress.RecordIdle(g.displayName())
	return observed, true, nil
}

// buildPlan computes a plan that keeps contested Services unchanged. rules are those as written without
// conflicts.
func (g *Group) buildPlan(requests []*Request, observed lb.SecurityGroup) (s planInput, p service.SecurityPlan, rules []lb.SecurityRule) {
	s = g.collectInput(requests, nil)
	p = service.BuildSecurityPlan(s.mergeInput(observed.Rules))
	rules = p.Next
	if stay := g.findConflicts(requests, s, p, observed.Rules); len(stay) > 0 {
		s = g.collectInput(requests, stay)
		p = service.BuildSecurityPlan(s.mergeInput(observed.Rules))
	}
	return s, p, rules
}

// recordResults records the written demands and the results of the requests.
func (g *Group) recordResults(requests []*Request, s planInput, p service.SecurityPlan, observed lb.SecurityGroup) {
	for _, r := range requests {
		if r.Err != nil {
			continue
		}
		addresses := s.allAddresses(r.Demand)
		r.Changed = r.Changed || slices.ContainsFunc(p.Changes, func(c lb.Change) bool { return affectsAddresses(c, addresses) })
		known := r.Demand
		if !r.ClosesOnly {
			known.Former = nil // closed by now
		}
		g.known[r.Owner] = known
		if r.Desired != nil && !r.ClosesOnly && len(g.accessRules(r.Demand)) > 0 {
			r.Warning = joinNotes(g.attachmentWarning(observed), s.owners.withheldMessage(r.Demand))
		}
	}
	g.previousHosts = s.activeDestinations(g.known)
	g.recordNodes(s.nodes, p.Next)
	g.firstNamed = s.owners.ownersByAddress(g.known)
	g.recordConflicts(requests, p)
}

// attachmentWarning returns a warning if the group does not protect all nodes. A group of a network interface does not
// apply to new nodes.
func (g *Group) attachmentWarning(shown lb.SecurityGroup) string {
	switch {
	case shown.Subnets > 0:
		return ""
	case shown.Interfaces > 0:
		return fmt.Sprintf("%s is on %d network interfaces and on no subnet: its rules do not count for nodes whose interfaces do not have it", g.displayName(), shown.Interfaces)
	}
	return g.displayName() + " is on no subnet and on no network interface: its rules have no effect"
}

// verifyWrite returns an error if a plan for the response is not empty.
func (g *Group) verifyWrite(verified service.SecurityPlan) error {
	if verified.IsEmpty() {
		return nil
	}
	c := verified.Changes[0]
	return &armerror.Fault{
		Class: armerror.Retriable, Code: armerror.CodeOutcomeUnknown, Reason: "outcome_unknown",
		Err: fmt.Errorf("%s: Azure reported success, and shows %d rules otherwise than written: %s %s %s", g.displayName(), len(verified.Changes), c.Action, c.Kind, c.Name),
	}
}

// handleMissing handles a group that does not exist: removals succeed. If the group reappears, the next write
// removes their rules.
func (g *Group) handleMissing(requests []*Request) {
	for _, r := range requests {
		if _, known := g.known[r.Owner]; known && r.Desired == nil {
			g.known[r.Owner] = r.Demand
		}
		if r.Desired != nil && !r.ClosesOnly && len(g.accessRules(r.Demand)) > 0 {
			r.Err = fmt.Errorf("%s: resource group %s has none of that name: create it and give it to the nodes' subnet, or correct securityGroupName and securityGroupResourceGroup in azure.json",
				g.displayName(), g.cfg.ID.ResourceGroup)
		}
	}
}

func (g *Group) setRejections(requests []*Request, p service.SecurityPlan) {
	for _, r := range requests {
		if reason := p.Rejected[r.Owner]; reason != nil {
			r.Err = fmt.Errorf("%s: %w", g.displayName(), reason)
		} else if r.Desired != nil && !r.ClosesOnly && r.Desired.NodePorts() != nil {
			if _, ok := g.cfg.Cluster.NodesOf(r.On, r.needsAnyNode()); !ok {
				r.Err = errors.New(g.displayName() + ": the nodes behind load balancer " + r.On.Name + " are not known yet")
			}
		}
	}
}

func affectsAddresses(c lb.Change, at []netip.Addr) bool {
	old, _ := c.Was.(lb.SecurityRule)
	rule, _ := c.Is.(lb.SecurityRule)
	return slices.ContainsFunc(at, func(a netip.Addr) bool {
		return slices.Contains(old.Destinations, a.String()) != slices.Contains(rule.Destinations, a.String())
	})
}

func logWritten(ctx context.Context, log *slog.Logger, p service.SecurityPlan) {
	if p.IsEmpty() {
		log.DebugContext(ctx, "security group in sync")
		return
	}
	log.InfoContext(ctx, "security group written", "changes", len(p.Changes))
}

// withoutUnknownTags returns the demand of the only request without service tags that Azure may not know, after Azure
// rejected them; false if there are none. A tag in an existing rule is known.
func withoutUnknownTags(requests []*Request, observed lb.SecurityGroup, rejected error) (known Demand, ok bool) {
	f := armerror.FromError(rejected)
	if f == nil || f.Class != armerror.Terminal || f.Reason != "refused" && f.Reason != "operation_failed" || len(requests) != 1 || requests[0].Desired == nil {
		return known, false
	}
	known = requests[0].Demand
	spec := *known.Desired
	spec.Access.HasRestriction = spec.Access.IsLimited()
	spec.Access.Tags = slices.DeleteFunc(slices.Clone(spec.Access.Tags), func(tag string) bool { return !hasServiceTag(observed.Rules, tag) })
	ok = len(spec.Access.Tags) < len(known.Desired.Access.Tags)
	known.Desired = &spec
	return known, ok
}

func hasServiceTag(rules []lb.SecurityRule, tag string) bool {
	return slices.ContainsFunc(rules, func(r lb.SecurityRule) bool {
		return slices.ContainsFunc(r.Sources, func(source string) bool { return strings.EqualFold(source, tag) })
	})
}
