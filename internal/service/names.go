// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Name suffixes per family. A name depends only on its family, so adding or removing the second family does
// not rename the first.
const (
	SuffixIPv6 = "-IPv6"
	// SuffixIPv4 is for IPv4 where IPv6 has the names without suffix.
	SuffixIPv4 = "-IPv4"
)

func suffixOf(f lb.Family) string {
	if f == lb.IPv6 {
		return SuffixIPv6
	}
	return ""
}

// Part is a frontend or a rule of a load balancer with its family.
type Part struct {
	Name   string
	Family lb.Family
}

// PartsOf returns the frontends and rules of an owner with a known family. familyOf returns the family of a
// public IP by ID; "" if unknown.
func PartsOf(owner string, observed lb.LoadBalancer, familyOf func(publicIP string) lb.Family) []Part {
	var parts []Part
	add := func(name string, family lb.Family) {
		if family != "" && (strings.EqualFold(name, owner) || strings.HasPrefix(strings.ToLower(name), strings.ToLower(owner)+"-")) {
			parts = append(parts, Part{name, family})
		}
	}
	families := map[string]lb.Family{}
	for _, f := range observed.Frontends {
		family := cmp.Or(familyOf(f.PublicIP), f.Family)
		families[strings.ToLower(f.Name)] = family
		add(f.Name, family)
	}
	for _, r := range observed.Rules {
		add(r.Name, families[strings.ToLower(r.Frontend)])
	}
	return parts
}

// RetainNames returns the Spec with the existing names on a load balancer. cloud-provider-azure and earlier
// versions of Weir used no suffix for IPv6-only Services.
func (spec *Spec) RetainNames(parts []Part) *Spec {
	suffixes := map[lb.Family]string{lb.IPv4: "", lb.IPv6: SuffixIPv6}
	for _, f := range spec.Frontends {
		if f.usesPlainNames(parts) {
			suffixes = map[lb.Family]string{lb.IPv4: SuffixIPv4}
			break
		}
		if f.hasPart(parts, lb.IPv4, SuffixIPv4) {
			suffixes[lb.IPv4] = SuffixIPv4
		}
	}
	return spec.withSuffixes(suffixes)
}

// usesPlainNames reports whether IPv6 exists with the names without suffix only.
func (f Frontend) usesPlainNames(parts []Part) bool {
	return f.hasPart(parts, lb.IPv6, "") && !f.hasPart(parts, lb.IPv6, SuffixIPv6)
}

// hasPart reports whether a part of a family has a name of the frontend's Service with that suffix; "" matches
// names without a family suffix.
func (f Frontend) hasPart(parts []Part, family lb.Family, suffix string) bool {
	return slices.ContainsFunc(parts, func(p Part) bool {
		name, stem := strings.ToLower(p.Name), strings.ToLower(f.namePrefix)
		if p.Family != family || name != stem && !strings.HasPrefix(name, stem+"-") {
			return false
		}
		if suffix != "" {
			return strings.HasSuffix(name, strings.ToLower(suffix))
		}
		return !strings.HasSuffix(name, strings.ToLower(SuffixIPv6)) && !strings.HasSuffix(name, strings.ToLower(SuffixIPv4))
	})
}

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
			if strings.HasPrefix(r.Probe, f.namePrefix+"-") {
				next.Rules[n].Probe = rename(r.Probe)
				renamed[r.Probe] = rename(r.Probe)
			}
		}
	}
	for i, p := range spec.Probes {
		if name, ok := renamed[p.Name]; ok {
			next.Probes[i].Name = name
		}
	}
	return &next
}
