// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// entry is what is known of the load balancer of one Service; a later Service of its name has
// another.
type entry struct {
	uid, owner string
	// turn has room for who reconciles the Service. It is held across calls of the API server.
	turn chan struct{}
	// State is that of who has the turn.
	State

	// What follows is guarded by the Reconciler's mu.
	brought brought
	shown   shown
}

// brought is what others bring between two looks.
type brought struct {
	result *balancer.Result
	lost   *LostPool
	filled bool
}

// shown is what others read.
type shown struct {
	// condition is what the metric counts; empty before the first look.
	condition Condition
	// addressed is true while the Service has a load balancer, and looked once it is known what
	// becomes of it.
	addressed, looked bool
	// served is what Azure holds for it; nil if that is not known, or nothing.
	served *Served
	// filling are the pools that it waits for.
	filling []lb.PoolID
}

// LostPool is the pool of a BackendPool that is gone.
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

// enter returns a Service, or what stands in for one that is gone, with its entry and the turn to
// work on it; no entry if there is nothing to do.
func (r *Reconciler) enter(ctx context.Context, name string) (s Service, e *entry, leave func(), err error) {
	class := r.cfg.Settings.Class
	s, there := r.cfg.Cluster.Service(name)
	switch {
	case !there:
		e = r.known(name)
	case s.Ours(class) || s.Held(class):
		e = r.of(s)
	}
	if e == nil {
		r.forget(name)
		return s, nil, nil, nil
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return s, nil, nil, nil
	}
	leave = func() { <-e.turn }
	if there {
		if e.Placement.absent { // a list that was empty had us take it for gone
			e.Level.drop()
		}
		e.Placement.absent, e.Placement.deleting = false, s.Deleting
		return s, e, leave, nil
	}
	if !e.Placement.leaves() {
		leave()
		r.forget(name)
		return s, nil, nil, nil
	}
	e.Placement.absent = true
	return e.absent(name), e, leave, nil
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
func (r *Reconciler) of(s Service) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.all[s.Name]
	if e == nil || e.uid != s.UID {
		e = newEntry(s.UID, newState(s))
		r.all[s.Name] = e
	}
	return e
}

func (r *Reconciler) known(name string) *entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[name]
}

func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	delete(r.all, name)
	r.mu.Unlock()
	r.removals.Stays(name)
}

// Known reports whether a Service of a name is known, with its UID.
func (r *Reconciler) Known(name string) (uid string, is bool) {
	if e := r.known(name); e != nil {
		return e.uid, true
	}
	return "", false
}

// Absent has a Service that is gone leave a load balancer, unless one of its name is known, and
// reports whether it has to be reconciled for that.
func (r *Reconciler) Absent(name, uid, balancer string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[name] != nil {
		return false
	}
	r.all[name] = newEntry(uid, absentState(balancer))
	return true
}

// Ensured brings what came of a request, and reports whether its Service has to be reconciled for
// that.
func (r *Reconciler) Ensured(res balancer.Result) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.all[res.Service]
	if e != nil && e.owner == res.Owner {
		e.brought.result = &res
	}
	return e != nil
}

// PoolLost brings that a BackendPool of a Service is gone, or its pool, and reports whether the
// Service is known.
func (r *Reconciler) PoolLost(name string, p LostPool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.all[name]
	if e != nil {
		e.brought.lost = &p
	}
	return e != nil
}

// PoolFilled brings that a pool holds its members, and reports whether a Service waits for that.
func (r *Reconciler) PoolFilled(name string, pool lb.PoolID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.all[name]
	if e == nil || !slices.ContainsFunc(e.shown.filling, func(id lb.PoolID) bool { return id.Key() == pool.Key() }) {
		return false
	}
	e.brought.filled = true
	return true
}

// hear takes in what others have brought.
func (r *Reconciler) hear(e *entry) {
	r.mu.Lock()
	b := e.brought
	e.brought = brought{}
	r.mu.Unlock()
	e.Pending.ended(b.result)
	e.Filling.filled(b.filled)
	e.loses(b.lost)
	r.showFilling(e)
}

// show has others read what a look has come to.
func (r *Reconciler) show(e *entry, s Service, now time.Time) {
	is := e.condition(s.Ours(r.cfg.Settings.Class), now)
	r.mu.Lock()
	defer r.mu.Unlock()
	e.shown.condition, e.shown.addressed = is, len(e.Placement.Places) > 0 && e.Told.had
	e.shown.looked = e.shown.looked || !e.Pending.Running
}

// showFilling has others read which pools a Service waits for.
func (r *Reconciler) showFilling(e *entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.shown.filling = e.Filling.pools
}

func (r *Reconciler) fillingEnds(e *entry) {
	e.Filling.ends()
	r.showFilling(e)
}

// Holds notes what Azure holds for a Service, and reports whether that has changed.
func (r *Reconciler) Holds(s Service, now *Served) bool {
	e := r.of(s)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := e.shown.served
	e.shown.served = now
	return !before.same(now)
}

// Served returns what Azure holds for a Service of this UID; nil if that is not known, or nothing.
func (r *Reconciler) Served(name, uid string) *Served {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.all[name]; e != nil && e.uid == uid {
		return e.shown.served
	}
	return nil
}

// Count counts the Services that have a load balancer of Weir's, or are to have one, by condition.
func (r *Reconciler) Count() map[Condition]int {
	count := map[Condition]int{}
	for _, is := range Conditions() {
		count[is] = 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.all {
		if e.shown.condition != "" {
			count[e.shown.condition]++
		}
	}
	return count
}

// addressed counts the Services that have an address of Weir's, those included that are gone
// without a word.
func (r *Reconciler) addressed() int {
	names := map[string]bool{}
	for _, name := range r.cfg.Cluster.Addressed() {
		names[name] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, e := range r.all {
		if e.shown.addressed {
			names[name] = true
		}
	}
	return len(names)
}

// allLookedAt reports whether it is known of every Service that shows an address what becomes of
// it: it was looked at, and asked for if it had to be.
func (r *Reconciler) allLookedAt() bool {
	all := r.cfg.Cluster.Addressed()
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(all, func(name string) bool {
		e := r.all[name]
		return e == nil || !e.shown.looked
	})
}

// Request returns what would be asked of a Locator for a Service, or why it is refused. A request
// without load balancers is for one of which Azure holds nothing, and which wants nothing.
func (r *Reconciler) Request(ctx context.Context, by Locator, s Service) (req balancer.Request, problems string, err error) {
	d, err := r.desired(ctx, s)
	if err != nil {
		return req, "", err
	}
	if len(d.Problems) > 0 {
		return req, wrongWith(d.Problems), nil
	}
	req, _, err = r.request(ctx, by, s, r.of(s).Placement.Record, d)
	return req, "", err
}

// WriteDown makes and deletes the BackendPools of a request that was rehearsed, as Reconcile does when
// one is done, and its record.
func (r *Reconciler) WriteDown(ctx context.Context, res balancer.Result) error {
	for _, id := range res.Gone {
		if err := r.cfg.Ledger.DropNodePools(ctx, id); err != nil {
			return err
		}
	}
	s, there := r.cfg.Cluster.Service(res.Service)
	switch {
	case !there || res.Err != nil:
		return nil
	case res.Desired == nil:
		return r.cfg.Ledger.DropPools(ctx, s, nil, res.Without)
	}
	if err := r.record(ctx, s, &r.of(s).State, []string{res.On.Name}, res.Groups); err != nil {
		return err
	}
	return r.MakePools(ctx, s, res)
}
