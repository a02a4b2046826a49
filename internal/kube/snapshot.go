// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"iter"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/adminstate"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// snapshot reads the informers' stores. The objects in there are shared: they are
// never changed.
type snapshot struct {
	slices, services, nodes, pools, namespaces toolscache.Indexer

	place               placement
	excludeControlPlane bool
	// draining says which nodes leave; nil leaves admin states alone.
	draining *adminstate.Signals
	// taken reports whether a BackendPool ever took its pool. It asks the status
	// store first: the informer learns of our own writes late.
	taken func(*v1alpha1.BackendPool) bool
	// made reports whether a BackendPool is provably Weir's own, and right which right one
	// has to its pool.
	made  func(*v1alpha1.BackendPool) bool
	right func(*v1alpha1.BackendPool, lb.PoolID) (backendpool.Right, backendpool.Refusal)
}

// get returns what a store has under a key, or nil.
func get[T any](store toolscache.Indexer, name string) *T {
	obj, ok, err := store.GetByKey(name)
	if err != nil || !ok { // a store in memory has no errors
		return nil
	}
	typed, _ := obj.(*T)
	return typed
}

// list returns what a store has under a key of an index.
func list[T any](store toolscache.Indexer, index, name string) []*T {
	objs, err := store.ByIndex(index, name)
	if err != nil { // the index does not exist
		panic(fmt.Sprintf("kube: %v", err))
	}
	out := make([]*T, 0, len(objs))
	for _, obj := range objs {
		if typed, ok := obj.(*T); ok {
			out = append(out, typed)
		}
	}
	return out
}

func (s *snapshot) poolNamed(namespace, name string) *v1alpha1.BackendPool {
	return get[v1alpha1.BackendPool](s.pools, key(namespace, name))
}

func (s *snapshot) service(name poolupdate.ServiceName) *corev1.Service {
	return get[corev1.Service](s.services, key(name.Namespace, name.Name))
}

// nodeOf converts a node, with why it drains.
func (s *snapshot) nodeOf(n *corev1.Node) membership.Node {
	node := nodeOf(n, s.excludeControlPlane)
	if s.draining != nil {
		taints := taintsOf(n.Spec.Taints...)
		node.Draining = strings.Join(s.draining.Draining(taints), ", ")
		if node.Announced = s.draining.Announced(taints); node.Announced {
			node.AnnouncedAt = adminstate.ParseRecord(n.Annotations[PreemptionAnnotation]).At
		}
	}
	return node
}

// node looks a node up for membership.
func (s *snapshot) node(name string) (membership.Node, bool) {
	n := get[corev1.Node](s.nodes, name)
	if n == nil {
		return membership.Node{}, false
	}
	return s.nodeOf(n), true
}

// ofThisCluster reports whether a node has the address, excluded ones included.
func (s *snapshot) ofThisCluster(ip netip.Addr) bool {
	return len(list[corev1.Node](s.nodes, nodesByAddress, ip.String())) > 0
}

// addressOf returns the address of a family that the node has which runs on a machine.
func (s *snapshot) addressOf(machine string, family lb.Family) (netip.Addr, bool) {
	if machine == "" {
		return netip.Addr{}, false
	}
	for _, n := range list[corev1.Node](s.nodes, nodesByMachine, machine) {
		for _, ip := range internalIPs(n) {
			if family.Of(ip) {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}

func (s *snapshot) poolsOf(service poolupdate.ServiceName) []*v1alpha1.BackendPool {
	return list[v1alpha1.BackendPool](s.pools, poolsByService, key(service.Namespace, service.Name))
}

func (s *snapshot) poolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool {
	return list[v1alpha1.BackendPool](s.pools, poolsByTarget, string(pool))
}

// members returns which nodes belong in the pool, whatever its standing, and which of them
// are to be Down. The error is that of the selector.
func (s *snapshot) members(p *v1alpha1.BackendPool) (membership.Set, error) {
	set, err := s.hosts(p)
	if err != nil || s.draining == nil {
		return set, err
	}
	return set.Floor(s.draining.MinAvailablePercent), nil
}

// hosts returns the members as the nodes alone have them.
func (s *snapshot) hosts(p *v1alpha1.BackendPool) (membership.Set, error) {
	family := lb.Family(p.Spec.IPFamily)
	if p.Spec.ServiceRef != nil {
		var slcs []membership.Slice
		for _, es := range list[discoveryv1.EndpointSlice](s.slices, slicesByService, key(p.Namespace, p.Spec.ServiceRef.Name)) {
			slcs = append(slcs, sliceOf(es))
		}
		return membership.OfService(slcs, s.node, family), nil
	}
	nodes, err := s.selected(p)
	if err != nil {
		return membership.Set{}, err
	}
	return membership.OfNodes(nodes, family), nil
}

// selected are the nodes that match a pool's selector.
func (s *snapshot) selected(p *v1alpha1.BackendPool) (iter.Seq[membership.Node], error) {
	selector, err := backendpool.Selector(p)
	if err != nil {
		return nil, err
	}
	return func(yield func(membership.Node) bool) {
		if selector == nil {
			return
		}
		for _, obj := range s.nodes.List() {
			n, ok := obj.(*corev1.Node)
			if ok && selector.Matches(labels.Set(n.Labels)) && !yield(s.nodeOf(n)) {
				return
			}
		}
	}, nil
}
