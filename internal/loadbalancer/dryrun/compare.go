// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// resourceAction is empty if nothing changes.
func resourceAction(before, after, differs bool) lb.Action {
	switch {
	case !before && !after, before && after && !differs:
		return ""
	case !before:
		return lb.ActionAdd
	case !after:
		return lb.ActionRemove
	}
	return lb.ActionModify
}

func (fm formatter) loadBalancerChange(c ResourceChange[lb.LoadBalancer]) ResourceReport {
	id := cmp.Or(c.After.ID, c.Before.ID)
	before, after := c.Before, c.After
	if after.Etag == "" {
		after = lb.LoadBalancer{}
	}
	r := ResourceReport{Kind: ReportLoadBalancer, Name: id.Name, ResourceGroup: id.ResourceGroup, ID: id.String()}
	r.Fields = diffFields(loadBalancerFields(before, before.Provisioning), loadBalancerFields(after, before.Provisioning))
	for _, ch := range plan.Diff(before, after) {
		p := fm.partChange(ch)
		if ch.Kind == lb.KindPool {
			w, _ := ch.Was.(lb.Pool)
			i, _ := ch.Is.(lb.Pool)
			p.Members = diffMembers(w, i)
		}
		r.Parts = append(r.Parts, p)
	}
	for _, i := range after.Pools {
		at := slices.IndexFunc(before.Pools, func(w lb.Pool) bool { return strings.EqualFold(w.ID.Name, i.ID.Name) })
		if at < 0 || slices.ContainsFunc(r.Parts, func(p PartReport) bool { return p.Kind == string(lb.KindPool) && p.Name == i.ID.Name }) {
			continue
		}
		if m := diffMembers(before.Pools[at], i); len(m) > 0 {
			r.Parts = append(r.Parts, PartReport{Kind: string(lb.KindPool), Name: i.ID.Name, Action: lb.ActionModify, Members: m})
		}
	}
	r.Action = resourceAction(before.Etag != "", after.Etag != "", len(r.Fields)+len(r.Parts) > 0)
	return r
}

func (fm formatter) partChange(c lb.Change) PartReport {
	p := PartReport{Kind: string(c.Kind), Name: c.Name, Action: c.Action, Service: fm.serviceOf(c.Name)}
	if c.Kind == service.KindSecurityRule {
		p.Kind = "securityRule"
	}
	p.Fields = diffFields(fm.partFields(c.Was), fm.partFields(c.Is))
	return p
}

func (fm formatter) partFields(part any) []fieldValue {
	switch p := part.(type) {
	case lb.Pool:
		return poolFields(p)
	case lb.Frontend:
		return fm.frontendFields(p)
	case lb.Probe:
		return probeFields(p)
	case lb.Rule:
		return ruleFields(p)
	case lb.SecurityRule:
		return fm.securityRuleFields(p)
	}
	return nil
}

func diffFields(before, after []fieldValue) []FieldReport {
	var fields []FieldReport
	names := map[string]bool{}
	for _, w := range before {
		names[w.name] = true
		fields = append(fields, newField(w, findValue(after, w.name)))
	}
	for _, i := range after {
		if !names[i.name] {
			fields = append(fields, newField(fieldValue{name: i.name}, i))
		}
	}
	return slices.DeleteFunc(fields, func(f FieldReport) bool {
		unchanged := f.Was == nil && f.Is == nil || f.Was != nil && f.Is != nil && *f.Was == *f.Is
		return unchanged && len(f.Added)+len(f.Removed) == 0
	})
}

func findValue(values []fieldValue, name string) fieldValue {
	for _, v := range values {
		if v.name == name {
			return v
		}
	}
	return fieldValue{}
}

func newField(before, after fieldValue) FieldReport {
	return FieldReport{Name: before.name, Was: before.textOrNil(), Is: after.textOrNil(), Added: subtractSorted(after.list, before.list), Removed: subtractSorted(before.list, after.list)}
}

// subtractSorted sorts, because load balancers become ready in any order.
func subtractSorted(names, those []string) []string {
	rest := slices.DeleteFunc(slices.Clone(names), func(s string) bool { return slices.Contains(those, s) })
	slices.Sort(rest)
	return rest
}

// diffMembers returns a pool's changed entries. Those without an address are compared by name.
func diffMembers(old, current lb.Pool) []MemberReport {
	var reports []MemberReport
	for _, i := range current.Addresses {
		at := slices.IndexFunc(old.Addresses, func(w lb.Address) bool { return isSameEntry(w, i) })
		if at < 0 {
			reports = append(reports, newMember(lb.ActionAdd, i, i.AdminState))
			continue
		}
		before, after := cmp.Or(old.Addresses[at].AdminState, lb.None), cmp.Or(i.AdminState, lb.None)
		if before != after {
			m := newMember(lb.ActionModify, i, after)
			m.WasAdminState = before
			reports = append(reports, m)
		}
	}
	for n, w := range old.Addresses {
		remains := slices.ContainsFunc(current.Addresses, func(i lb.Address) bool { return isSameEntry(w, i) })
		twice := slices.ContainsFunc(old.Addresses[:n], func(o lb.Address) bool { return isSameEntry(w, o) })
		if !remains || twice {
			reports = append(reports, newMember(lb.ActionRemove, w, ""))
		}
	}
	slices.SortStableFunc(reports, func(a, b MemberReport) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Name, b.Name))
	})
	return reports
}

func isSameEntry(a, b lb.Address) bool {
	if !a.IP.IsValid() && !b.IP.IsValid() {
		return strings.EqualFold(a.Name, b.Name)
	}
	return a.IP == b.IP
}

func newMember(of lb.Action, a lb.Address, state string) MemberReport {
	m := MemberReport{Action: of, Name: a.Name, AdminState: state}
	if a.IP.IsValid() {
		m.Address = a.IP.String()
	}
	return m
}

func (fm formatter) publicIPChange(c ResourceChange[lb.PublicIP]) ResourceReport {
	id := cmp.Or(c.After.ID, c.Before.ID)
	r := ResourceReport{Kind: ReportPublicIP, Name: id.Name, ResourceGroup: id.ResourceGroup, ID: id.String()}
	r.Fields = diffFields(fm.publicIPFields(c.Before, c.Before.Provisioning), fm.publicIPFields(c.After, c.Before.Provisioning))
	r.Action = resourceAction(c.Before.Etag != "", c.After.Etag != "", len(r.Fields) > 0)
	if cluster, owner, ok := splitLast(strings.TrimSuffix(id.Name, "-IPv6")); ok && cluster != "" {
		r.Service = fm.serviceOf(owner)
	}
	return r
}

func splitLast(name string) (before, after string, ok bool) {
	at := strings.LastIndex(name, "-")
	if at < 0 {
		return "", "", false
	}
	return name[:at], name[at+1:], true
}

func (fm formatter) securityGroupChange(c ResourceChange[lb.SecurityGroup]) ResourceReport {
	id := c.After.ID
	r := ResourceReport{Kind: ReportSecurityGroup, Name: id.Name, ResourceGroup: id.ResourceGroup, ID: id.String()}
	for _, ch := range service.DiffSecurityRules(c.Before.Rules, c.After.Rules) {
		r.Parts = append(r.Parts, fm.partChange(ch))
	}
	r.Action = resourceAction(true, true, len(r.Parts) > 0)
	return r
}
