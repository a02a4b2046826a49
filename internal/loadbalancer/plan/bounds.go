// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/service"
)

type count struct{ rules, frontends int }

// Usage is the number of parts per namespace. Parts without a known Service have the empty key.
type Usage map[string]count

// Add adds parts of a namespace.
func (u Usage) Add(namespace string, rules, frontends int) {
	n := u[namespace]
	u[namespace] = count{n.rules + rules, n.frontends + frontends}
}

// Rules returns the total number of rules.
func (u Usage) Rules() int { return u.sumParts().rules }

func (u Usage) sumParts() (counts count) {
	for _, n := range u {
		counts = count{counts.rules + n.rules, counts.frontends + n.frontends}
	}
	return counts
}

func (u Usage) isShared(namespace string) bool {
	for other, n := range u {
		if other != "" && other != namespace && n != (count{}) {
			return true
		}
	}
	return false
}

type usageTable struct {
	Input
	of       Usage
	total    count
	existing map[string]count
	// places maps each address with a frontend to the owner in the plan; empty for other owners.
	places map[string]string
	// byOwner maps owners to namespaces. The demand is per namespace.
	byOwner map[string]string
	demand  Usage
	// onMachines counts the rules of this load balancer per machine, by pool; see machinesExceeded.
	onMachines Counts
}

func newUsageTable(in Input) *usageTable {
	c := &usageTable{Input: in, of: Usage{}, existing: map[string]count{}, places: map[string]string{}, byOwner: map[string]string{}, demand: Usage{}}
	for _, s := range in.Services {
		c.byOwner[s.Owner] = cmp.Or(s.Namespace, in.namespaceOf(s.Owner))
		c.demand.Add(c.byOwner[s.Owner], len(s.Rules), len(s.Frontends))
	}
	services := indexServices(in.Services)
	add := func(name string, n count) {
		owner := services.ownerOf(name)
		if owner == "" {
			c.of.Add(in.namespaceOf(name), n.rules, n.frontends)
			return
		}
		c.of.Add(c.byOwner[owner], n.rules, n.frontends)
		h := c.existing[owner]
		c.existing[owner] = count{h.rules + n.rules, h.frontends + n.frontends}
	}
	for _, r := range in.Observed.Rules {
		add(r.Name, count{rules: 1})
	}
	for _, f := range in.Observed.Frontends {
		if r, ok := in.Observed.RetainedAt(f); ok && services.ownerOf(f.Name) == "" && in.namespaceOf(f.Name) == "" {
			c.of.Add(r.Namespace(), 0, 1)
		} else {
			add(f.Name, count{frontends: 1})
		}
		c.places[placeOf(f)] = services.ownerOf(f.Name)
	}
	c.total = c.of.sumParts()
	return c
}

// countGrowth returns how many parts a Service adds. A frontend at an address that already has one is shared and not
// counted.
func (u *usageTable) countGrowth(s ServiceParts) count {
	old, fresh := u.existing[s.Owner], 0
	for _, f := range s.Frontends {
		if owner, exists := u.places[placeOf(f)]; !exists || owner == s.Owner {
			fresh++
		}
	}
	return count{max(len(s.Rules)-old.rules, 0), max(fresh-old.frontends, 0)}
}

// OverLimit returns the Services, by owner, that would exceed a bound of their namespace or the load balancer's
// frontend limit. Services of one namespace are admitted in the order given. Parts that another Service
// releases still count, because the plan may yet reject that Service. So the result does not depend on ports,
// pools or addresses, and another namespace is rejected only if the load balancer is full.
func OverLimit(in Input) map[string]error {
	c, exceeded := newUsageTable(in), MissingIPv4(in)
	maps.Copy(exceeded, in.lacksTags())
	for _, s := range in.Services {
		more := c.countGrowth(s)
		if exceeded[s.Owner] != nil {
			continue
		}
		var err error
		namespace := c.byOwner[s.Owner]
		if more != (count{}) {
			err = c.checkGrowth(namespace, more)
		}
		if err == nil && more.frontends > 0 && slices.ContainsFunc(s.Frontends, isPrivate) {
			err = in.checkRetainedCount(namespace)
		}
		if err == nil {
			err = c.machinesExceeded(s) // also if as many rules move to another pool
		}
		if err != nil {
			exceeded[s.Owner] = err
			continue
		}
		c.of.Add(namespace, more.rules, more.frontends)
		c.total = count{c.total.rules + more.rules, c.total.frontends + more.frontends}
		for _, f := range s.Frontends {
			if _, exists := c.places[placeOf(f)]; !exists {
				c.places[placeOf(f)] = s.Owner
			}
		}
	}
	return exceeded
}

// CheckLimit returns why more parts would exceed a bound of a namespace, or nil. The input names the load
// balancer and its limits.
func CheckLimit(in Input, used Usage, namespace string, rules, frontends int) error {
	return in.checkLimit(used[namespace], count{rules, frontends}, namespace, used.isShared(namespace))
}

func (in Input) checkLimit(used, more count, namespace string, shared bool) error {
	if in.NamespaceBounds == nil || namespace == "" {
		return nil
	}
	for _, d := range in.limitKinds() {
		if d.capacity.Max == 0 || d.of(more) == 0 {
			continue
		}
		// A bound equal to the capacity is checked elsewhere.
		b := in.NamespaceBounds(namespace).NamespaceBound(d.annotation, d.capacity, shared)
		if would := d.of(used) + d.of(more); b.Max < d.capacity.Max && would > b.Max {
			return service.NewBoundExceededError(namespace, would, d.partName, "load balancer "+in.Observed.ID.Name, b, d.annotation)
		}
	}
	return nil
}

func (u *usageTable) checkGrowth(namespace string, more count) error {
	if err := u.checkLimit(u.of[namespace], more, namespace, u.of.isShared(namespace) || u.demand.isShared(namespace)); err != nil {
		return err
	}
	if would := u.total.frontends + more.frontends; u.MaxFrontends > 0 && more.frontends > 0 && would > u.MaxFrontends {
		return fmt.Errorf("load balancer %s would have %d frontends, and may have %d%s", u.Observed.ID.Name, would, u.MaxFrontends, u.largestNamespace(u.limitKinds()[1], namespace))
	}
	return nil
}

// limitKind is a kind of part that a load balancer has a limited number of.
type limitKind struct {
	partName, annotation string
	capacity             service.NamespaceCapacity
	of                   func(count) int
}

func (in Input) limitKinds() []limitKind {
	return []limitKind{
		{"load balancing rules", service.MaxRules, service.NamespaceCapacity{Max: in.MaxRules, By: in.RulesBy}, func(c count) int { return c.rules }},
		{"frontends", service.MaxFrontends, service.NamespaceCapacity{Max: in.MaxFrontends}, func(c count) int { return c.frontends }},
	}
}

// largestNamespace returns the namespace with the most parts, for the error of another namespace; empty if none.
func (u *usageTable) largestNamespace(d limitKind, except string) string {
	names := slices.Sorted(maps.Keys(u.of))
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" || d.of(u.of[n]) == 0 })
	if len(names) == 0 || u.NamespaceBounds == nil {
		return ""
	}
	top := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(d.of(u.of[a]), d.of(u.of[b])) })
	if top == except {
		return ""
	}
	b := u.NamespaceBounds(top).NamespaceBound(d.annotation, d.capacity, true)
	return fmt.Sprintf(": namespace %s has the most, %d, and its bound is %d (%s)", top, d.of(u.of[top]), b.Max, b.By)
}

func (in Input) namespaceOf(name string) string {
	if in.ServiceOf == nil {
		return ""
	}
	namespace, _, known := strings.Cut(in.ServiceOf(name), "/")
	if !known {
		return ""
	}
	return namespace
}
