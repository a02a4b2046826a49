// SPDX-License-Identifier: Apache-2.0

package ratelimit

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

	mu      sync.Mutex
	budgets map[string]*Budget // by lower-case subscription ID
}

// DefaultShare is the default of Weir's share.
const DefaultShare = 0.5

// maxSubscriptions bounds memory: tenants choose subscription IDs.
const maxSubscriptions = 64

// New returns Budgets; see NewBudget.
func New(share float64, interval time.Duration) *Budgets {
	return &Budgets{share: share, interval: interval, budgets: map[string]*Budget{}}
}

// getBudget requires bs.mu.
func (bs *Budgets) getBudget(subscription string) *Budget {
	key := strings.ToLower(subscription)
	b := bs.budgets[key]
	if b == nil {
		if len(bs.budgets) >= maxSubscriptions {
			bs.removeIdle()
		}
		b = NewBudget(bs.share, bs.interval)
		bs.budgets[key] = b
	}
	return b
}

// removeIdle requires bs.mu.
func (bs *Budgets) removeIdle() {
	var idlest string
	for _, name := range slices.Sorted(maps.Keys(bs.budgets)) {
		if idlest == "" || bs.budgets[name].window.lastSlot < bs.budgets[idlest].window.lastSlot {
			idlest = name
		}
	}
	delete(bs.budgets, idlest)
}

// CountWrite counts a write or deletion in Microsoft.Network, for Services of these namespaces.
func (bs *Budgets) CountWrite(subscription string, now time.Time, namespaces ...string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	b := bs.getBudget(subscription)
	b.CountWrite(now)
	b.CountServiceWrite(namespaces, now)
}

// CountPoolWrite attributes a counted write to namespaces with updated pools.
func (bs *Budgets) CountPoolWrite(subscription string, now time.Time, namespaces ...string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.getBudget(subscription).CountPoolWrite(namespaces, now)
}

// DeferPools calls Budget.DeferPools.
func (bs *Budgets) DeferPools(subscription, namespace string, due int, now time.Time) []Deferral {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.getBudget(subscription).DeferPools(namespace, due, now)
}

// RecordNamespace records that a namespace has a pool.
func (bs *Budgets) RecordNamespace(subscription, namespace string, now time.Time) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.getBudget(subscription).recordNamespace(namespace, now)
}

// DeferService calls [Budget.DeferService].
func (bs *Budgets) DeferService(subscription, namespace string, rejected bool, now time.Time) (Deferral, bool) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.getBudget(subscription).DeferService(namespace, rejected, now)
}

// ReserveWrites calls [Budget.ReserveWrites].
func (bs *Budgets) ReserveWrites(subscription, namespace string, want int, rejected bool, now time.Time) int {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	return bs.getBudget(subscription).ReserveWrites(namespace, want, rejected, now)
}

// ReleaseWrites calls [Budget.ReleaseWrites].
func (bs *Budgets) ReleaseWrites(subscription, namespace string, reserved int) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.getBudget(subscription).ReleaseWrites(namespace, reserved)
}

// SetRemaining calls [Budget.SetRemaining].
func (bs *Budgets) SetRemaining(subscription string, remaining Remaining, now time.Time) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.getBudget(subscription).SetRemaining(remaining, now)
}

// RecordThrottle calls [Budget.RecordThrottle].
func (bs *Budgets) RecordThrottle(subscription string, t Throttle, now time.Time) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.getBudget(subscription).RecordThrottle(t, now)
}

// RecordAccepted calls [Budget.RecordAccepted].
func (bs *Budgets) RecordAccepted(subscription string) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.getBudget(subscription).RecordAccepted()
}

// CountChange calls [Budget.CountChange].
func (bs *Budgets) CountChange(id lb.PoolID, namespace string, now time.Time) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	bs.getBudget(id.LoadBalancer.SubscriptionID).CountChange(id.Key(), namespace, now)
}

// RemovePool drops a pool.
func (bs *Budgets) RemovePool(id lb.PoolID) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if b := bs.budgets[strings.ToLower(id.LoadBalancer.SubscriptionID)]; b != nil {
		b.RemovePool(id.Key())
	}
}

// SchedulesFor returns the schedules of a subscription's pools.
func (bs *Budgets) SchedulesFor(subscription string, pools []lb.PoolKey, now time.Time) map[lb.PoolKey]Schedule {
	if len(pools) == 0 {
		return nil
	}
	bs.mu.Lock()
	defer bs.mu.Unlock()
	pace := bs.getBudget(subscription).PaceAt(now)
	spacings := make(map[lb.PoolKey]Schedule, len(pools))
	for _, pool := range pools {
		spacings[pool] = pace.ScheduleFor(pool)
	}
	return spacings
}

// HasReserve reports whether less than half of Weir's share of writes is spent, and at least a tenth can be sent now: what only
// users look at must not delay updates.
func (bs *Budgets) HasReserve(subscription string, now time.Time) bool {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	spent, share, remaining := bs.getBudget(subscription).UsageAt(now)
	return spent < share/2 && remaining >= share/10
}

// Usage are the metrics of a subscription.
type Usage struct {
	Subscription string // lower case
	// In five minutes: writes made, Weir's share, and what remains of it.
	Used, Share, Remaining float64
	// Deferred counts namespaces that have used up their share.
	Deferred int
	Fleet    Fleet
}

// ListUsage is sorted by subscription.
func (bs *Budgets) ListUsage(now time.Time) []Usage {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	usages := make([]Usage, 0, len(bs.budgets))
	for _, name := range slices.Sorted(maps.Keys(bs.budgets)) {
		f := Usage{Subscription: name}
		f.Used, f.Share, f.Remaining = bs.budgets[name].UsageAt(now)
		f.Deferred, f.Fleet = bs.budgets[name].CountDeferred(now), bs.budgets[name].FleetAt(now)
		usages = append(usages, f)
	}
	return usages
}
