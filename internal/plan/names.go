// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// nameFrontends returns the shares with the names that their frontends get: that of the Service's own frontend
// which is there already, or another one where the usual name stays with an address that others use.
func nameFrontends(in Input) []Share {
	shares := slices.Clone(in.Shares)
	for i, s := range shares {
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
			shares[i] = s.rename(renamed)
		}
	}
	return shares
}

// nameOf returns the name of a frontend that a Service wants.
func (in Input) nameOf(s Share, want lb.Frontend) string {
	another := anotherName(want)
	for _, is := range in.Observed.Frontends {
		if owns(s.Owner, is.Name) && (place(is) == place(want) || dynamic(want) && dynamic(is) && strings.EqualFold(is.Name, another)) {
			return is.Name
		}
	}
	for _, is := range in.Observed.Frontends {
		if strings.EqualFold(is.Name, want.Name) && place(is) != place(want) && in.keptByOthers(s, is.Name) {
			return another
		}
	}
	return want.Name
}

// dynamic reports whether Azure chooses the address of a frontend.
func dynamic(f lb.Frontend) bool { return f.PublicIP == "" && !f.Static }

// keptByOthers reports whether something that is not the Service's refers to a frontend.
func (in Input) keptByOthers(s Share, frontend string) bool {
	return in.Observed.Pinned[strings.ToLower(frontend)] || slices.ContainsFunc(in.Observed.Rules, func(r lb.Rule) bool {
		return strings.EqualFold(r.Frontend, frontend) && !owns(s.Owner, r.Name)
	})
}

// anotherName returns a name for a frontend whose usual one is taken, by its address. The suffix of a family
// stays at the end.
func anotherName(f lb.Frontend) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(place(f)))
	stem, suffix := f.Name, ""
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		if before, is := strings.CutSuffix(f.Name, "-"+string(family)); is {
			stem, suffix = before, "-"+string(family)
		}
	}
	return fmt.Sprintf("%s-%08x%s", stem, h.Sum32(), suffix)
}

// rename returns a share with other names of its frontends.
func (s Share) rename(names map[string]string) Share {
	s.Frontends, s.Rules = slices.Clone(s.Frontends), slices.Clone(s.Rules)
	for i, f := range s.Frontends {
		if name, is := names[f.Name]; is {
			s.Frontends[i].Name = name
		}
	}
	for i, r := range s.Rules {
		if name, is := names[r.Frontend]; is {
			s.Rules[i].Frontend = name
		}
	}
	return s
}

// Fixed returns a private frontend that any address will do for with the one that somebody has fixed: to
// leave it to Azure again would bring nothing, and might bring another one. Of several the one counts that the
// rules of the Service are at.
func Fixed(want lb.Frontend, owner string, observed lb.LoadBalancer) lb.Frontend {
	if want.Subnet == "" || want.Static {
		return want
	}
	for _, is := range observed.Frontends {
		if !is.Static || !strings.EqualFold(is.Subnet, want.Subnet) || !want.Family.Of(is.PrivateIP) || !owns(owner, is.Name) {
			continue
		}
		used := slices.ContainsFunc(observed.Rules, func(r lb.Rule) bool {
			return strings.EqualFold(r.Frontend, is.Name) && owns(owner, r.Name)
		})
		if used || !want.Static && strings.EqualFold(is.Name, want.Name) {
			want.Static, want.PrivateIP = true, is.PrivateIP
		}
		if used {
			return want
		}
	}
	return want
}

// FrontendOf returns which frontend of a load balancer a Service has for one that it wants: the one that its rules are
// at, or else the one of that name; -1 if there is none.
func FrontendOf(shown lb.LoadBalancer, rules []lb.Rule, wanted string) int {
	at := wanted
	for _, r := range rules {
		is := slices.IndexFunc(shown.Rules, func(is lb.Rule) bool { return strings.EqualFold(is.Name, r.Name) })
		if r.Frontend == wanted && is >= 0 {
			at = shown.Rules[is].Frontend
			break
		}
	}
	return slices.IndexFunc(shown.Frontends, func(f lb.Frontend) bool { return strings.EqualFold(f.Name, at) })
}
