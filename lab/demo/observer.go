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

// lookEvery is how often Azure's side is looked at, if that is quick; no lag is known
// better.
const lookEvery = 25 * time.Millisecond

// observer brings together what the cluster wants and what Azure shows. Its
// methods may be called from any goroutine.
type observer struct {
	azure *azureWitness

	mu      sync.Mutex
	pools   map[string]*poolHistory // by name of the workload
	newest  *shownAzure             // is not changed any more
	traffic traffic
}

func newObserver(azure *azureWitness) *observer {
	o := &observer{azure: azure, pools: map[string]*poolHistory{}, newest: newShownAzure(nil)}
	for _, w := range workloads {
		o.pools[w.name] = newPoolHistory(addresses{})
	}
	return o
}

// want is told what the cluster wants.
func (o *observer) want(service string, now time.Time, wanted addresses) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pools[service].want(now, wanted)
}

// foreign is told of an address that somebody else has put into a pool: it has to
// stay there from now on.
func (o *observer) foreign(service string, ip netip.Addr, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pools[service].foreign[ip] = name
}

// foreignOf returns what others have put into the pool of a Service.
func (o *observer) foreignOf(service string) addresses {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.pools[service]; h != nil {
		return maps.Clone(h.foreign)
	}
	return nil
}

// foreignIn returns the addresses of others that a pool has to hold and holds.
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

// storm is told when a storm begins and ends. Changes in it are measured apart.
func (o *observer) storm(rages bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, h := range o.pools {
		h.storm = rages
	}
}

// look asks Azure's side once. Unlike the other methods it is for one goroutine
// at a time.
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
		pool := shown.pools[w.pool()] // none is as good as an empty one
		o.pools[w.name].show(now, pool.addresses, pool.busy)
	}
	return nil
}

// looksAtMost is the part of the time that looking may take: the more Azure holds, the
// longer a look, and the processes that are looked at need the machine.
const looksAtMost = 0.2

// watch looks until ctx is done or Azure's side cannot be asked.
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

// azureNow returns what Azure showed when it was looked at last.
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

// poolLevel is how level one pool is.
type poolLevel struct {
	workload workload
	// shown counts all that Azure shows, present what of it the cluster wants, and
	// surplus what it does not; foreign addresses are in shown alone.
	shown, present, wanted, surplus int
	there                           bool // Azure has the pool
	gap                             gap
	level                           bool
}

// String returns "web 3/5 +1": three of the five wanted addresses are there, and
// one that is no longer wanted.
func (p poolLevel) String() string {
	s := fmt.Sprintf("%s %d/%d", p.workload.name, p.present, p.wanted)
	if p.surplus > 0 {
		s += fmt.Sprintf(" +%d", p.surplus)
	}
	return s
}

// levels returns the pools in the order of the workloads.
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

// members returns the names of the nodes that a workload's pool has to hold.
func (o *observer) members(name string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Sorted(maps.Values(o.pools[name].wanted))
}

// describe says what a pool that is not level lacks and has too much. Surplus
// addresses bear the names that Azure has for them.
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
