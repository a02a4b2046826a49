// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// nameFrontends returns the Services with final frontend names: the name of the Service's existing frontend, or
// another name if others use the frontend with the default name.
func nameFrontends(in Input) []ServiceParts {
	services := slices.Clone(in.Services)
	for i, s := range services {
		var renamed map[string]string
		for _, f := range s.Frontends {
			if name := in.nameOf(s, f); name != f.Name {
				if renamed == nil {
					renamed = map[string]string{}
				}
				renamed[f.Name] = name
			}
		}
		if renamed != nil {
			services[i] = s.renameFrontends(renamed)
		}
	}
	return services
}

func (in Input) nameOf(s ServiceParts, want lb.Frontend) string {
	another := alternateName(want)
	for _, frontend := range in.Observed.Frontends {
		if hasOwner(s.Owner, frontend.Name) && (placeOf(frontend) == placeOf(want) || isDynamic(want) && isDynamic(frontend) && strings.EqualFold(frontend.Name, another)) {
			return frontend.Name
		}
	}
	for _, frontend := range in.Observed.Frontends {
		if strings.EqualFold(frontend.Name, want.Name) && placeOf(frontend) != placeOf(want) && (in.isUsedByOthers(s, frontend.Name) || in.mustRetainAddress(frontend)) {
			return another
		}
	}
	return want.Name
}

func isPrivate(f lb.Frontend) bool { return f.PublicIP == "" }

func isDynamic(f lb.Frontend) bool { return f.PublicIP == "" && !f.Static }

func (in Input) isUsedByOthers(s ServiceParts, frontend string) bool {
	return in.Observed.Pinned[strings.ToLower(frontend)] || slices.ContainsFunc(in.Observed.Rules, func(r lb.Rule) bool {
		return strings.EqualFold(r.Frontend, frontend) && !hasOwner(s.Owner, r.Name)
	})
}

// alternateName returns a name derived from the address, used if the default name is taken. The family suffix
// stays at the end.
func alternateName(f lb.Frontend) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(placeOf(f)))
	stem, suffix := f.Name, ""
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		if before, ok := strings.CutSuffix(f.Name, "-"+string(family)); ok {
			stem, suffix = before, "-"+string(family)
		}
	}
	return fmt.Sprintf("%s-%08x%s", stem, h.Sum32(), suffix)
}

func (s ServiceParts) renameFrontends(names map[string]string) ServiceParts {
	s.Frontends, s.Rules = slices.Clone(s.Frontends), slices.Clone(s.Rules)
	for i, f := range s.Frontends {
		if name, ok := names[f.Name]; ok {
			s.Frontends[i].Name = name
		}
	}
	for i, r := range s.Rules {
		if name, ok := names[r.Frontend]; ok {
			s.Rules[i].Frontend = name
		}
	}
	return s
}

// PinAddress pins a dynamic private frontend to the address that the Service has. It prefers the frontend of the
// Service's rules, then its former frontend if no foreign rule there has a port that it wants, then the address
// from owed, which may be nil, then an address retained for the Service of that key (namespace/name).
func PinAddress(want lb.Frontend, owner, key string, rules []lb.Rule, observed lb.LoadBalancer, owed func(lb.Frontend) (netip.Addr, bool)) lb.Frontend {
	if want.Subnet == "" || want.Static {
		return want
	}
	exists, hadFrontend, former := false, false, want
	for _, frontend := range observed.Frontends {
		exists = exists || strings.EqualFold(frontend.Name, want.Name)
		if !strings.EqualFold(frontend.Subnet, want.Subnet) || !want.Family.Contains(frontend.PrivateIP) || !hasOwner(owner, frontend.Name) {
			continue
		}
		fixed := want
		if frontend.Static {
			fixed.Static, fixed.PrivateIP = true, frontend.PrivateIP
		}
		at, of := rulesAt(observed.Rules, frontend.Name, owner)
		if len(at) > 0 {
			return fixed
		}
		if strings.EqualFold(frontend.Name, want.Name) && !HasPortOf(of, rulesOf(rules, want.Name)) {
			hadFrontend, former = true, fixed
		}
	}
	if !exists && owed != nil {
		if ip, ok := owed(want); ok {
			want.Static, want.PrivateIP = true, ip
			return want
		}
	}
	if !hadFrontend {
		return pinRetained(want, owner, key, rules, observed)
	}
	return former
}

func rulesOf(rules []lb.Rule, frontend string) []lb.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r lb.Rule) bool { return !strings.EqualFold(r.Frontend, frontend) })
}

func rulesAt(rules []lb.Rule, frontend, owner string) (own, others []lb.Rule) {
	for _, r := range rulesOf(rules, frontend) {
		if hasOwner(owner, r.Name) {
			own = append(own, r)
		} else {
			others = append(others, r)
		}
	}
	return own, others
}

// HasPortOf reports whether the existing rules at an address use a port of the wanted rules.
func HasPortOf(existing, wanted []lb.Rule) bool {
	taken := newRuleIndex()
	for _, r := range existing {
		taken.addRule(placedRule{Rule: r})
	}
	return slices.ContainsFunc(wanted, func(r lb.Rule) bool { return findPort(taken.byPort, "", r.Transport, r.FrontendPort) >= 0 })
}

// FrontendOf returns the index of a Service's frontend: the one of its rules, else the one with the wanted
// name; -1 if none.
func FrontendOf(observed lb.LoadBalancer, rules []lb.Rule, wanted string) int {
	at := wanted
	for _, r := range rules {
		i := slices.IndexFunc(observed.Rules, func(i lb.Rule) bool { return strings.EqualFold(i.Name, r.Name) })
		if r.Frontend == wanted && i >= 0 {
			at = observed.Rules[i].Frontend
			break
		}
	}
	return slices.IndexFunc(observed.Frontends, func(f lb.Frontend) bool { return strings.EqualFold(f.Name, at) })
}
