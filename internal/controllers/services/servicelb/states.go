// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/service"
)

// States holds the state of all Services' load balancers, with notifications and a read-only view. Its methods
// are safe for concurrent use.
type States struct {
	mu     sync.Mutex // held briefly
	byName map[string]*entry
}

// entry is the state of one Service; a recreated Service gets a new entry.
type entry struct {
	uid, owner string
	// lock is a lock, held by the reconcile of the Service across API server calls.
	lock chan struct{}
	// State is guarded by lock, and so is retainAddress, the annotation when the Service was last seen.
	State
	retainAddress string

	// The fields below are guarded by States.mu.
	inbox inbox
	view  view
}

// inbox holds notifications received between two reconciles.
type inbox struct {
	result    *loadbalancer.Result
	lostPools []LostPool
	// poolChanged is set once an awaited pool was filled or an awaited BackendPool deleted.
	poolChanged bool
}

type view struct {
	// condition is counted by the metric; empty before the first reconcile.
	condition Condition
	// hasAddress is set while the Service has a load balancer, looked once its next step is known.
	hasAddress, isResolved bool
	// isInSync is set if the last reconcile found Azure in sync.
	isInSync bool
	link     *privatelink.State
	// observed is what Azure holds for it; nil if nothing or unknown.
	observed              *ObservedPools
	fillingPools          []lb.PoolID
	drainingLoadBalancers []string
}

// LostPool is the pool of a deleted BackendPool; without a name, all pools of the load balancer.
type LostPool struct{ LoadBalancer, Pool string }

// ObservedPools is what Azure is known to hold for a Service. The BackendPools of these pools are Weir's, or for the
// same Service.
type ObservedPools struct {
	On    lb.LoadBalancerID
	Pools []service.Pool
}

// HasPool reports whether a pool is among the observed ones.
func (o *ObservedPools) HasPool(at lb.PoolID) bool {
	return o != nil && o.On.Key() == at.LoadBalancer.Key() &&
		slices.ContainsFunc(o.Pools, func(p service.Pool) bool { return strings.EqualFold(p.Name, at.Name) })
}

func (o *ObservedPools) isSame(other *ObservedPools) bool {
	return o != nil && other != nil && o.On.Key() == other.On.Key() && slices.Equal(o.Pools, other.Pools)
}

func newEntry(uid string, st State) *entry {
	return &entry{uid: uid, owner: service.OwnerNameOf(uid), lock: make(chan struct{}, 1), State: st}
}

// goneService returns a substitute for a Service that was deleted without its finalizer while Azure may hold parts
// of it. It is handled like one being deleted; what this process recorded for it is Weir's.
func (e *entry) goneService(name string) Service {
	namespace, short, _ := strings.Cut(name, "/")
	return Service{
		Name: name, UID: e.uid, StatusAddresses: e.Sync.addresses,
		Ownership: Ownership{LoadBalancer: true, Deleting: true, Finalizer: true},
		Object:    service.Service{Namespace: namespace, Name: short, UID: e.uid, Families: []lb.Family{lb.IPv4}, Annotations: map[string]string{service.RetainAddress: e.retainAddress}},
	}
}

func (states *States) entryOf(s Service) *entry {
	states.mu.Lock()
	defer states.mu.Unlock()
	e := states.byName[s.Name]
	if e == nil || e.uid != s.UID {
		e = newEntry(s.UID, newState(s))
		states.byName[s.Name] = e
	}
	return e
}

func (states *States) knownEntry(name string) *entry {
	states.mu.Lock()
	defer states.mu.Unlock()
	return states.byName[name]
}

func (states *States) forgetService(name string) {
	states.mu.Lock()
	defer states.mu.Unlock()
	delete(states.byName, name)
}

// KnownUID returns the UID of a known Service.
func (states *States) KnownUID(name string) (uid string, ok bool) {
	if e := states.knownEntry(name); e != nil {
		return e.uid, true
	}
	return "", false
}

// AddGone starts the removal of a deleted Service from a load balancer, unless a Service of that name is known.
// It reports whether to reconcile it.
func (states *States) AddGone(name, uid, balancer string) bool {
	states.mu.Lock()
	defer states.mu.Unlock()
	if states.byName[name] != nil {
		return false
	}
	states.byName[name] = newEntry(uid, goneState(balancer))
	return true
}

// AddResult delivers the result of a request and reports whether to reconcile its Service.
func (states *States) AddResult(res loadbalancer.Result) bool {
	states.mu.Lock()
	defer states.mu.Unlock()
	e := states.byName[res.Service]
	if e != nil && e.owner == res.Owner {
		e.inbox.result = &res
	}
	return e != nil
}

// AddLostPool delivers that a BackendPool or its pool was deleted and reports whether the Service is known.
func (states *States) AddLostPool(name string, p LostPool) bool {
	states.mu.Lock()
	defer states.mu.Unlock()
	e := states.byName[name]
	if e != nil && !slices.Contains(e.inbox.lostPools, p) {
		e.inbox.lostPools = append(e.inbox.lostPools, p)
	}
	return e != nil
}

// AddFilledPool delivers that a pool is filled and reports whether the Service waits for it.
func (states *States) AddFilledPool(name string, pool lb.PoolID) bool {
	states.mu.Lock()
	defer states.mu.Unlock()
	e := states.byName[name]
	if e == nil || !slices.ContainsFunc(e.view.fillingPools, func(id lb.PoolID) bool { return id.Key() == pool.Key() }) {
		return false
	}
	e.inbox.poolChanged = true
	return true
}

func (states *States) drainInbox(e *entry) {
	states.mu.Lock()
	b := e.inbox
	e.inbox = inbox{}
	states.mu.Unlock()
	e.Pending.setResult(b.result)
	e.PoolWait.recordChange(b.poolChanged)
	for _, p := range b.lostPools {
		e.recordLostPool(p)
	}
	states.updateViewPools(e)
}

func (states *States) updateView(e *entry, managed bool, now time.Time) {
	condition := e.currentCondition(managed, now)
	states.mu.Lock()
	defer states.mu.Unlock()
	e.view.condition, e.view.hasAddress = condition, len(e.Placement.LoadBalancers) > 0 && e.Events.hadLoadBalancer
	e.view.isResolved = e.view.isResolved || !e.Pending.Running
	e.view.isInSync = e.Sync.isPublished
}

func (states *States) updateViewPools(e *entry) {
	states.mu.Lock()
	defer states.mu.Unlock()
	e.view.fillingPools, e.view.drainingLoadBalancers = e.PoolWait.fills, e.PoolWait.drainingLoadBalancers()
}

// AddDrainedPool delivers that a node BackendPool of a load balancer was deleted and returns the Services that wait
// for it.
func (states *States) AddDrainedPool(balancer string) (names []string) {
	states.mu.Lock()
	defer states.mu.Unlock()
	for name, e := range states.byName {
		if slices.ContainsFunc(e.view.drainingLoadBalancers, func(name string) bool { return strings.EqualFold(name, balancer) }) {
			e.inbox.poolChanged = true
			names = append(names, name)
		}
	}
	return names
}

// SetObserved records what Azure holds for a Service and reports whether it changed.
func (states *States) SetObserved(s Service, observed *ObservedPools) bool {
	e := states.entryOf(s)
	states.mu.Lock()
	defer states.mu.Unlock()
	before := e.view.observed
	e.view.observed = observed
	return !before.isSame(observed)
}

// ObservedFor returns what Azure holds for the Service with this UID; nil if nothing or unknown.
func (states *States) ObservedFor(name, uid string) *ObservedPools {
	states.mu.Lock()
	defer states.mu.Unlock()
	if e := states.byName[name]; e != nil && e.uid == uid {
		return e.view.observed
	}
	return nil
}

// IsInSync reports whether the last reconcile of a Service found Azure in sync, without a request running.
func (states *States) IsInSync(name string) bool {
	states.mu.Lock()
	defer states.mu.Unlock()
	e := states.byName[name]
	return e != nil && e.view.isInSync
}

// CountConditions counts Weir's Services by condition.
func (states *States) CountConditions() map[Condition]int {
	count := map[Condition]int{}
	for _, cond := range AllConditions() {
		count[cond] = 0
	}
	states.mu.Lock()
	defer states.mu.Unlock()
	for _, e := range states.byName {
		if e.view.condition != "" {
			count[e.view.condition]++
		}
	}
	return count
}

// countAddressed counts Services with an address of Weir's, including deleted ones not yet removed, and the given
// ones.
func (states *States) countAddressed(services []string) int {
	names := map[string]bool{}
	for _, name := range services {
		names[name] = true
	}
	states.mu.Lock()
	defer states.mu.Unlock()
	for name, e := range states.byName {
		if e.view.hasAddress {
			names[name] = true
		}
	}
	return len(names)
}

// allResolved reports whether the next step of all the Services is known.
func (states *States) allResolved(services []string) bool {
	states.mu.Lock()
	defer states.mu.Unlock()
	return !slices.ContainsFunc(services, func(name string) bool {
		e := states.byName[name]
		return e == nil || !e.view.isResolved
	})
}
