// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// reservedTags are the tags of a load balancer that Weir needs apart from retained addresses.
const reservedTags = 2 // TagRetained and tagRetainedFor

// leavesAddress reports whether a Service leaves a private frontend that is to be retained: it is its own, or that of a
// Service that left before, and the Service wants its address neither here nor on another load balancer.
func (in Input) leavesAddress(s ServiceParts, f lb.Frontend) bool {
	if s.RetainFor == "" || f.PublicIP != "" || !f.PrivateIP.IsValid() || !in.hasFrontend(s, f) || s.isNeeded(f) {
		return false
	}
	return !slices.ContainsFunc(s.Frontends, func(w lb.Frontend) bool {
		switch {
		case w.PublicIP != "" || !strings.EqualFold(w.Subnet, f.Subnet) || !w.Family.Contains(f.PrivateIP):
			return false
		case w.Static:
			return w.PrivateIP == f.PrivateIP
		}
		return !f.Static
	})
}

func (in Input) hasFrontend(s ServiceParts, f lb.Frontend) bool {
	if hasOwner(s.Owner, f.Name) {
		return true
	}
	own, _ := rulesAt(in.Observed.Rules, f.Name, s.Owner)
	return len(own) > 0 && indexOwners(in.Others).ownerOf(f.Name) == "" && indexServices(in.Services).ownerOf(f.Name) == ""
}

// mustRetainAddress reports whether the address of a private frontend is retained, or is about to be.
func (in Input) mustRetainAddress(f lb.Frontend) bool {
	_, ok := in.Observed.RetainedAt(f)
	return ok || in.isLeft(in.Services, f)
}

func (in Input) isLeft(services []ServiceParts, f lb.Frontend) bool {
	return slices.ContainsFunc(services, func(s ServiceParts) bool { return in.leavesAddress(s, f) })
}

// leftAddresses returns the frontends that a Service leaves and that are not retained yet.
func (in Input) leftAddresses(s ServiceParts) []lb.Frontend {
	if s.RetainFor == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(in.Observed.Frontends), func(f lb.Frontend) bool {
		_, ok := in.Observed.RetainedAt(f)
		return ok || !in.leavesAddress(s, f)
	})
}

// lacksTags returns why addresses of Services cannot be retained, by owner: the load balancer would have too many tags.
func (in Input) lacksTags() map[string]error {
	missing, n := map[string]error{}, len(in.Observed.Tags)+reservedTags
	for _, s := range in.Services {
		count := len(in.leftAddresses(s))
		if count > 0 && n+count > lb.MaxTags {
			missing[s.Owner] = fmt.Errorf("the private address of the Service cannot be retained: load balancer %s has %d tags, and Azure allows %d. "+
				"Have an administrator release retained addresses with weir address release, or remove the annotation weir.dev/retain-address",
				in.Observed.ID.Name, len(in.Observed.Tags), lb.MaxTags)
			continue
		}
		n += count
	}
	return missing
}

// retainAddresses tags the addresses that accepted Services leave. Their frontends are static.
func (p *Plan) retainAddresses(in Input, accepted []ServiceParts) {
	for _, s := range accepted {
		for _, f := range in.leftAddresses(s) {
			at := slices.IndexFunc(p.Next.Frontends, func(n lb.Frontend) bool { return strings.EqualFold(n.Name, f.Name) })
			if at < 0 {
				continue
			}
			r := lb.RetainedAddress{Address: f.PrivateIP, Service: s.RetainFor, Since: in.Now, Subnet: path.Base(f.Subnet), Zones: f.Zones}
			if p.Next.Tags == nil {
				p.Next.Tags = map[string]string{}
			}
			lb.SetTags(p.Next.Tags, map[string]string{r.TagName(): r.TagValue()})
			p.newlyRetained = append(p.newlyRetained, lb.Change{Action: lb.ActionModify, Kind: lb.KindFrontend, Name: f.Name, Was: f, Is: p.Next.Frontends[at]})
		}
	}
}

// withRetained returns the changes with those frontends that differ only in the tag.
func (p *Plan) withRetained(changes []lb.Change) []lb.Change {
	for _, c := range p.newlyRetained {
		if !slices.ContainsFunc(changes, func(other lb.Change) bool { return other.Kind == c.Kind && other.Name == c.Name }) {
			changes = append(changes, c)
		}
	}
	return changes
}

// pinRetained returns a private frontend with the address that was retained for a Service, if its ports are free there.
func pinRetained(want lb.Frontend, owner, key string, rules []lb.Rule, observed lb.LoadBalancer) lb.Frontend {
	for _, r := range observed.RetainedAddresses() {
		if r.Service != key || !want.Family.Contains(r.Address) {
			continue
		}
		at := slices.IndexFunc(observed.Frontends, func(f lb.Frontend) bool { return f.PublicIP == "" && f.PrivateIP == r.Address })
		switch {
		case at < 0 && !strings.EqualFold(path.Base(want.Subnet), r.Subnet):
			continue
		case at >= 0 && !strings.EqualFold(observed.Frontends[at].Subnet, want.Subnet):
			continue
		case at >= 0:
			if _, others := rulesAt(observed.Rules, observed.Frontends[at].Name, owner); HasPortOf(others, rulesOf(rules, want.Name)) {
				continue
			}
		}
		want.Static, want.PrivateIP = true, r.Address
		return want
	}
	return want
}

// checkRetainedFor returns why a Service of a namespace may not request a private address: it is retained for another.
func (in Input) checkRetainedFor(want lb.Frontend, namespace string) error {
	if r, ok := in.Observed.RetainedAt(want); ok && want.Static && r.Namespace() != namespace {
		return fmt.Errorf("%w: %s is retained for %s. Choose another address, or have an administrator release it with weir address release",
			ErrAddressTaken, r.Address, service.DescribeOwner(r.Service))
	}
	return nil
}

// checkRetainedCount returns an error if a namespace has too many retained addresses without rules to get a new one.
func (in Input) checkRetainedCount(namespace string) error {
	unused := 0
	for _, f := range in.Observed.Frontends {
		if r, ok := in.Observed.RetainedAt(f); ok && r.Namespace() == namespace && len(rulesOf(in.Observed.Rules, f.Name)) == 0 {
			unused++
		}
	}
	if namespace == "" || unused < service.MaxRetained {
		return nil
	}
	return fmt.Errorf("namespace %s has %d retained private addresses on load balancer %s that no Service uses, and gets no new one while it has %d or more: "+
		"request one of them, or have an administrator release some with weir address release", namespace, unused, in.Observed.ID.Name, service.MaxRetained)
}
