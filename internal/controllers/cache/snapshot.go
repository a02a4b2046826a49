// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// Snapshot reads the informers' stores. Do not modify the objects.
type Snapshot struct {
	Slices, Services, Nodes, Pools, Namespaces toolscache.Indexer

	// Placement provides defaults for BackendPools.
	Placement Placement
	// ExcludeControlPlane excludes control-plane nodes from every pool.
	ExcludeControlPlane bool
	// Draining defines draining nodes; nil disables admin states.
	Draining *lb.DrainSignals
	// Serving determines the Services of Weir. Set it before filling the stores.
	Serving Serving
	// ExclusionReason returns why a node cannot be in a pool, or ""; a nil function means any node can. Set it
	// before filling the stores.
	ExclusionReason func(p *v1alpha1.BackendPool) func(*corev1.Node) string
	// LoadBalancerOf returns the load balancer of a node, for pools limited to their load balancer's nodes; nil for
	// others. Set it before filling the stores.
	LoadBalancerOf func(p *v1alpha1.BackendPool) func(*corev1.Node) string
	// ByMachine reports whether members are network interfaces; nil means never. Set it before filling the
	// stores.
	ByMachine func(p *v1alpha1.BackendPool) bool
	// HealthPort returns the port that all probes of a pool request by HTTP, or 0, and whether that is known; nil means
	// 0 everywhere. Set it before filling the stores.
	HealthPort func(pool lb.PoolID) (port int32, known bool)

	machines machineInputs
}

// Kind is a watched type with its store.
type Kind struct {
	Object   client.Object
	Store    *toolscache.Indexer
	Indexers toolscache.Indexers
}

// Kinds returns the types that a Snapshot reads. Their stores must be set.
func (s *Snapshot) Kinds() []Kind {
	return []Kind{
		{&discoveryv1.EndpointSlice{}, &s.Slices, sliceIndexers()},
		{&corev1.Service{}, &s.Services, s.serviceIndexers()},
		{&corev1.Node{}, &s.Nodes, nodeIndexers()},
		{&v1alpha1.BackendPool{}, &s.Pools, poolIndexers(s.Placement)},
		{&corev1.Namespace{}, &s.Namespaces, toolscache.Indexers{}},
	}
}

// Get returns an object by key, or nil.
func Get[T any](store toolscache.Indexer, name string) *T {
	obj, ok, err := store.GetByKey(name)
	if err != nil || !ok { // in-memory stores return no errors
		return nil
	}
	typed, _ := obj.(*T)
	return typed
}

// All returns all objects of a store.
func All[T any](store toolscache.Indexer) []*T {
	objs := store.List()
	out := make([]*T, 0, len(objs))
	for _, obj := range objs {
		if typed, ok := obj.(*T); ok {
			out = append(out, typed)
		}
	}
	return out
}

// List returns the objects with an index key.
func List[T any](store toolscache.Indexer, index, name string) []*T {
	objs, err := store.ByIndex(index, name)
	if err != nil { // the index does not exist
		panic(fmt.Sprintf("view: %v", err))
	}
	out := make([]*T, 0, len(objs))
	for _, obj := range objs {
		if typed, ok := obj.(*T); ok {
			out = append(out, typed)
		}
	}
	return out
}

// Pool returns a BackendPool, or nil.
func (s *Snapshot) Pool(namespace, name string) *v1alpha1.BackendPool {
	return Get[v1alpha1.BackendPool](s.Pools, metadata.Key(namespace, name))
}

// Service returns a Service, or nil.
func (s *Snapshot) Service(name schedule.ServiceName) *corev1.Service {
	return Get[corev1.Service](s.Services, metadata.Key(name.Namespace, name.Name))
}

// NodeOf converts a node with all inputs of membership for both kinds of pools.
func (s *Snapshot) NodeOf(n *corev1.Node) membership.Node {
	node := s.addressOf(n)
	s.machines.setMachine(&node, n)
	return node
}

// addressOf converts a node for a pool of addresses.
func (s *Snapshot) addressOf(n *corev1.Node) membership.Node {
	node := nodeOf(n, s.ExcludeControlPlane)
	if s.Draining != nil {
		reasons := s.Draining.DrainReasons(StateOf(n))
		node.DrainReason, node.DrainsAtOnce = strings.Join(reasons, ", "), s.Draining.IsAtOnce(reasons)
		if node.EvictionAnnounced = lb.IsSpotEviction(reasons); node.EvictionAnnounced {
			node.EvictionAnnouncedAt = lb.ParseEvictionRecord(n.Annotations[metadata.PreemptionAnnotation]).At
		}
		if node.StaysWhileServing = membership.ExcludedByLabel(n.Labels); node.StaysWhileServing {
			node.DrainReason, node.EvictionAnnounced = strings.Join(append(reasons, membership.ReasonExcluded), ", "), false
		}
	}
	return node
}

// HasServedEndpoint reports whether a node has an endpoint of a LoadBalancer or NodePort Service.
func (s *Snapshot) HasServedEndpoint(node string) bool {
	return slices.ContainsFunc(List[discoveryv1.EndpointSlice](s.Slices, SlicesByNode, node), func(es *discoveryv1.EndpointSlice) bool {
		service := s.Service(ServiceOfSlice(es))
		return service != nil && hasHost(es, node) && (service.Spec.Type == corev1.ServiceTypeLoadBalancer || service.Spec.Type == corev1.ServiceTypeNodePort)
	})
}

// Node returns a node by name.
func (s *Snapshot) Node(name string) (membership.Node, bool) { return s.nodeAs(s.NodeOf, name) }

func (s *Snapshot) nodeAs(as func(*corev1.Node) membership.Node, name string) (membership.Node, bool) {
	n := Get[corev1.Node](s.Nodes, name)
	if n == nil {
		return membership.Node{}, false
	}
	return as(n), true
}

// nodeIn returns the conversion of nodes for a pool.
func (s *Snapshot) nodeIn(p *v1alpha1.BackendPool) func(*corev1.Node) membership.Node {
	var elsewhere, places func(*corev1.Node) string
	if s.ExclusionReason != nil {
		elsewhere = s.ExclusionReason(p)
	}
	if s.LoadBalancerOf != nil {
		places = s.LoadBalancerOf(p)
	}
	convert, duplicatesOf := s.addressOf, s.sameAddress
	if s.ByMachine != nil && s.ByMachine(p) {
		convert, duplicatesOf = s.NodeOf, s.sameMachine
	}
	if places != nil {
		convert = placedBy(places, convert)
	}
	return func(n *corev1.Node) membership.Node {
		node := convert(n)
		if places != nil {
			nodes, shared := duplicatesOf(node, lb.Family(p.Spec.IPFamily))
			node = resolveDuplicate(node, nodes, shared, convert)
		}
		if elsewhere != nil && node.Excluded == "" {
			node.Excluded = elsewhere(n)
		}
		node.StaysWhileServing = node.StaysWhileServing && (p.Spec.Nodes == nil || s.HasServedEndpoint(n.Name))
		return node
	}
}

// NodeDiffers reports whether the membership inputs of a node differ.
func (s *Snapshot) NodeDiffers(before, after *corev1.Node) bool {
	return !s.NodeOf(before).Equal(s.NodeOf(after))
}

// NodeOrLabelsDiffer is NodeDiffers including labels, for selectors.
func (s *Snapshot) NodeOrLabelsDiffer(before, after *corev1.Node) bool {
	return !maps.Equal(before.Labels, after.Labels) || s.NodeDiffers(before, after)
}

// IsExcluded reports whether a node is excluded from every pool.
func (s *Snapshot) IsExcluded(n *corev1.Node) bool {
	return membership.Excluded(n.Labels, s.ExcludeControlPlane) != ""
}

// EligibleNodes returns the nodes that may take traffic.
func (s *Snapshot) EligibleNodes() []*corev1.Node {
	return slices.DeleteFunc(All[corev1.Node](s.Nodes), s.IsExcluded)
}

// IsNodeAddress reports whether a node has the address, including excluded nodes.
func (s *Snapshot) IsNodeAddress(ip netip.Addr) bool {
	return len(List[corev1.Node](s.Nodes, NodesByAddress, ip.String())) > 0
}

// NodeByAddress returns the node that determines the state of an address.
func (s *Snapshot) NodeByAddress(ip netip.Addr) (membership.Node, bool) {
	var nodes []membership.Node
	for _, n := range List[corev1.Node](s.Nodes, NodesByAddress, ip.String()) {
		nodes = append(nodes, s.NodeOf(n))
	}
	return membership.PreferredNode(nodes)
}

// ClusterUID returns the UID of the namespace kube-system; "" if it does not exist.
func (s *Snapshot) ClusterUID() string {
	if n := Get[corev1.Namespace](s.Namespaces, metav1.NamespaceSystem); n != nil {
		return string(n.UID)
	}
	return ""
}

// NodeAt returns the first node by name with an address; "" if none.
func (s *Snapshot) NodeAt(ip netip.Addr) (name string) {
	for _, n := range List[corev1.Node](s.Nodes, NodesByAddress, ip.String()) {
		if name == "" || n.Name < name {
			name = n.Name
		}
	}
	return name
}

// AddressOf returns the address of a family of the first node by name on a machine.
func (s *Snapshot) AddressOf(machine string, family lb.Family) (netip.Addr, bool) {
	if machine == "" {
		return netip.Addr{}, false
	}
	nodes := List[corev1.Node](s.Nodes, NodesByMachine, machine)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		for _, ip := range InternalIPs(n) {
			if family.Contains(ip) {
				return ip, true
			}
		}
	}
	return netip.Addr{}, false
}

// MachineOf returns the machine of a node, or why it is unknown.
func (s *Snapshot) MachineOf(node string) (nic.Machine, error) {
	n := Get[corev1.Node](s.Nodes, node)
	if n == nil {
		return nic.Machine{}, errors.New("the cluster has no such node any more")
	}
	return machineOf(n)
}

// Target returns the pool of a BackendPool.
func (s *Snapshot) Target(p *v1alpha1.BackendPool) (lb.PoolID, error) { return s.Placement.PoolOf(p) }

// PoolsOf returns the BackendPools of a Service.
func (s *Snapshot) PoolsOf(service schedule.ServiceName) []*v1alpha1.BackendPool {
	return List[v1alpha1.BackendPool](s.Pools, PoolsByService, metadata.Key(service.Namespace, service.Name))
}

// PoolsAt returns the BackendPools of a pool.
func (s *Snapshot) PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool {
	return List[v1alpha1.BackendPool](s.Pools, PoolsByTarget, string(pool))
}

// Members returns the members of a pool and which must be Down. The error is that of the selector.
func (s *Snapshot) Members(p *v1alpha1.BackendPool) (membership.Set, error) {
	set, err := s.membersOf(p)
	if err != nil || s.Draining == nil {
		set.DeletedMayServe = false
		return set, err
	}
	return set.KeepMinAvailable(s.Draining.MinAvailablePercent), nil
}

// membersOf returns the members without the floor for evictions.
func (s *Snapshot) membersOf(p *v1alpha1.BackendPool) (membership.Set, error) {
	family := lb.Family(p.Spec.IPFamily)
	if p.Spec.ServiceRef != nil {
		var slcs []membership.Slice
		for _, es := range List[discoveryv1.EndpointSlice](s.Slices, SlicesByService, metadata.Key(p.Namespace, p.Spec.ServiceRef.Name)) {
			slcs = append(slcs, SliceOf(es))
		}
		as := s.nodeIn(p)
		set := membership.OfService(slcs, func(name string) (membership.Node, bool) { return s.nodeAs(as, name) }, family)
		set.EarlyJoin = s.earlyJoin(p)
		return set, nil
	}
	nodes, err := s.selectedNodes(p)
	if err != nil {
		return membership.Set{}, err
	}
	return membership.OfNodes(nodes, family), nil
}

// earlyJoin decides from the probes of a pool. Only the port that kube-proxy opens for this Service reports where it
// serves.
func (s *Snapshot) earlyJoin(p *v1alpha1.BackendPool) membership.EarlyJoin {
	of := s.Service(schedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name})
	if s.HealthPort == nil || of == nil || of.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal || of.Spec.HealthCheckNodePort == 0 {
		return membership.JoinWhenReady
	}
	id, err := s.Target(p)
	if err != nil {
		return membership.JoinWhenReady
	}
	switch port, known := s.HealthPort(id); {
	case !known:
		return membership.JoinUnknown
	case port == of.Spec.HealthCheckNodePort:
		return membership.JoinWhileStarting
	}
	return membership.JoinWhenReady
}

func (s *Snapshot) selectedNodes(p *v1alpha1.BackendPool) (iter.Seq[membership.Node], error) {
	selector, err := backendpool.NodeSelector(p)
	if err != nil {
		return nil, err
	}
	as := s.nodeIn(p)
	return func(yield func(membership.Node) bool) {
		if selector == nil {
			return
		}
		for _, obj := range s.Nodes.List() {
			n, ok := obj.(*corev1.Node)
			if ok && selector.Matches(labels.Set(n.Labels)) && !yield(as(n)) {
				return
			}
		}
	}, nil
}
