// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// The suffixes of names. A name depends on its family alone, so the second family of a Service can come and
// go, and what is of the first keeps its name.
const (
	SuffixIPv6 = "-IPv6"
	// SuffixIPv4 is that of IPv4 where IPv6 has the names without a suffix.
	SuffixIPv4 = "-IPv4"
)

// suffixOf returns what the names of a family end in.
func suffixOf(f lb.Family) string {
	if f == lb.IPv6 {
		return SuffixIPv6
	}
	return ""
}

// Part is a frontend or a rule of a load balancer, and its family.
type Part struct {
	Name   string
	Family lb.Family
}

// PartsOf are the frontends and rules of an owner, as far as their family is known. of returns the family of a
// public IP by its id; empty if it is not known.
func PartsOf(owner string, observed lb.LoadBalancer, of func(publicIP string) lb.Family) []Part {
	var parts []Part
	add := func(name string, family lb.Family) {
		if family != "" && (strings.EqualFold(name, owner) || strings.HasPrefix(strings.ToLower(name), strings.ToLower(owner)+"-")) {
			parts = append(parts, Part{name, family})
		}
	}
	families := map[string]lb.Family{}
	for _, f := range observed.Frontends {
		family := cmp.Or(of(f.PublicIP), f.Family)
		families[strings.ToLower(f.Name)] = family
		add(f.Name, family)
	}
	for _, r := range observed.Rules {
		add(r.Name, families[strings.ToLower(r.Frontend)])
	}
	return parts
}

// KeepNames returns the Spec with the names that its Service has on a load balancer. The Azure cloud provider,
// and Weir before it, gave what is of IPv6 no suffix where a Service had that family alone.
func (spec *Spec) KeepNames(parts []Part) *Spec {
	suffixes := map[lb.Family]string{lb.IPv4: "", lb.IPv6: SuffixIPv6}
	for _, f := range spec.Frontends {
		if f.withoutSuffix(parts) {
			suffixes = map[lb.Family]string{lb.IPv4: SuffixIPv4}
			break
		}
		if f.has(parts, lb.IPv4, SuffixIPv4) {
			suffixes[lb.IPv4] = SuffixIPv4
		}
	}
	return spec.withSuffixes(suffixes)
}

// withoutSuffix reports whether a Service has IPv6 by the names without a suffix, and not by the others.
func (f Frontend) withoutSuffix(parts []Part) bool {
	return f.has(parts, lb.IPv6, "") && !f.has(parts, lb.IPv6, SuffixIPv6)
}

// has reports whether a part of a family has a name of the frontend's Service that ends in a suffix; an empty
// one is that no suffix of a family is there.
func (f Frontend) has(parts []Part, family lb.Family, suffix string) bool {
	return slices.ContainsFunc(parts, func(p Part) bool {
		name, stem := strings.ToLower(p.Name), strings.ToLower(f.stem)
		if p.Family != family || name != stem && !strings.HasPrefix(name, stem+"-") {
			return false
		}
		if suffix != "" {
			return strings.HasSuffix(name, strings.ToLower(suffix))
		}
		return !strings.HasSuffix(name, strings.ToLower(SuffixIPv6)) && !strings.HasSuffix(name, strings.ToLower(SuffixIPv4))
	})
}

// withSuffixes returns the Spec with other suffixes of its names.
func (spec *Spec) withSuffixes(suffixes map[lb.Family]string) *Spec {
	next := *spec
	next.Frontends, next.Rules, next.Probes = slices.Clone(spec.Frontends), slices.Clone(spec.Rules), slices.Clone(spec.Probes)
	renamed := map[string]string{} // probes
	for i, f := range spec.Frontends {
		suffix := suffixes[f.Frontend.Family]
		rename := func(name string) string { return strings.TrimSuffix(name, f.suffix) + suffix }
		next.Frontends[i].suffix, next.Frontends[i].Frontend.Name = suffix, rename(f.Frontend.Name)
		for n, r := range spec.Rules {
			if r.Frontend != f.Frontend.Name {
				continue
			}
			next.Rules[n].Name, next.Rules[n].Frontend = rename(r.Name), rename(r.Frontend)
			if strings.HasPrefix(r.Probe, f.stem+"-") {
				next.Rules[n].Probe = rename(r.Probe)
				renamed[r.Probe] = rename(r.Probe)
			}
		}
	}
	for i, p := range spec.Probes {
		if name, is := renamed[p.Name]; is {
			next.Probes[i].Name = name
		}
	}
	return &next
}
