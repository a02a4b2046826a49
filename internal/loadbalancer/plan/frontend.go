// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// placeOf returns the address of a frontend; a dynamic frontend is a place of its own. Services that want the
// same place share its frontend.
func placeOf(f lb.Frontend) string {
	switch {
	case f.PublicIP != "":
		return strings.ToLower(f.PublicIP)
	case f.Static:
		return strings.ToLower(f.Subnet) + " " + f.PrivateIP.String()
	}
	return strings.ToLower(f.Name)
}

// resolveFrontends returns the frontends after the accepted Services release unwanted ones and have one at every place
// they want.
func resolveFrontends(in Input, accepted []ServiceParts) []lb.Frontend {
	next := make([]lb.Frontend, 0, len(in.Observed.Frontends)+len(accepted))
	at := map[string]int{} // the first of each place
	add := func(f lb.Frontend) {
		if _, exists := at[placeOf(f)]; !exists {
			at[placeOf(f)] = len(next)
		}
		next = append(next, f)
	}
	k := newFrontendFilter(in, accepted)
	for _, f := range in.Observed.Frontends {
		if k.isWanted(f) {
			f.Static = f.Static || in.isLeft(accepted, f)
			add(f)
		}
	}
	for _, s := range accepted {
		for _, f := range s.Frontends {
			i, exists := at[placeOf(f)]
			if !exists {
				add(keepGatewayLoadBalancer(in.Observed, f))
				continue
			}
			f.GatewayLoadBalancer = nextGatewayLoadBalancer(in.Observed, next[i], f)
			if strings.EqualFold(next[i].Name, f.Name) && !sameFrontend(next[i], f) {
				next[i] = f
			}
			next[i].GatewayLoadBalancer = f.GatewayLoadBalancer
		}
	}
	return next
}

// FrontendAt returns the existing frontend that a Service gets: the one at its place, or the one of the name that it has in
// the plan, which changes in place; false if the plan makes a new one.
func FrontendAt(observed lb.LoadBalancer, owner string, want lb.Frontend) (lb.Frontend, bool) {
	at := slices.IndexFunc(observed.Frontends, func(f lb.Frontend) bool { return placeOf(f) == placeOf(want) })
	name := Input{Observed: observed}.nameOf(ServiceParts{Owner: owner}, want)
	if at < 0 || isDynamic(want) { // the place of a dynamic frontend is only a name
		at = slices.IndexFunc(observed.Frontends, func(f lb.Frontend) bool { return strings.EqualFold(f.Name, name) })
	}
	if at < 0 {
		return lb.Frontend{}, false
	}
	return observed.Frontends[at], true
}

// keepZones returns the Services with the zones of existing frontends, which Azure cannot change; public frontends have
// none.
func keepZones(observed lb.LoadBalancer, services []ServiceParts) []ServiceParts {
	zones := map[string][]string{}
	for _, f := range observed.Frontends {
		zones[strings.ToLower(f.Name)] = f.Zones
	}
	services = slices.Clone(services)
	for i, s := range services {
		services[i].Frontends = slices.Clone(s.Frontends)
		for n, f := range s.Frontends {
			if old, exists := zones[strings.ToLower(f.Name)]; exists {
				services[i].Frontends[n].Zones = old
			} else if f.PublicIP != "" {
				services[i].Frontends[n].Zones = nil
			}
		}
	}
	return services
}

type frontendFilter struct {
	in                         Input
	accepted, others, services ownerIndex
	// rules are the rules of each frontend. places are all wanted places; named are those wanted for a frontend
	// name.
	rules  map[string][]lb.Rule
	places map[string]bool
	named  map[string][]string
}

func newFrontendFilter(in Input, accepted []ServiceParts) frontendFilter {
	k := frontendFilter{
		in: in, accepted: indexServices(accepted), others: indexOwners(in.Others), services: indexServices(in.Services),
		rules: map[string][]lb.Rule{}, places: map[string]bool{}, named: map[string][]string{},
	}
	for _, r := range in.Observed.Rules {
		name := strings.ToLower(r.Frontend)
		k.rules[name] = append(k.rules[name], r)
	}
	for _, s := range accepted {
		for _, w := range s.Frontends {
			name := strings.ToLower(w.Name)
			k.places[placeOf(w)] = true
			k.named[name] = append(k.named[name], placeOf(w))
		}
	}
	return k
}

// isWanted reports whether a frontend is still wanted at its place. A frontend without a Service in the plan is
// foreign, unless a Service of the plan shared it and its own Service left.
func (ff frontendFilter) isWanted(f lb.Frontend) bool {
	name := strings.ToLower(f.Name)
	if ff.in.Observed.Pinned[name] || ff.in.mustRetainAddress(f) {
		return true
	}
	managed := false
	for _, r := range ff.rules[name] {
		if ff.accepted.ownerOf(r.Name) == "" {
			return true // a rule that does not change
		}
		managed = true
	}
	if ff.in.isRetained(f) || !managed && ff.in.IsAbandoned != nil && ff.in.IsAbandoned(f) {
		return ff.places[placeOf(f)]
	}
	if ff.accepted.ownerOf(f.Name) == "" && (!managed || ff.others.ownerOf(f.Name) != "" || ff.services.ownerOf(f.Name) != "") {
		return true
	}
	for _, at := range ff.named[name] {
		if at != placeOf(f) {
			return false // another frontend needs the name
		}
	}
	return ff.places[placeOf(f)]
}

func frontendAt(next lb.LoadBalancer, s ServiceParts, wanted string) string {
	for _, w := range s.Frontends {
		if w.Name != wanted {
			continue
		}
		for _, f := range next.Frontends {
			if placeOf(f) == placeOf(w) {
				return f.Name
			}
		}
	}
	return wanted
}
