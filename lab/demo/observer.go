// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// pollInterval is the polling interval for Azure and the resolution of all lags.
const pollInterval = 25 * time.Millisecond

// observer compares the desired and actual pool members. It is safe for concurrent use, except for
// polling.
type observer struct {
	azure *azureObserver

	mu      sync.Mutex
	pools   map[string]*poolHistory // by workload name
	latest  *azureSnapshot          // immutable
	traffic traffic
}

func newObserver(azure *azureObserver) *observer {
	o := &observer{azure: azure, pools: map[string]*poolHistory{}, latest: newAzureSnapshot(nil)}
	for _, w := range allWorkloads {
		o.pools[w.name] = newPoolHistory(addresses{})
	}
	return o
}

func (o *observer) recordDesired(service string, now time.Time, wanted addresses) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pools[service].recordDesired(now, wanted)
}

// addForeign records an address added by the second writer, which must remain from now on.
func (o *observer) addForeign(service string, ip netip.Addr, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pools[service].foreign[ip] = name
}

// foreignOf returns the foreign addresses of a Service's pool.
func (o *observer) foreignOf(service string) addresses {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.pools[service]; h != nil {
		return maps.Clone(h.foreign)
	}
	return nil
}

// foreignNames returns the names of a pool's foreign addresses that are present.
func (o *observer) foreignNames(service string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.pools[service]
	var there []string
	for _, ip := range h.foreign.subtractSet(nil) {
		if _, ok := h.actual[ip]; ok {
			there = append(there, ip.String())
		}
	}
	return there
}

// setStorm starts or ends a storm. Its changes are measured separately.
func (o *observer) setStorm(rages bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.pools {
		h.inStorm = rages
	}
}

// pollAzure polls Azure once. It must not be called concurrently.
func (o *observer) pollAzure(ctx context.Context) error {
	shown, err := o.azure.readSnapshot(ctx)
	if err != nil {
		return err
	}
	calls, err := o.azure.listCalls(ctx, o.currentTraffic().last)
	if err != nil {
		return err
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range calls {
		o.traffic.addCall(c)
	}
	o.latest = shown
	for _, w := range allWorkloads {
		pool := shown.pools[w.poolName()] // a missing pool counts as empty
		o.pools[w.name].recordActual(now, pool.addresses, pool.isUpdating)
	}
	return nil
}

// maxPollShare is the maximum share of time spent polling, which grows with Azure's content and
// competes with the observed processes.
const maxPollShare = 0.2

// pollUntilDone polls until ctx is done or Azure is unreachable.
func (o *observer) pollUntilDone(ctx context.Context) error {
	for {
		began := time.Now()
		if err := o.pollAzure(ctx); err != nil {
			return err
		}
		elapsed := time.Since(began)
		if err := sleepContext(ctx, max(pollInterval-elapsed, time.Duration(float64(elapsed)*(1/maxPollShare-1)))); err != nil {
			return err
		}
	}
}

func (o *observer) latestSnapshot() *azureSnapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.latest
}

// currentTraffic returns the calls so far.
func (o *observer) currentTraffic() traffic {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.traffic.deepCopy()
}

// poolState is the sync state of one pool.
type poolState struct {
	workload workload
	// All members, desired ones, and those not desired; foreign addresses count in the first only.
	total, present, desired, extra int
	exists                         bool // the pool exists in Azure
	difference                     difference
	isInSync                       bool
}

// String returns "web 3/5 +1": three of five desired addresses are present, and one that is not
// desired.
func (p poolState) String() string {
	s := fmt.Sprintf("%s %d/%d", p.workload.name, p.present, p.desired)
	if p.extra > 0 {
		s += fmt.Sprintf(" +%d", p.extra)
	}
	return s
}

// poolStates returns the sync state in the order of the workloads.
func (o *observer) poolStates() []poolState {
	o.mu.Lock()
	defer o.mu.Unlock()
	var states []poolState
	for _, w := range allWorkloads {
		h := o.pools[w.name]
		g := h.memberDiff()
		states = append(states, poolState{
			workload: w, total: len(h.actual), desired: len(h.desired), present: len(h.desired) - len(g.missing),
			extra: len(g.extra), difference: g, isInSync: h.isInSync(), exists: o.latest.hasPool(w.poolName()),
		})
	}
	return states
}

func allInSync(pools []poolState) bool {
	return !slices.ContainsFunc(pools, func(p poolState) bool { return !p.isInSync })
}

// memberNames returns the node names desired in a workload's pool.
func (o *observer) memberNames(name string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Values(o.pools[name].desired))
}

// describeDiff lists the missing and surplus addresses of a pool. Surplus addresses have their names in
// Azure.
func (o *observer) describeDiff(p poolState) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.pools[p.workload.name]
	var parts []string
	for _, part := range []struct {
		label string
		ips   []netip.Addr
		names addresses
	}{
		{"lacks", p.difference.missing, h.desired},
		{"still holds", p.difference.extra, h.actual},
		{"lost foreign", p.difference.foreignMissing, h.foreign},
	} {
		if len(part.ips) == 0 {
			continue
		}
		var named []string
		for _, ip := range part.ips {
			named = append(named, fmt.Sprintf("%s (%s)", ip, part.names[ip]))
		}
		parts = append(parts, part.label+" "+strings.Join(named, ", "))
	}
	if len(parts) == 0 {
		parts = []string{"holds what it should, but a write of it is still under way"}
	}
	return fmt.Sprintf("pool %s %s", p.workload.poolName(), strings.Join(parts, "; "))
}
