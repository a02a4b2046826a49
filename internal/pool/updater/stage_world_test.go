// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir.dev/weir/internal/lb"
)

// hold locks the worker for another writer of the load balancer.
func (w *world) hold() (unlock func()) {
	w.t.Helper()
	unlock, err := w.lanes.Lock(w.t.Context(), web.LoadBalancer)
	if err != nil {
		w.t.Fatal(err)
	}
	return unlock
}

// whole reads the pools of the load balancer.
func (w *world) whole(ids ...lb.PoolID) []lb.Pool {
	w.mu.Lock()
	defer w.mu.Unlock()
	var pools []lb.Pool
	for _, id := range ids {
		if p := w.pools[id.Key()]; p != nil {
			read := *p
			read.Addresses = slices.Clone(p.Addresses)
			pools = append(pools, read)
		} else {
			pools = append(pools, lb.Pool{ID: lb.PoolID{Name: id.Name}}) // to be created
		}
	}
	return pools
}

// putWhole writes all pools of the load balancer at once, unless one was written or deleted since,
// which changes the load balancer's etag. It changes all etags if it changes anything or Azure does
// so anyway.
func (w *world) putWhole(next []lb.Pool) (shown []lb.Pool, ok bool) {
	time.Sleep(w.writeTime)
	w.mu.Lock()
	defer w.mu.Unlock()
	line := "+" + time.Since(w.start).String() + " PUT balancer"
	for _, p := range next {
		line += " " + p.ID.Name + ":" + spell(p.Addresses)
	}
	w.calls = append(w.calls, line)
	for _, p := range next {
		p.ID = poolID("kubernetes", p.ID.Name)
		if stored := w.pools[p.ID.Key()]; stored == nil && p.Etag != "" || stored != nil && stored.Etag != p.Etag {
			return nil, false
		}
	}
	changes := slices.ContainsFunc(next, func(p lb.Pool) bool {
		stored := w.pools[poolID("kubernetes", p.ID.Name).Key()]
		return stored == nil || !sameContent(p, *stored)
	})
	for _, p := range next {
		p.ID = poolID("kubernetes", p.ID.Name)
		p.Addresses = w.azure.whole(w.pools[p.ID.Key()], p.Addresses)
		if p.Etag == "" { // a new pool has an unused etag
			w.made++
			p.Etag = strconv.Itoa(1000 * w.made)
		}
		if p.Provisioning = lb.Succeeded; changes || !w.keeps {
			p.Etag = nextEtag(p.Etag)
		}
		w.pools[p.ID.Key()] = &p
		shown = append(shown, p)
	}
	return shown, true
}

// azure is what a load balancer write does with the addresses of its pools.
type azure struct{ ignores, makesEmpty bool }

// whole returns a pool's content after such a write; old is nil for a new pool.
func (a azure) whole(old *lb.Pool, sent []lb.Address) []lb.Address {
	switch {
	case old == nil && a.makesEmpty:
		return nil
	case old != nil && a.ignores:
		return old.Addresses
	}
	return sent
}

// expectCarried compares the pools to be written.
func expectCarried(t *testing.T, pools []lb.Pool, want ...string) {
	t.Helper()
	var got []string
	for _, p := range pools {
		got = append(got, p.ID.Name+" "+spell(p.Addresses))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("carried:\ngot  %q\nwant %q", got, want)
	}
}

// standing returns the worker's state of a pool, for comparison.
func (w *world) standing(id lb.PoolID) poolEntry {
	q := w.lanes.listWorkers()[0].queue
	q.mu.Lock()
	defer q.mu.Unlock()
	s := *q.pools[id.Key()]
	s.ops = slices.Clone(s.ops)
	s.reportedWait, s.oldestQueuedAt = nil, time.Time{}
	return s
}

var everything = cmp.Options{
	cmp.Exporter(func(t reflect.Type) bool { return strings.Contains(t.PkgPath(), "/internal/pool") }), cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}),
}

// die restarts with empty memory and leaves everything else as it is.
func (w *world) die() (stop func()) {
	w.lanes = New(w.lanes.cfg)
	ctx, stop := context.WithCancel(w.t.Context())
	go w.lanes.Run(ctx)
	return stop
}
