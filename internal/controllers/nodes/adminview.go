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
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/pool/schedule"
)

// adminView is a snapshot of the nodes' admin states in all pools.
type adminView struct {
	// pending lists, per node, the objects with a wrong admin state in a pool.
	pending map[string][]subject
	// pools is the number of pools with a draining node.
	pools map[string]int
	// drainReasons is why a node drains; "" if it does not. Unknown nodes have no entry.
	drainReasons map[string]string
	// refs are the pools that Weir updates.
	refs map[schedule.Ref]struct{}
}

// collectStates reads all pools, in O(members).
func (a *AdminStates) collectStates() adminView {
	v := adminView{pending: map[string][]subject{}, pools: map[string]int{}, drainReasons: map[string]string{}, refs: map[schedule.Ref]struct{}{}}
	for _, obj := range a.snapshot.Pools.List() {
		p, ok := obj.(*v1alpha1.BackendPool)
		if !ok {
			continue
		}
		e, binding := a.statuses.GetEntry(backendpool.RefOf(p)), a.ResolveBinding(p, time.Now())
		if e == nil || binding.State != backendpool.Active || binding.Deleting || e.IsPoolMissing() {
			continue
		}
		set, err := a.Members(p)
		if err != nil {
			continue
		}
		v.refs[backendpool.RefOf(p)] = struct{}{}
		down, back := e.PendingAdminChanges(set)
		for _, name := range slices.Concat(down, back) {
			v.pending[name] = append(v.pending[name], poolSubject(p, binding))
		}
		for _, d := range set.Draining {
			v.pools[d.Node]++
		}
	}
	for _, obj := range a.snapshot.Nodes.List() {
		if n, ok := obj.(*corev1.Node); ok {
			v.drainReasons[n.Name] = a.snapshot.NodeOf(n).DrainReason
		}
	}
	return v
}

// isApplied reports whether the node has the right admin state in all pools of the object.
func (v adminView) isApplied(w subject, node string) bool {
	if w.kind == "Node" {
		return len(v.pending[node]) == 0
	}
	return !slices.Contains(v.pending[node], w)
}

type adminEvent struct {
	about       subject
	down, back  []string
	failureText string
	// pools is the number of failing pools.
	pools     int
	recovered bool
}

// takeEvents removes and returns the events to record now, sorted by object.
func (a *AdminStates) takeEvents(v adminView) []adminEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	var events []adminEvent
	for _, w := range slices.SortedFunc(maps.Keys(a.notices), func(x, y subject) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.namespace, y.namespace), cmp.Compare(x.name, y.name))
	}) {
		b := a.notices[w]
		if event := b.takeEvent(w, v); event.hasContent() {
			events = append(events, event)
		}
		if !b.isOpen() && !b.hasDownEvent {
			delete(a.notices, w)
		}
	}
	return events
}

func (a adminEvent) hasContent() bool {
	return len(a.down)+len(a.back) > 0 || a.failureText != "" || a.recovered
}

func (n *notice) takeEvent(w subject, v adminView) adminEvent {
	ready := adminEvent{about: w, down: n.takeReady(n.down, w, v, true), back: n.takeReady(n.back, w, v, false)}
	if w.kind == "Node" {
		if n.hasDownEvent {
			ready.down = nil
		}
		n.hasDownEvent = v.drainReasons[w.name] != "" && (n.hasDownEvent || len(ready.down) > 0)
	}
	for ref := range n.failing {
		if _, ok := v.refs[ref]; !ok {
			n.dropPool(ref)
		}
	}
	if n.failureText != "" && !n.hasFailureEvent {
		ready.failureText, ready.pools, n.hasFailureEvent = n.failureText, max(len(n.failing), 1), true
	}
	if n.hasFailureEvent && len(n.failing) == 0 {
		ready.recovered, n.hasFailureEvent, n.failureText = true, false, ""
	}
	return ready
}

// takeReady removes and returns the nodes with the new admin state everywhere, and drops those whose state
// changed again or that are deleted.
func (n *notice) takeReady(from map[string]struct{}, w subject, v adminView, drains bool) []string {
	var ready []string
	for name := range from {
		reason, ok := v.drainReasons[name]
		if !ok || (reason != "") != drains {
			delete(from, name)
		} else if v.isApplied(w, name) {
			delete(from, name)
			ready = append(ready, name)
		}
	}
	slices.Sort(ready)
	return ready
}

// RecordEvents records the pending events.
func (a *AdminStates) RecordEvents() {
	drains := func(node string) bool {
		n, ok := a.snapshot.Node(node)
		return ok && n.DrainReason != ""
	}
	if !a.hasPending(drains) {
		return
	}
	v := a.collectStates()
	for _, n := range a.takeEvents(v) {
		if obj := a.objectOf(n.about); obj != nil {
			a.recordSubjectEvents(obj, n, v)
		}
	}
}

// objectOf returns the object of an event, or nil if it is deleted.
func (a *AdminStates) objectOf(w subject) client.Object {
	switch w.kind {
	case "Node":
		if n := cache.Get[corev1.Node](a.snapshot.Nodes, w.name); n != nil {
			return n
		}
	case "Service":
		if s := a.snapshot.Service(schedule.ServiceName{Namespace: w.namespace, Name: w.name}); s != nil {
			return s
		}
	default:
		if p := a.snapshot.Pool(w.namespace, w.name); p != nil {
			return p
		}
	}
	return nil
}
