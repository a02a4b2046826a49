// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/poolschedule"
)

// adminView is how the admin states of nodes stand in all pools at one moment.
type adminView struct {
	// owed is whose pools do not have a node as it has to be yet.
	owed map[string][]whom
	// pools counts those that a node that drains is a member of.
	pools map[string]int
	// drains says why a node takes no new flows; empty for one that does. It has none for a
	// node that is not there.
	drains map[string]string
	// refs are the pools that Weir works on.
	refs map[poolschedule.Ref]struct{}
}

// view looks at all pools. Its cost grows with their members.
func (a *AdminStates) view() adminView {
	v := adminView{owed: map[string][]whom{}, pools: map[string]int{}, drains: map[string]string{}, refs: map[poolschedule.Ref]struct{}{}}
	for _, obj := range a.snapshot.Pools.List() {
		p, ok := obj.(*v1alpha1.BackendPool)
		if !ok {
			continue
		}
		e, is := a.statuses.Known(backendpool.RefOf(p)), a.Entitlement(p, time.Now())
		if e == nil || is.State != backendpool.Active || is.Deleting || e.LacksPool() {
			continue
		}
		set, err := a.Members(p)
		if err != nil {
			continue
		}
		v.refs[backendpool.RefOf(p)] = struct{}{}
		down, back := e.Owes(set)
		for _, name := range slices.Concat(down, back) {
			v.owed[name] = append(v.owed[name], aboutPool(p, is))
		}
		for _, d := range set.Draining {
			v.pools[d.Node]++
		}
	}
	for _, obj := range a.snapshot.Nodes.List() {
		if n, ok := obj.(*corev1.Node); ok {
			v.drains[n.Name] = a.snapshot.NodeOf(n).Draining
		}
	}
	return v
}

// over reports whether a node is as it has to be in all pools that are of concern.
func (v adminView) over(w whom, node string) bool {
	if w.kind == "Node" {
		return len(v.owed[node]) == 0
	}
	return !slices.Contains(v.owed[node], w)
}

// news is what is to be told now.
type news struct {
	about      whom
	down, back []string
	failed     string
	// pools are those in which it failed.
	pools   int
	settled bool
}

// settle returns what is to be told now, in the order of names, and forgets it.
func (a *AdminStates) settle(v adminView) []news {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []news
	for _, w := range slices.SortedFunc(maps.Keys(a.bulletins), func(x, y whom) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name))
	}) {
		b := a.bulletins[w]
		if told := b.settle(w, v); told.any() {
			all = append(all, told)
		}
		if !b.open() && !b.told {
			delete(a.bulletins, w)
		}
	}
	return all
}

func (n news) any() bool { return len(n.down)+len(n.back) > 0 || n.failed != "" || n.settled }

// settle takes out of a bulletin what is to be told now.
func (b *bulletin) settle(w whom, v adminView) news {
	told := news{about: w, down: b.takeIf(b.down, w, v, true), back: b.takeIf(b.back, w, v, false)}
	if w.kind == "Node" {
		if b.told {
			told.down = nil
		}
		b.told = v.drains[w.name] != "" && (b.told || len(told.down) > 0)
	}
	for ref := range b.failing {
		if _, works := v.refs[ref]; !works {
			b.drop(ref)
		}
	}
	if b.failed != "" && !b.complained {
		told.failed, told.pools, b.complained = b.failed, max(len(b.failing), 1), true
	}
	if b.complained && len(b.failing) == 0 {
		told.settled, b.complained, b.failed = true, false, ""
	}
	return told
}

// takeIf takes out the nodes that drain, or do not, as the news says, if they are so
// everywhere. Of one that is another by now, or has gone, there is nothing to tell.
func (b *bulletin) takeIf(from map[string]struct{}, w whom, v adminView, drains bool) []string {
	var ready []string
	for name := range from {
		why, there := v.drains[name]
		if !there || (why != "") != drains {
			delete(from, name)
		} else if v.over(w, name) {
			delete(from, name)
			ready = append(ready, name)
		}
	}
	slices.Sort(ready)
	return ready
}

// Tell puts the events of what is to be told now.
func (a *AdminStates) Tell() {
	drains := func(node string) bool {
		n, there := a.snapshot.Node(node)
		return there && n.Draining != ""
	}
	if !a.waits(drains) {
		return
	}
	v := a.view()
	for _, n := range a.settle(v) {
		if obj := a.objectOf(n.about); obj != nil {
			a.tell(obj, n, v)
		}
	}
}

// objectOf returns whom an event is about, or nil if it has gone.
func (a *AdminStates) objectOf(w whom) client.Object {
	switch w.kind {
	case "Node":
		if n := view.Get[corev1.Node](a.snapshot.Nodes, w.name); n != nil {
			return n
		}
	case "Service":
		if s := a.snapshot.Service(poolschedule.ServiceName{Namespace: w.namespace, Name: w.name}); s != nil {
			return s
		}
	default:
		if p := a.snapshot.Pool(w.namespace, w.name); p != nil {
			return p
		}
	}
	return nil
}
