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

// States are those of the load balancers of all Services, what others bring of them, and what others
// read. Its methods may be called from any goroutine.
type States struct {
	mu     sync.Mutex // held for moments
	byName map[string]*entry
}

// entry is what is known of the load balancer of one Service; a later Service of its name has
// another.
type entry struct {
	uid, owner string
	// turn has room for who reconciles the Service. It is held across calls of the API server.
	turn chan struct{}
	// State is that of who has the turn.
	State

	// What follows is guarded by the mu of States.
	brought brought
	shown   shown
}

// brought is what others bring between two looks.
type brought struct {
	result *balancer.Result
	lost   []LostPool
	filled bool
	// emptied is true once a BackendPool of a pool has gone that it waits for.
	emptied bool
}

// shown is what others read.
type shown struct {
	// condition is what the metric counts; empty before the first look.
	condition Condition
	// addressed is true while the Service has a load balancer, and looked once it is known what
	// becomes of it.
	addressed, looked bool
	// link is how it is published; nil if it is not.
	link *privatelinkround.State
	// served is what Azure holds for it; nil if that is not known, or nothing.
	served *Served
	// filling are the pools that it waits for.
	filling []lb.PoolID
	// emptying are the names of the load balancers whose pools it waits for.
	emptying []string
}

// LostPool is the pool of a BackendPool that is gone; without a name it is all that the load balancer had.
type LostPool struct{ LoadBalancer, Pool string }

// Served is what Azure holds for a Service, as far as this process knows. The BackendPools of these
// pools are Weir's own, or for the same Service.
type Served struct {
	On    lb.LoadBalancerID
	Pools []service.Pool
}

// Has reports whether a pool is among them.
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

// absent stands in for a Service that is gone although Azure may hold something of it, because
// somebody took its finalizer away: it leaves as one that is being deleted does. What this process
// recorded for it is surely Weir's.
func (e *entry) absent(name string) Service {
	namespace, short, _ := strings.Cut(name, "/")
	return Service{
		Name: name, UID: e.uid, Shown: e.Level.addresses,
		Ownership: Ownership{LoadBalancer: true, Deleting: true, Finalizer: true},
		Object:    service.Service{Namespace: namespace, Name: short, UID: e.uid, Families: []lb.Family{lb.IPv4}},
	}
}

// of returns the entry of a Service.
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

// Known reports whether a Service of a name is known, with its UID.
func (all *States) Known(name string) (uid string, is bool) {
	if e := all.known(name); e != nil {
		return e.uid, true
	}
	return "", false
}

// Absent has a Service that is gone leave a load balancer, unless one of its name is known, and
// reports whether it has to be reconciled for that.
func (all *States) Absent(name, uid, balancer string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byName[name] != nil {
		return false
	}
	all.byName[name] = newEntry(uid, absentState(balancer))
	return true
}

// Ensured brings what came of a request, and reports whether its Service has to be reconciled for
// that.
func (all *States) Ensured(res balancer.Result) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	e := all.byName[res.Service]
	if e != nil && e.owner == res.Owner {
		e.brought.result = &res
	}
	return e != nil
}

// PoolLost brings that a BackendPool of a Service is gone, or its pool, and reports whether the
// Service is known.
func (all *States) PoolLost(name string, p LostPool) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	e := all.byName[name]
	if e != nil && !slices.Contains(e.brought.lost, p) {
		e.brought.lost = append(e.brought.lost, p)
	}
	return e != nil
}

// PoolFilled brings that a pool holds its members, and reports whether a Service waits for that.
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

// hear takes in what others have brought.
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

// show has others read what a look has come to.
func (all *States) show(e *entry, ours bool, now time.Time) {
	is := e.condition(ours, now)
	all.mu.Lock()
	defer all.mu.Unlock()
	e.shown.condition, e.shown.addressed = is, len(e.Placement.Places) > 0 && e.Told.had
	e.shown.looked = e.shown.looked || !e.Pending.Running
}

// showFilling has others read which pools a Service waits for.
func (all *States) showFilling(e *entry) {
	all.mu.Lock()
	defer all.mu.Unlock()
	e.shown.filling = e.Filling.pools
}

// showEmptying has others read which load balancers a Service waits for.
func (all *States) showEmptying(e *entry) {
	all.mu.Lock()
	defer all.mu.Unlock()
	e.shown.emptying = e.Emptying.balancers()
}

// Emptied brings that a BackendPool of the nodes of a load balancer has gone, and returns the
// Services that wait for that.
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

// Holds notes what Azure holds for a Service, and reports whether that has changed.
func (all *States) Holds(s Service, now *Served) bool {
	e := all.of(s)
	all.mu.Lock()
	defer all.mu.Unlock()
	before := e.shown.served
	e.shown.served = now
	return !before.same(now)
}

// Served returns what Azure holds for a Service of this UID; nil if that is not known, or nothing.
func (all *States) Served(name, uid string) *Served {
	all.mu.Lock()
	defer all.mu.Unlock()
	if e := all.byName[name]; e != nil && e.uid == uid {
		return e.shown.served
	}
	return nil
}

// Count counts the Services that have a load balancer of Weir's, or are to have one, by condition.
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

// addressed counts the Services that have an address of Weir's, those included that are gone
// without a word. shown are those whose status shows one.
func (all *States) addressed(shown []string) int {
	names := map[string]bool{}
	for _, name := range shown {
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

// looked reports whether it is known of every Service that shows an address what becomes of
// it: it was looked at, and asked for if it had to be.
func (all *States) looked(shown []string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return !slices.ContainsFunc(shown, func(name string) bool {
		e := all.byName[name]
		return e == nil || !e.shown.looked
	})
}
