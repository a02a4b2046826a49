// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/rehearse"
)

// action is empty if nothing changes.
func action(before, after, differs bool) plan.Action {
	switch {
	case !before && !after, before && after && !differs:
		return ""
	case !before:
		return plan.Add
	case !after:
		return plan.Remove
	}
	return plan.Alter
}

func (v speller) balancer(c rehearse.Changed[lb.LoadBalancer]) Resource {
	id := cmp.Or(c.Is.ID, c.Was.ID)
	before, after := c.Was, c.Is
	if after.Etag == "" {
		after = lb.LoadBalancer{}
	}
	r := Resource{Kind: LoadBalancer, Name: id.Name, ResourceGroup: id.ResourceGroup, ID: id.String()}
	r.Fields = differing(ofBalancer(before, before.Provisioning), ofBalancer(after, before.Provisioning))
	for _, ch := range plan.Diff(before, after) {
		p := v.part(ch)
		if ch.Kind == plan.Pool {
			w, _ := ch.Was.(lb.Pool)
			i, _ := ch.Is.(lb.Pool)
			p.Members = members(w, i)
		}
		r.Parts = append(r.Parts, p)
	}
	for _, i := range after.Pools {
		at := slices.IndexFunc(before.Pools, func(w lb.Pool) bool { return strings.EqualFold(w.ID.Name, i.ID.Name) })
		if at < 0 {
			continue
		}
		if m := members(before.Pools[at], i); len(m) > 0 {
			r.Parts = append(r.Parts, Part{Kind: string(plan.Pool), Name: i.ID.Name, Action: plan.Alter, Members: m})
		}
	}
	r.Action = action(before.Etag != "", after.Etag != "", len(r.Fields)+len(r.Parts) > 0)
	return r
}

func (v speller) part(c plan.Change) Part {
	p := Part{Kind: string(c.Kind), Name: c.Name, Action: c.Action, Service: v.serviceOf(c.Name)}
	if c.Kind == nsg.Kind {
		p.Kind = "securityRule"
	}
	p.Fields = differing(v.valuesOf(c.Was), v.valuesOf(c.Is))
	return p
}

func (v speller) valuesOf(part any) []value {
	switch p := part.(type) {
	case lb.Frontend:
		return v.frontend(p)
	case lb.Probe:
		return probe(p)
	case lb.Rule:
		return rule(p)
	case lb.SecurityRule:
		return v.securityRule(p)
	}
	return nil
}

func differing(before, is []value) []Field {
	var fields []Field
	names := map[string]bool{}
	for _, w := range before {
		names[w.name] = true
		fields = append(fields, field(w, find(is, w.name)))
	}
	for _, i := range is {
		if !names[i.name] {
			fields = append(fields, field(value{name: i.name}, i))
		}
	}
	return slices.DeleteFunc(fields, func(f Field) bool {
		same := f.Was == nil && f.Is == nil || f.Was != nil && f.Is != nil && *f.Was == *f.Is
		return same && len(f.Added)+len(f.Removed) == 0
	})
}

func find(all []value, name string) value {
	for _, v := range all {
		if v.name == name {
			return v
		}
	}
	return value{}
}

func field(before, after value) Field {
	return Field{Name: before.name, Was: before.says(), Is: after.says(), Added: without(after.list, before.list), Removed: without(before.list, after.list)}
}

// without sorts, because load balancers become ready in any order.
func without(all, those []string) []string {
	left := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(those, s) })
	slices.Sort(left)
	return left
}

// members returns a pool's changed entries. Those without an address are compared by name.
func members(was, is lb.Pool) []Member {
	var all []Member
	for _, i := range is.Addresses {
		at := slices.IndexFunc(was.Addresses, func(w lb.Address) bool { return sameEntry(w, i) })
		if at < 0 {
			all = append(all, member(plan.Add, i, i.AdminState))
			continue
		}
		before, after := cmp.Or(was.Addresses[at].AdminState, lb.None), cmp.Or(i.AdminState, lb.None)
		if before != after {
			m := member(plan.Alter, i, after)
			m.WasAdminState = before
			all = append(all, m)
		}
	}
	for n, w := range was.Addresses {
		left := slices.ContainsFunc(is.Addresses, func(i lb.Address) bool { return sameEntry(w, i) })
		twice := slices.ContainsFunc(was.Addresses[:n], func(o lb.Address) bool { return sameEntry(w, o) })
		if !left || twice {
			all = append(all, member(plan.Remove, w, ""))
		}
	}
	slices.SortStableFunc(all, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func sameEntry(a, b lb.Address) bool {
	if !a.IP.IsValid() && !b.IP.IsValid() {
		return strings.EqualFold(a.Name, b.Name)
	}
	return a.IP == b.IP
}

func member(of plan.Action, a lb.Address, state string) Member {
	m := Member{Action: of, Name: a.Name, AdminState: state}
	if a.IP.IsValid() {
		m.Address = a.IP.String()
	}
	return m
}

func (v speller) publicIP(c rehearse.Changed[lb.PublicIP]) Resource {
	id := cmp.Or(c.Is.ID, c.Was.ID)
	r := Resource{Kind: PublicIP, Name: id.Name, ResourceGroup: id.ResourceGroup, ID: id.String()}
	r.Fields = differing(v.ofPublicIP(c.Was, c.Was.Provisioning), v.ofPublicIP(c.Is, c.Was.Provisioning))
	r.Action = action(c.Was.Etag != "", c.Is.Etag != "", len(r.Fields) > 0)
	if cluster, owner, ok := cutLast(strings.TrimSuffix(id.Name, "-IPv6")); ok && cluster != "" {
		r.Service = v.serviceOf(owner)
	}
	return r
}

func cutLast(name string) (before, after string, ok bool) {
	at := strings.LastIndex(name, "-")
	if at < 0 {
		return "", "", false
	}
	return name[:at], name[at+1:], true
}

func (v speller) securityGroup(c rehearse.Changed[lb.SecurityGroup]) Resource {
	id := c.Is.ID
	r := Resource{Kind: SecurityGroup, Name: id.Name, ResourceGroup: id.ResourceGroup, ID: id.String()}
	for _, ch := range nsg.Diff(c.Was.Rules, c.Is.Rules) {
		r.Parts = append(r.Parts, v.part(ch))
	}
	r.Action = action(true, true, len(r.Parts) > 0)
	return r
}
