// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// fixRequested returns the input with static frontends in place of dynamic ones with an address that a Service requests: it
// then shares them or is rejected. Azure would reject a second frontend. fixed are their names.
func (in Input) fixRequested() (out Input, fixed []string) {
	out = in
	for i, f := range in.Observed.Frontends {
		static := f
		if static.Static = true; !isDynamic(f) || !f.PrivateIP.IsValid() || !isRequested(in.Services, static, func(s ServiceParts) bool { return !hasOwner(s.Owner, f.Name) }) {
			continue
		}
		if fixed == nil {
			out.Observed, out.Services = cloneLoadBalancer(in.Observed), slices.Clone(in.Services)
		}
		fixed, out.Observed.Frontends[i] = append(fixed, f.Name), static
		for n, s := range out.Services {
			if hasOwner(s.Owner, f.Name) {
				out.Services[n] = in.fixFrontend(s, static)
			}
		}
	}
	return out, fixed
}

func isRequested(services []ServiceParts, static lb.Frontend, by func(ServiceParts) bool) bool {
	return slices.ContainsFunc(services, func(s ServiceParts) bool {
		return by(s) && slices.ContainsFunc(s.Frontends, func(w lb.Frontend) bool { return placeOf(w) == placeOf(static) })
	})
}

// fixFrontend returns the parts of the Service that has the frontend.
func (in Input) fixFrontend(s ServiceParts, static lb.Frontend) ServiceParts {
	s.Frontends = slices.Clone(s.Frontends)
	for i, w := range s.Frontends {
		if isDynamic(w) && strings.EqualFold(w.Subnet, static.Subnet) && w.Family.Contains(static.PrivateIP) && strings.EqualFold(in.nameOf(s, w), static.Name) {
			s.Frontends[i].Static, s.Frontends[i].PrivateIP = true, static.PrivateIP
		}
	}
	return s
}

// releaseFixed makes fixed frontends dynamic again if no accepted Service requests their address, and compares the plan
// with what Azure has.
func (p *Plan) releaseFixed(in Input, fixed []string) {
	accepted := p.acceptedServices(in.Services)
	for i, f := range p.Next.Frontends {
		at := slices.IndexFunc(in.Observed.Frontends, func(frontend lb.Frontend) bool { return frontend.Name == f.Name })
		if slices.Contains(fixed, f.Name) && !isRequested(accepted, f, func(ServiceParts) bool { return true }) && !in.isLeft(accepted, in.Observed.Frontends[at]) {
			p.Next.Frontends[i].Static = false
		}
	}
	after := p.Next
	if p.Delete {
		after = lb.LoadBalancer{}
	}
	p.Changes = Diff(in.Observed, after)
	if !p.Delete {
		p.Changes = p.withRetained(p.Changes)
	}
}
