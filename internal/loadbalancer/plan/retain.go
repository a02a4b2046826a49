// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// TagRetained is the load balancer tag that names the frontend retained only because Azure requires one.
const TagRetained = "weir-retained-frontend"

const tagRetainedFor = "weir-retained-namespace"

// ErrNoIPv4 rejects a Service that would leave the load balancer without an IPv4 frontend.
var ErrNoIPv4 = errors.New("Azure requires an IPv4 frontend beside IPv6 ones") //nolint:staticcheck // a name begins it

func (in Input) isRetained(f lb.Frontend) bool {
	return f.Name != "" && strings.EqualFold(lb.TagValue(in.Observed.Tags, TagRetained), f.Name)
}

// checkRetainedAddress returns why a Service of a namespace may not take the retained frontend's address: Weir made
// it for another or an unknown namespace, and clients may still use it.
func (in Input) checkRetainedAddress(at, namespace string) error {
	for _, f := range in.Observed.Frontends {
		if !in.isRetained(f) || placeOf(f) != at || f.PublicIP == "" || in.IsManaged == nil || !in.IsManaged(f) {
			continue
		}
		if of := lb.TagValue(in.Observed.Tags, tagRetainedFor); of != namespace {
			return fmt.Errorf("%w: frontend %s is retained with %s for namespace %s, because Azure requires it. Choose another address",
				ErrAddressTaken, f.Name, in.placeText(f), cmp.Or(of, "unknown"))
		}
	}
	return nil
}

// mayBeIPv4 reports whether a frontend is not known to be IPv6.
func (in Input) mayBeIPv4(f lb.Frontend) bool {
	if f.PublicIP != "" && in.FamilyOf != nil {
		return cmp.Or(in.FamilyOf(f), f.Family) != lb.IPv6
	}
	return f.Family != lb.IPv6
}

// MissingIPv4 returns the Services with IPv6 frontends, by owner, if the load balancer would have no IPv4
// frontend.
func MissingIPv4(in Input) map[string]error {
	missing := map[string]error{}
	if slices.ContainsFunc(in.Observed.Frontends, in.mayBeIPv4) {
		return missing // it can be retained
	}
	for _, s := range in.Services {
		wants := slices.Concat(s.Frontends, s.Unresolved)
		if slices.ContainsFunc(wants, in.mayBeIPv4) {
			return map[string]error{}
		}
		if len(wants) > 0 {
			missing[s.Owner] = fmt.Errorf("%w, and load balancer %s would have none. Set ipFamilyPolicy PreferDualStack in the Service, "+
				"or have a Service with an IPv4 address on that load balancer first", ErrNoIPv4, in.Observed.ID.Name)
		}
	}
	return missing
}

// retainFrontend keeps an unneeded frontend if Azure requires one: pools, probes or rules require a frontend, and IPv6
// frontends an IPv4 frontend. It returns the Service that needs the frontend's address elsewhere, unless Weir's
// own parts must leave first.
func (p *Plan) retainFrontend(in Input, accepted []ServiceParts) (rejected *ServiceParts) {
	alone := len(p.Next.Frontends) > 0 && !slices.ContainsFunc(p.Next.Frontends, in.mayBeIPv4)
	if alone || len(p.Next.Frontends) == 0 && len(in.partNames(p.Next)) > 0 {
		p.RetainedFrontend = in.retainCandidate(p.Next.Frontends, alone)
	}
	if p.RetainedFrontend == nil {
		lb.UnsetTag(p.Next.Tags, TagRetained)
		lb.UnsetTag(p.Next.Tags, tagRetainedFor)
		return nil
	}
	p.Next.Frontends = append(p.Next.Frontends, *p.RetainedFrontend)
	if !in.isRetained(*p.RetainedFrontend) {
		if p.Next.Tags == nil {
			p.Next.Tags = map[string]string{}
		}
		lb.SetTags(p.Next.Tags, map[string]string{TagRetained: p.RetainedFrontend.Name})
		if lb.UnsetTag(p.Next.Tags, tagRetainedFor); in.namespaceOf(p.RetainedFrontend.Name) != "" {
			lb.SetTags(p.Next.Tags, map[string]string{tagRetainedFor: in.namespaceOf(p.RetainedFrontend.Name)})
		}
	}
	k := RetainedPart{Pool: lb.PoolID{LoadBalancer: in.Observed.ID}, Frontend: p.RetainedFrontend, Members: in.foreignPartNames(p.Next)}
	if alone {
		k.Members = []string{"IPv6 frontends"}
	}
	if len(p.DrainingPools) > 0 { // it is deleted with the load balancer
		return nil
	}
	p.RetainedParts = append(p.RetainedParts, k)
	if at := slices.IndexFunc(accepted, func(s ServiceParts) bool { return s.isNeeded(*p.RetainedFrontend) }); at >= 0 {
		return &accepted[at]
	}
	return nil
}

func (s ServiceParts) isNeeded(f lb.Frontend) bool { return s.NeedsAddress != nil && s.NeedsAddress(f) }

func (s *ServiceParts) planWithout(in Input, p Plan) Plan {
	reason := fmt.Errorf("the Service cannot leave load balancer %s with its address: Azure requires a frontend there while it has %s. "+
		"Delete what is not needed there, or keep the Service on that load balancer", in.Observed.ID.Name, strings.Join(p.RetainedParts[len(p.RetainedParts)-1].Members, ", "))
	in.Services = slices.DeleteFunc(slices.Clone(in.Services), func(o ServiceParts) bool { return o.Owner == s.Owner })
	in.Others = append(slices.Clone(in.Others), s.Owner)
	p = makePlan(in)
	p.Rejected[s.Owner] = reason
	return p
}

// UnusedFrontends returns the names of the frontends that no Service has after the plan: deleted ones, the one
// required by Azure, and those retained from now on.
func (p Plan) UnusedFrontends() []string {
	var names []string
	for _, c := range p.Changes {
		if c.Kind == lb.KindFrontend && c.Action == lb.ActionRemove {
			names = append(names, c.Name)
		}
	}
	if p.RetainedFrontend != nil {
		names = append(names, p.RetainedFrontend.Name)
	}
	for _, c := range p.newlyRetained {
		names = append(names, c.Name)
	}
	return names
}

// retainCandidate returns the best observed frontend to retain, or nil. It prefers IPv4, then addresses that no
// Service needs elsewhere, then addresses made by Weir.
func (in Input) retainCandidate(next []lb.Frontend, onlyIPv4 bool) *lb.Frontend {
	frontends := slices.DeleteFunc(slices.Clone(in.Observed.Frontends), func(f lb.Frontend) bool {
		return onlyIPv4 && !in.mayBeIPv4(f) || slices.ContainsFunc(next, func(n lb.Frontend) bool { return strings.EqualFold(n.Name, f.Name) })
	})
	if len(frontends) == 0 {
		return nil
	}
	cost := func(f lb.Frontend) int {
		n := 0
		for weight, costs := range []bool{!in.isRetained(f), in.IsManaged != nil && !in.IsManaged(f), slices.ContainsFunc(in.Services, func(s ServiceParts) bool { return s.isNeeded(f) }), !in.mayBeIPv4(f)} {
			if costs {
				n |= 1 << weight
			}
		}
		return n
	}
	best := slices.MinFunc(frontends, func(a, b lb.Frontend) int { return cmp.Compare(cost(a), cost(b)) })
	return &best
}

func (in Input) partNames(b lb.LoadBalancer) []string {
	var names []string
	for _, pool := range b.Pools {
		names = append(names, "backend pool "+pool.ID.Name)
	}
	for _, probe := range b.Probes {
		names = append(names, "probe "+probe.Name)
	}
	return names
}

// foreignPartNames returns the parts that Weir did not make, or all parts if it made all.
func (in Input) foreignPartNames(b lb.LoadBalancer) []string {
	names := b
	b.Pools = slices.DeleteFunc(slices.Clone(b.Pools), func(p lb.Pool) bool {
		return containsName(in.SharedPools, p.ID.Name) && len(in.ForeignMembers[strings.ToLower(p.ID.Name)]) == 0
	})
	if foreign := in.partNames(b); len(foreign) > 0 {
		return foreign
	}
	return in.partNames(names)
}

func describeFrontend(f lb.Frontend) string {
	switch {
	case f.PublicIP != "":
		return "frontend " + f.Name + " with public IP " + path.Base(f.PublicIP)
	case f.PrivateIP.IsValid():
		return "frontend " + f.Name + " with address " + f.PrivateIP.String()
	}
	return "frontend " + f.Name
}
