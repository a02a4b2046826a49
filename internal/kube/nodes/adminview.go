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

// adminView is a snapshot of the nodes' admin states in all pools.
type adminView struct {
	// owed lists, per node, the objects with a wrong admin state in a pool.
	owed map[string][]whom
	// pools is the number of pools with a draining node.
	pools map[string]int
	// drains is why a node drains; "" if it does not. Unknown nodes have no entry.
	drains map[string]string
	// refs are the pools that Weir updates.
	refs map[poolschedule.Ref]struct{}
}

// view reads all pools, in O(members).
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

// over reports whether the node has the right admin state in all pools of the object.
func (v adminView) over(w whom, node string) bool {
	if w.kind == "Node" {
		return len(v.owed[node]) == 0
	}
	return !slices.Contains(v.owed[node], w)
}

type news struct {
	about      whom
	down, back []string
	failed     string
	// pools is the number of failing pools.
	pools   int
	settled bool
}

// settle removes and returns the events to record now, sorted by object.
func (a *AdminStates) settle(v adminView) []news {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []news
	for _, w := range slices.SortedFunc(maps.Keys(a.bulletins), func(x, y whom) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name))
	}) {
		b := a.bulletins[w]
		if event := b.settle(w, v); event.any() {
			all = append(all, event)
		}
		if !b.open() && !b.told {
			delete(a.bulletins, w)
		}
	}
	return all
}

func (n news) any() bool { return len(n.down)+len(n.back) > 0 || n.failed != "" || n.settled }

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

// takeIf removes and returns the nodes with the new admin state everywhere, and drops those whose state
// changed again or that are deleted.
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

// Tell records the pending events.
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

// objectOf returns the object of an event, or nil if it is deleted.
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
