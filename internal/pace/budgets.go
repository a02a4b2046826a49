// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
)

// Budgets are the budgets of all subscriptions. Safe for concurrent use; no method blocks.
type Budgets struct {
	share    float64
	interval time.Duration

	mu sync.Mutex
	of map[string]*Budget // by lower-case subscription ID
}

// DefaultShare is the default of Weir's share.
const DefaultShare = 0.5

// mostBudgets bounds memory: tenants choose subscription IDs.
const mostBudgets = 64

// New returns Budgets; see NewBudget.
func New(share float64, interval time.Duration) *Budgets {
	return &Budgets{share: share, interval: interval, of: map[string]*Budget{}}
}

// budget requires bs.mu.
func (bs *Budgets) budget(subscription string) *Budget {
	key := strings.ToLower(subscription)
	b := bs.of[key]
	if b == nil {
		if len(bs.of) >= mostBudgets {
			bs.dropIdlest()
		}
		b = NewBudget(bs.share, bs.interval)
		bs.of[key] = b
	}
	return b
}

// dropIdlest requires bs.mu.
func (bs *Budgets) dropIdlest() {
	var idlest string
	for _, name := range slices.Sorted(maps.Keys(bs.of)) {
		if idlest == "" || bs.of[name].window.newest < bs.of[idlest].window.newest {
			idlest = name
		}
	}
	delete(bs.of, idlest)
}

// Wrote counts a write or deletion in Microsoft.Network, for Services of these namespaces.
func (bs *Budgets) Wrote(subscription string, now time.Time, namespaces ...string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.budget(subscription)
	b.Wrote(now)
	b.WroteFor(namespaces, now)
}

// WroteForPools attributes a counted write to namespaces with updated pools.
func (bs *Budgets) WroteForPools(subscription string, now time.Time, namespaces ...string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.budget(subscription).WroteForPools(namespaces, now)
}

// DeferPools calls Budget.DeferPools.
func (bs *Budgets) DeferPools(subscription, namespace string, due int, now time.Time) []Deferral {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.budget(subscription).DeferPools(namespace, due, now)
}

// See records that a namespace has a pool.
func (bs *Budgets) See(subscription, namespace string, now time.Time) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.budget(subscription).see(namespace, now)
}

// Defer calls [Budget.Defer].
func (bs *Budgets) Defer(subscription, namespace string, rejected bool, now time.Time) (Deferral, bool) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.budget(subscription).Defer(namespace, rejected, now)
}

// Reserve calls [Budget.Reserve].
func (bs *Budgets) Reserve(subscription, namespace string, want int, rejected bool, now time.Time) int {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.budget(subscription).Reserve(namespace, want, rejected, now)
}

// Release calls [Budget.Release].
func (bs *Budgets) Release(subscription, namespace string, reserved int) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.budget(subscription).Release(namespace, reserved)
}

// Told calls [Budget.Told].
func (bs *Budgets) Told(subscription string, left Left, now time.Time) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.budget(subscription).Told(left, now)
}

// Changed calls [Budget.Changed].
func (bs *Budgets) Changed(id lb.PoolID, namespace string, now time.Time) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.budget(id.LoadBalancer.SubscriptionID).Changed(id.Key(), namespace, now)
}

// Forget drops a pool.
func (bs *Budgets) Forget(id lb.PoolID) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if b := bs.of[strings.ToLower(id.LoadBalancer.SubscriptionID)]; b != nil {
		b.Forget(id.Key())
	}
}

// Spacings returns the schedules of a subscription's pools.
func (bs *Budgets) Spacings(subscription string, pools []lb.PoolKey, now time.Time) map[lb.PoolKey]Spacing {
	if len(pools) == 0 {
		return nil
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	pace := bs.budget(subscription).At(now)
	spacings := make(map[lb.PoolKey]Spacing, len(pools))
	for _, pool := range pools {
		spacings[pool] = pace.Spacing(pool)
	}
	return spacings
}

// Figures are the metrics of a subscription.
type Figures struct {
	Subscription string // lower case
	// In five minutes: writes made, Weir's share, and what remains of it.
	Spent, Share, Left float64
	// Deferred counts namespaces that have used up their share.
	Deferred int
}

// Figures is sorted by subscription.
func (bs *Budgets) Figures(now time.Time) []Figures {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	all := make([]Figures, 0, len(bs.of))
	for _, name := range slices.Sorted(maps.Keys(bs.of)) {
		f := Figures{Subscription: name}
		f.Spent, f.Share, f.Left = bs.of[name].Spent(now)
		f.Deferred = bs.of[name].Deferred(now)
		all = append(all, f)
	}
	return all
}
