// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/bound"
)

// count is how many parts a namespace has on a load balancer.
type count struct{ rules, frontends int }

// Usage is what each namespace has of a load balancer. What is of no known Service is under the empty
// name.
type Usage map[string]count

// Add adds parts of a namespace.
func (u Usage) Add(namespace string, rules, frontends int) {
	is := u[namespace]
	u[namespace] = count{is.rules + rules, is.frontends + frontends}
}

// Rules counts those of all.
func (u Usage) Rules() int { return u.total().rules }

func (u Usage) total() (all count) {
	for _, n := range u {
		all = count{all.rules + n.rules, all.frontends + n.frontends}
	}
	return all
}

// isShared reports whether a namespace other than this one uses the load balancer.
func (u Usage) isShared(namespace string) bool {
	for other, n := range u {
		if other != "" && other != namespace && n != (count{}) {
			return true
		}
	}
	return false
}

// census counts what namespaces and Services have.
type census struct {
	Input
	of    Usage
	total count
	// had are the parts of each Service that is due, by owner.
	had map[string]count
	// places are the addresses that have a frontend, by the owner that is due; empty for others.
	places map[string]string
	// byOwner are the namespaces of the shares, and wants what they want in all.
	byOwner map[string]string
	wants   Usage
	// onMachines are the rules that machines have of this load balancer, by pool; see machinesExceeded.
	onMachines Counts
}

func censusOf(in Input) *census {
	c := &census{Input: in, of: Usage{}, had: map[string]count{}, places: map[string]string{}, byOwner: map[string]string{}, wants: Usage{}}
	for _, s := range in.Shares {
		c.byOwner[s.Owner] = cmp.Or(s.Namespace, in.namespaceOf(s.Owner))
		c.wants.Add(c.byOwner[s.Owner], len(s.Rules), len(s.Frontends))
	}
	shares := rosterIn(in.Shares)
	add := func(name string, n count) {
		owner := shares.owner(name)
		if owner == "" {
			c.of.Add(in.namespaceOf(name), n.rules, n.frontends)
			return
		}
		c.of.Add(c.byOwner[owner], n.rules, n.frontends)
		h := c.had[owner]
		c.had[owner] = count{h.rules + n.rules, h.frontends + n.frontends}
	}
	for _, r := range in.Observed.Rules {
		add(r.Name, count{rules: 1})
	}
	for _, f := range in.Observed.Frontends {
		add(f.Name, count{frontends: 1})
		c.places[place(f)] = shares.owner(f.Name)
	}
	c.total = c.of.total()
	return c
}

// growth returns how many parts a Service wants beyond those that it has. A frontend at an address
// that has one already is shared, and none is added.
func (c *census) growth(s Share) count {
	had, fresh := c.had[s.Owner], 0
	for _, f := range s.Frontends {
		if owner, there := c.places[place(f)]; !there || owner == s.Owner {
			fresh++
		}
	}
	return count{max(len(s.Rules)-had.rules, 0), max(fresh-had.frontends, 0)}
}

// Exceeding returns the Services that would grow their namespace beyond a bound, or the load balancer
// beyond the frontends that it holds, by owner. Services of one namespace grow in the order of the
// shares. What one of them gives up in this plan counts until it is written: the plan may yet
// refuse that Service. So the result depends on no port, pool or address, and a Service of another
// namespace is only refused here where the load balancer is full.
func Exceeding(in Input) map[string]error {
	c, all := censusOf(in), LacksIPv4(in)
	for _, s := range in.Shares {
		more := c.growth(s)
		if all[s.Owner] != nil {
			continue
		}
		var err error
		namespace := c.byOwner[s.Owner]
		if more != (count{}) {
			err = c.exceeded(namespace, more)
		}
		if err == nil {
			err = c.machinesExceeded(s) // also of one that sends as many rules to another pool
		}
		if err != nil {
			all[s.Owner] = err
			continue
		}
		c.of.Add(namespace, more.rules, more.frontends)
		c.total = count{c.total.rules + more.rules, c.total.frontends + more.frontends}
		for _, f := range s.Frontends {
			if _, there := c.places[place(f)]; !there {
				c.places[place(f)] = s.Owner
			}
		}
	}
	return all
}

// ExceedsBound returns why so many more parts would exceed a bound of a namespace; nil if they would
// not. The input says of which load balancer, and what applies there.
func ExceedsBound(in Input, used Usage, namespace string, rules, frontends int) error {
	return in.exceedsBound(used[namespace], count{rules, frontends}, namespace, used.isShared(namespace))
}

func (in Input) exceedsBound(has, more count, namespace string, shared bool) error {
	if in.Bounds == nil || namespace == "" {
		return nil
	}
	for _, d := range in.dimensions() {
		if d.capacity.Max == 0 || d.of(more) == 0 {
			continue
		}
		// A bound that is the capacity is left to whoever checks that.
		b := in.Bounds(namespace).Of(d.annotation, d.capacity, shared)
		if would := d.of(has) + d.of(more); b.Max < d.capacity.Max && would > b.Max {
			return bound.Exceeded(namespace, would, d.what, "load balancer "+in.Observed.ID.Name, b, d.annotation)
		}
	}
	return nil
}

// exceeded returns why a namespace cannot grow; nil if it can.
func (c *census) exceeded(namespace string, more count) error {
	if err := c.exceedsBound(c.of[namespace], more, namespace, c.of.isShared(namespace) || c.wants.isShared(namespace)); err != nil {
		return err
	}
	if would := c.total.frontends + more.frontends; c.MaxFrontends > 0 && more.frontends > 0 && would > c.MaxFrontends {
		return fmt.Errorf("load balancer %s would have %d frontends, and may have %d%s", c.Observed.ID.Name, would, c.MaxFrontends, c.largest(c.dimensions()[1], namespace))
	}
	return nil
}

// dimension is one kind of parts that a load balancer holds a limited number of.
type dimension struct {
	what, annotation string
	capacity         bound.Capacity
	of               func(count) int
}

func (in Input) dimensions() []dimension {
	return []dimension{
		{"load balancing rules", bound.MaxRules, bound.Capacity{Max: in.MostRules, By: in.RulesBy}, func(c count) int { return c.rules }},
		{"frontends", bound.MaxFrontends, bound.Capacity{Max: in.MaxFrontends}, func(c count) int { return c.frontends }},
	}
}

// largest names the namespace that holds the most, for a rejection of another one by a full load
// balancer; empty if there is none.
func (c *census) largest(d dimension, but string) string {
	names := slices.Sorted(maps.Keys(c.of))
	names = slices.DeleteFunc(names, func(n string) bool { return n == "" || d.of(c.of[n]) == 0 })
	if len(names) == 0 || c.Bounds == nil {
		return ""
	}
	most := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(d.of(c.of[a]), d.of(c.of[b])) })
	if most == but {
		return ""
	}
	b := c.Bounds(most).Of(d.annotation, d.capacity, true)
	return fmt.Sprintf(": namespace %s has the most, %d, and its bound is %d (%s)", most, d.of(c.of[most]), b.Max, b.By)
}

// namespaceOf is the namespace of the Service that a name is of; empty if that is not known.
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
