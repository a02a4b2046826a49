// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// world is an in-memory cluster. It implements Cluster, Owner and Events.
type world struct {
	pools    map[string]*v1alpha1.BackendPool
	services map[schedule.ServiceName]Service
	nodes    map[string]netip.Addr
	events   []objectEvent
	queued   []schedule.Ref
	left     map[lb.PoolKey]bool
	empty    []string // BackendPools that were reported
}

type objectEvent struct {
	about, name string
	Event
}

func (w *world) Pool(namespace, name string) *v1alpha1.BackendPool {
	return w.pools[objectKey(namespace, name)]
}

func (w *world) listPools(are func(*v1alpha1.BackendPool) bool) (pools []*v1alpha1.BackendPool) {
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		if are(w.pools[name]) {
			pools = append(pools, w.pools[name])
		}
	}
	return pools
}

func (w *world) PoolsOf(s schedule.ServiceName) []*v1alpha1.BackendPool {
	return w.listPools(func(p *v1alpha1.BackendPool) bool {
		return p.Namespace == s.Namespace && p.Spec.ServiceRef != nil && p.Spec.ServiceRef.Name == s.Name
	})
}

func (w *world) PoolsAt(pool lb.PoolKey) []*v1alpha1.BackendPool {
	return w.listPools(func(p *v1alpha1.BackendPool) bool {
		id, err := w.Target(p)
		return err == nil && id.Key() == pool
	})
}

func (w *world) Target(p *v1alpha1.BackendPool) (lb.PoolID, error) {
	id := lb.PoolID{Name: p.Spec.PoolName, LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: p.Spec.LoadBalancer.Name}}
	return id, id.Validate()
}

func (w *world) Service(name schedule.ServiceName) (Service, bool) {
	s, ok := w.services[name]
	return s, ok
}

func (w *world) Members(p *v1alpha1.BackendPool) (membership.Set, error) {
	if p.Spec.Nodes == nil {
		return membership.Set{}, nil
	}
	if _, err := NodeSelector(p); err != nil {
		return membership.Set{}, err
	}
	var nodes []membership.Node
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		nodes = append(nodes, membership.Node{Name: name, IPs: []netip.Addr{w.nodes[name]}})
	}
	return membership.OfNodes(slices.Values(nodes), lb.Family(p.Spec.IPFamily)), nil
}

func (w *world) IsNodeAddress(ip netip.Addr) bool {
	return slices.Contains(slices.Collect(maps.Values(w.nodes)), ip)
}

func (w *world) UID() string { return "" }

func (w *world) NodeAt(ip netip.Addr) string {
	for name, addr := range w.nodes {
		if addr == ip {
			return name
		}
	}
	return ""
}

func (w *world) nodeByAddress(ip netip.Addr) (membership.Node, bool) {
	name := w.NodeAt(ip)
	return membership.Node{Name: name, IPs: []netip.Addr{ip}}, name != ""
}

func (w *world) AddressOf(string, lb.Family) (netip.Addr, bool) { return netip.Addr{}, false }

func (w *world) MachineOf(string) (nic.Machine, error) { return nic.Machine{}, nil }

func (w *world) ConfigurationOf(p *v1alpha1.BackendPool) string { return p.Spec.LoadBalancer.Name }

func (w *world) Permission(p *v1alpha1.BackendPool, _ lb.PoolID) (Permission, Rejection) {
	if w.IsCreatedByWeir(p) {
		return Managed, Rejection{}
	}
	return Granted, Rejection{}
}

func (w *world) IsLeftForeign(pool lb.PoolKey) bool           { return w.left[pool] }
func (w *world) IsCreatedByWeir(p *v1alpha1.BackendPool) bool { return p.Status.MadeFor != "" }
func (w *world) UsesInterfaces(p *v1alpha1.BackendPool) bool {
	return p.Spec.Membership == v1alpha1.MembershipNetworkInterface
}
func (w *world) ManagedFor(p *v1alpha1.BackendPool) string           { return p.Status.MadeFor }
func (w *world) IsInUse(*v1alpha1.BackendPool) bool                  { return false }
func (w *world) HandleDeletion(*v1alpha1.BackendPool)                {}
func (w *world) HandleMissing(*v1alpha1.BackendPool)                 {}
func (w *world) HandleAttempt(*v1alpha1.BackendPool, updater.Report) {}
func (w *world) HandleEmpty(p *v1alpha1.BackendPool)                 { w.empty = append(w.empty, p.Name) }

func (w *world) OnPool(p *v1alpha1.BackendPool, e Event) {
	w.events = append(w.events, objectEvent{"BackendPool", objectKey(p.Namespace, p.Name), e})
}

func (w *world) OnService(name schedule.ServiceName, e Event) {
	if _, ok := w.services[name]; ok {
		w.events = append(w.events, objectEvent{"Service", objectKey(name.Namespace, name.Name), e})
	}
}

func (w *world) RecordRetained(*v1alpha1.BackendPool, Binding, membership.Set) {}

func (w *world) AdminStates(*v1alpha1.BackendPool, Binding, updater.Report, AdminChanges) {}

func (w *world) nextEvent() (objectEvent, bool) {
	if len(w.events) == 0 {
		return objectEvent{}, false
	}
	first := w.events[0]
	w.events = w.events[1:]
	return first, true
}

func (w *world) addObjects(objects ...any) {
	for _, obj := range objects {
		switch current := obj.(type) {
		case *v1alpha1.BackendPool:
			w.pools[objectKey(current.Namespace, current.Name)] = current
		case *corev1.Service:
			w.services[schedule.ServiceName{Namespace: current.Namespace, Name: current.Name}] = Service{
				UID: current.UID, Deleting: current.DeletionTimestamp != nil, Type: string(current.Spec.Type),
			}
		}
	}
}

func (w *world) deleteService(s *corev1.Service) {
	delete(w.services, schedule.ServiceName{Namespace: s.Namespace, Name: s.Name})
}

type cluster struct {
	*Controller
	world *world
}

// newCluster returns a cluster with these objects. Their status sets taken and made; every namespace may use
// every pool.
func newCluster(t *testing.T, objects ...any) *cluster {
	t.Helper()
	w := &world{pools: map[string]*v1alpha1.BackendPool{}, services: map[schedule.ServiceName]Service{}, nodes: map[string]netip.Addr{}}
	w.addObjects(objects...)
	return &cluster{New(Config{
		Cluster: w, Owner: w, Events: w, Workers: &queued{}, Queue: func(ref schedule.Ref) { w.queued = append(w.queued, ref) },
		Log: slog.New(slog.DiscardHandler), Retention: &RetentionPolicy{NodeAt: w.nodeByAddress},
	}, NewStatuses(nil)), w}
}

type statusAPI struct {
	stored *v1alpha1.BackendPool
	fail   error
	writes []*v1alpha1.BackendPoolStatus
	// applied, if set, runs before a write.
	applied func()
}

func (a *statusAPI) Load(_ context.Context, ref schedule.Ref) (*v1alpha1.BackendPool, error) {
	if a.fail == nil && string(a.stored.UID) != ref.UID {
		return nil, metadata.ErrDeleted
	}
	return a.stored.DeepCopy(), a.fail
}

func (a *statusAPI) Apply(_ context.Context, _ schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	if a.applied != nil {
		a.applied()
	}
	if a.fail != nil {
		return "", a.fail
	}
	a.writes = append(a.writes, status.DeepCopy())
	return version, nil
}

func (a *statusAPI) All(context.Context) ([]*v1alpha1.BackendPool, error) {
	return []*v1alpha1.BackendPool{a.stored.DeepCopy()}, a.fail
}

func (a *statusAPI) SetFinalizer(_ context.Context, p *v1alpha1.BackendPool, _ bool) (*v1alpha1.BackendPool, error) {
	return p, a.fail
}

func newRecordedPool(t *testing.T) (*cluster, *statusAPI, *v1alpha1.BackendPool) {
	t.Helper()
	p := bp("a", 0)
	c := newCluster(t, p, serviceOfType(corev1.ServiceTypeLoadBalancer))
	api := &statusAPI{stored: p}
	c.restartProcess(api)
	if _, err := c.statuses.LoadEntry(t.Context(), p, time.Now()); err != nil {
		t.Fatal(err)
	}
	return c, api, p
}

// restartProcess replaces the process; only the API server's content remains.
func (c *cluster) restartProcess(api API) { c.statuses = NewStatuses(api) }

func (c *cluster) reconcilePool(t *testing.T, p *v1alpha1.BackendPool) (Result, error) {
	t.Helper()
	return c.Reconcile(t.Context(), p.Namespace, p.Name, time.Now())
}

func newLoadedPool(t *testing.T, p *v1alpha1.BackendPool, service *corev1.Service, nodes ...string) (*cluster, *Entry) {
	t.Helper()
	c := newCluster(t, p)
	if service != nil {
		c.world.addObjects(service)
	}
	for _, name := range nodes {
		c.world.nodes[name] = nodeIP(name)
	}
	return c, c.statuses.AdoptPool(p)
}

func nodeIP(name string) netip.Addr { return netip.MustParseAddr("10.0.0." + name[1:]) }

type queued struct {
	ops     []schedule.Operation
	removed []schedule.ServiceName
	retried int
	inSync  bool
}

func (q *queued) Run(context.Context)           {}
func (q *queued) Add(ops ...schedule.Operation) { q.ops = append(q.ops, ops...) }
func (q *queued) RemoveService(name schedule.ServiceName) int {
	q.removed = append(q.removed, name)
	return 0
}
func (q *queued) Forget(lb.PoolID)                {}
func (q *queued) Drop(schedule.Ref)               {}
func (q *queued) Retry(schedule.Ref)              { q.retried++ }
func (q *queued) IsInSync(lb.PoolID, uint64) bool { return q.inSync }
func (q *queued) Resume()                         {}
