// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelinkround"
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
	// turn is a lock, held by the reconcile of the Service across API server calls.
	turn chan struct{}
	// State is guarded by turn.
	State

	// The fields below are guarded by States.mu.
	brought brought
	shown   shown
}

// brought holds notifications received between two reconciles.
type brought struct {
	result *balancer.Result
	lost   []LostPool
	filled bool
	// emptied is set once an awaited BackendPool was deleted.
	emptied bool
}

type shown struct {
	// condition is counted by the metric; empty before the first reconcile.
	condition Condition
	// addressed is set while the Service has a load balancer, looked once its next step is known.
	addressed, looked bool
	link              *privatelinkround.State
	// served is what Azure holds for it; nil if nothing or unknown.
	served   *Served
	filling  []lb.PoolID
	emptying []string
}

// LostPool is the pool of a deleted BackendPool; without a name, all pools of the load balancer.
type LostPool struct{ LoadBalancer, Pool string }

// Served is what Azure is known to hold for a Service. The BackendPools of these pools are Weir's, or for the
// same Service.
type Served struct {
	On    lb.LoadBalancerID
	Pools []service.Pool
}

func (s *Served) Has(at lb.PoolID) bool {
	return s != nil && s.On.Key() == at.LoadBalancer.Key() &&
		slices.ContainsFunc(s.Pools, func(p service.Pool) bool { return strings.EqualFold(p.Name, at.Name) })
}

func (s *Served) same(other *Served) bool {
	return s != nil && other != nil && s.On.Key() == other.On.Key() && slices.Equal(s.Pools, other.Pools)
}

func newEntry(uid string, st State) *entry {
	return &entry{uid: uid, owner: service.Owner(uid), turn: make(chan struct{}, 1), State: st}
}

// absent returns a substitute for a Service that was deleted without its finalizer while Azure may hold parts
// of it. It is handled like one being deleted; what this process recorded for it is Weir's.
func (e *entry) absent(name string) Service {
	namespace, short, _ := strings.Cut(name, "/")
	return Service{
		Name: name, UID: e.uid, Shown: e.Level.addresses,
		Ownership: Ownership{LoadBalancer: true, Deleting: true, Finalizer: true},
		Object:    service.Service{Namespace: namespace, Name: short, UID: e.uid, Families: []lb.Family{lb.IPv4}},
	}
}

func (all *States) of(s Service) *entry {
	all.mu.Lock()
	defer all.mu.Unlock()
	e := all.byName[s.Name]
	if e == nil || e.uid != s.UID {
		e = newEntry(s.UID, newState(s))
		all.byName[s.Name] = e
	}
	return e
}

func (all *States) known(name string) *entry {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byName[name]
}

func (all *States) forget(name string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.byName, name)
}

// Known returns the UID of a known Service.
func (all *States) Known(name string) (uid string, ok bool) {
	if e := all.known(name); e != nil {
		return e.uid, true
	}
	return "", false
}

// Absent starts the removal of a deleted Service from a load balancer, unless a Service of that name is known.
// It reports whether to reconcile it.
func (all *States) Absent(name, uid, balancer string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byName[name] != nil {
		return false
	}
	all.byName[name] = newEntry(uid, absentState(balancer))
	return true
}

// Ensured delivers the result of a request and reports whether to reconcile its Service.
func (all *States) Ensured(res balancer.Result) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	e := all.byName[res.Service]
	if e != nil && e.owner == res.Owner {
		e.brought.result = &res
	}
	return e != nil
}

// PoolLost delivers that a BackendPool or its pool was deleted and reports whether the Service is known.
func (all *States) PoolLost(name string, p LostPool) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	e := all.byName[name]
	if e != nil && !slices.Contains(e.brought.lost, p) {
		e.brought.lost = append(e.brought.lost, p)
	}
	return e != nil
}

// PoolFilled delivers that a pool is filled and reports whether the Service waits for it.
func (all *States) PoolFilled(name string, pool lb.PoolID) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	e := all.byName[name]
	if e == nil || !slices.ContainsFunc(e.shown.filling, func(id lb.PoolID) bool { return id.Key() == pool.Key() }) {
		return false
	}
	e.brought.filled = true
	return true
}

func (all *States) hear(e *entry) {
	all.mu.Lock()
	b := e.brought
	e.brought = brought{}
	all.mu.Unlock()
	e.Pending.ended(b.result)
	e.Filling.filled(b.filled)
	e.Emptying.emptied(b.emptied)
	for _, p := range b.lost {
		e.loses(p)
	}
	all.showFilling(e)
}

func (all *States) show(e *entry, managed bool, now time.Time) {
	condition := e.condition(managed, now)
	all.mu.Lock()
	defer all.mu.Unlock()
	e.shown.condition, e.shown.addressed = condition, len(e.Placement.Places) > 0 && e.Told.had
	e.shown.looked = e.shown.looked || !e.Pending.Running
}

func (all *States) showFilling(e *entry) {
	all.mu.Lock()
	defer all.mu.Unlock()
	e.shown.filling = e.Filling.pools
}

func (all *States) showEmptying(e *entry) {
	all.mu.Lock()
	defer all.mu.Unlock()
	e.shown.emptying = e.Emptying.balancers()
}

// Emptied delivers that a node BackendPool of a load balancer was deleted and returns the Services that wait
// for it.
func (all *States) Emptied(balancer string) (names []string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for name, e := range all.byName {
		if slices.ContainsFunc(e.shown.emptying, func(name string) bool { return strings.EqualFold(name, balancer) }) {
			e.brought.emptied = true
			names = append(names, name)
		}
	}
	return names
}

// Holds records what Azure holds for a Service and reports whether it changed.
func (all *States) Holds(s Service, now *Served) bool {
	e := all.of(s)
	all.mu.Lock()
	defer all.mu.Unlock()
	before := e.shown.served
	e.shown.served = now
	return !before.same(now)
}

// Served returns what Azure holds for the Service with this UID; nil if nothing or unknown.
func (all *States) Served(name, uid string) *Served {
	all.mu.Lock()
	defer all.mu.Unlock()
	if e := all.byName[name]; e != nil && e.uid == uid {
		return e.shown.served
	}
	return nil
}

// Count counts Weir's Services by condition.
func (all *States) Count() map[Condition]int {
	count := map[Condition]int{}
	for _, is := range Conditions() {
		count[is] = 0
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, e := range all.byName {
		if e.shown.condition != "" {
			count[e.shown.condition]++
		}
	}
	return count
}

// addressed counts Services with an address of Weir's, including deleted ones not yet removed, and the given
// ones.
func (all *States) addressed(services []string) int {
	names := map[string]bool{}
	for _, name := range services {
		names[name] = true
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	for name, e := range all.byName {
		if e.shown.addressed {
			names[name] = true
		}
	}
	return len(names)
}

// looked reports whether the next step of all the Services is known.
func (all *States) looked(services []string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return !slices.ContainsFunc(services, func(name string) bool {
		e := all.byName[name]
		return e == nil || !e.shown.looked
	})
}
