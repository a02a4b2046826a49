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

// lookEvery is the polling interval for Azure and the resolution of all lags.
const lookEvery = 25 * time.Millisecond

// observer compares the desired and actual pool members. It is safe for concurrent use, except
// look.
type observer struct {
	azure *azureWitness

	mu      sync.Mutex
	pools   map[string]*poolHistory // by workload name
	newest  *shownAzure             // immutable
	traffic traffic
}

func newObserver(azure *azureWitness) *observer {
	o := &observer{azure: azure, pools: map[string]*poolHistory{}, newest: newShownAzure(nil)}
	for _, w := range workloads {
		o.pools[w.name] = newPoolHistory(addresses{})
	}
	return o
}

// want records the desired members.
func (o *observer) want(service string, now time.Time, wanted addresses) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pools[service].want(now, wanted)
}

// foreign records an address added by the second writer, which must remain from now on.
func (o *observer) foreign(service string, ip netip.Addr, name string) {
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

// foreignIn returns the names of a pool's foreign addresses that are present.
func (o *observer) foreignIn(service string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.pools[service]
	var there []string
	for _, ip := range h.foreign.minus(nil) {
		if _, ok := h.shown[ip]; ok {
			there = append(there, ip.String())
		}
	}
	return there
}

// storm starts or ends a storm, whose changes are measured separately.
func (o *observer) storm(rages bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.pools {
		h.storm = rages
	}
}

// look polls Azure once. It must not be called concurrently.
func (o *observer) look(ctx context.Context) error {
	shown, err := o.azure.shown(ctx)
	if err != nil {
		return err
	}
	calls, err := o.azure.calls(ctx, o.counted().last)
	if err != nil {
		return err
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range calls {
		o.traffic.add(c)
	}
	o.newest = shown
	for _, w := range workloads {
		pool := shown.pools[w.pool()] // a missing pool counts as empty
		o.pools[w.name].show(now, pool.addresses, pool.busy)
	}
	return nil
}

// looksAtMost is the maximum share of time spent polling, which grows with Azure's content and
// competes with the observed processes.
const looksAtMost = 0.2

// watch polls until ctx is done or Azure is unreachable.
func (o *observer) watch(ctx context.Context) error {
	for {
		began := time.Now()
		if err := o.look(ctx); err != nil {
			return err
		}
		took := time.Since(began)
		if err := pause(ctx, max(lookEvery-took, time.Duration(float64(took)*(1/looksAtMost-1)))); err != nil {
			return err
		}
	}
}

// azureNow returns the last snapshot.
func (o *observer) azureNow() *shownAzure {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest
}

// counted returns the calls so far.
func (o *observer) counted() traffic {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.traffic.clone()
}

// poolLevel is the sync state of one pool.
type poolLevel struct {
	workload workload
	// shown counts all members, present the desired ones, and surplus those not desired; foreign
	// addresses count in shown only.
	shown, present, wanted, surplus int
	there                           bool // the pool exists in Azure
	gap                             gap
	level                           bool
}

// String returns "web 3/5 +1": three of five desired addresses are present, and one that is not
// desired.
func (p poolLevel) String() string {
	s := fmt.Sprintf("%s %d/%d", p.workload.name, p.present, p.wanted)
	if p.surplus > 0 {
		s += fmt.Sprintf(" +%d", p.surplus)
	}
	return s
}

// levels returns the sync state in the order of the workloads.
func (o *observer) levels() []poolLevel {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []poolLevel
	for _, w := range workloads {
		h := o.pools[w.name]
		g := h.gap()
		all = append(all, poolLevel{
			workload: w, shown: len(h.shown), wanted: len(h.wanted), present: len(h.wanted) - len(g.missing),
			surplus: len(g.surplus), gap: g, level: h.level(), there: o.newest.has(w.pool()),
		})
	}
	return all
}

func allLevel(pools []poolLevel) bool {
	return !slices.ContainsFunc(pools, func(p poolLevel) bool { return !p.level })
}

// members returns the node names desired in a workload's pool.
func (o *observer) members(name string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Values(o.pools[name].wanted))
}

// describe lists the missing and surplus addresses of a pool. Surplus addresses have their names in
// Azure.
func (o *observer) describe(p poolLevel) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.pools[p.workload.name]
	var parts []string
	for _, part := range []struct {
		what  string
		ips   []netip.Addr
		names addresses
	}{
		{"lacks", p.gap.missing, h.wanted},
		{"still holds", p.gap.surplus, h.shown},
		{"lost somebody else's", p.gap.foreignMissing, h.foreign},
	} {
		if len(part.ips) == 0 {
			continue
		}
		var named []string
		for _, ip := range part.ips {
			named = append(named, fmt.Sprintf("%s (%s)", ip, part.names[ip]))
		}
		parts = append(parts, part.what+" "+strings.Join(named, ", "))
	}
	if len(parts) == 0 {
		parts = []string{"holds what it should, but a write of it is still under way"}
	}
	return fmt.Sprintf("pool %s %s", p.workload.pool(), strings.Join(parts, "; "))
}
