// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// whole is an Azure with load balancer writes. The load balancer's etag is the sum of its pools'
// etags, so that any pool write changes it.
type whole struct {
	*world
	refuse func(call string) *armerror.Fault // nil is never
}

// inWholeWorldOf sets up n pools, p1 and so on.
func inWholeWorldOf(t *testing.T, n int, configure func(*Config), explanation func(w *whole, pools []lb.PoolID)) {
	var azure whole
	cfg := Config{MaxRetries: 3, AdminState: true, LoadBalancers: &azure}
	configure(&cfg)
	inWorldOf(t, cfg, func(w *world) {
		azure.world = w
		var pools []lb.PoolID
		for i := range n {
			pools = append(pools, poolID("kubernetes", fmt.Sprintf("p%d", i+1)))
			w.pool(pools[i], "vm=10.9.9.9")
		}
		explanation(&azure, pools)
	})
}

func (w *whole) called(call string) error {
	w.calls = append(w.calls, fmt.Sprintf("+%s %s balancer", time.Since(w.start), call))
	if w.refuse != nil {
		if f := w.refuse(call); f != nil {
			return f
		}
	}
	return nil
}

func (w *whole) etag(of ...lb.LoadBalancerID) string {
	sum := 0
	for _, p := range w.pools {
		if len(of) > 0 && p.ID.LoadBalancer.Key() != of[0].Key() {
			continue
		}
		n, _ := strconv.Atoi(p.Etag)
		sum += n
	}
	return strconv.Itoa(sum)
}

func (w *whole) GetLoadBalancer(_ context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	time.Sleep(w.readTime)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.called("GET"); err != nil {
		return lb.LoadBalancer{}, err
	}
	b := lb.LoadBalancer{ID: id, Etag: w.etag(id)}
	for _, p := range w.pools {
		if p.ID.LoadBalancer.Key() == id.Key() {
			b.Pools = append(b.Pools, *p)
		}
	}
	return b, nil
}

func (w *whole) PutLoadBalancer(_ context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return b, w.called("PUT")
}

// drainAll sets n1 Down in all pools at once.
func (w *whole) drainAll(pools []lb.PoolID, members string) {
	for _, id := range pools {
		w.set(func() { w.wanted[id.Name] = addresses(members) })
	}
	var ops []schedule.Operation
	for _, id := range pools {
		var stake schedule.Impact
		w.set(func() { stake = w.stake(id) })
		ops = append(ops, schedule.Operation{Ref: schedule.Ref{Name: id.Name}, Pool: id, Service: schedule.ServiceName{Name: id.Name}, Admin: true, ChangedAt: time.Now(), Impact: stake})
	}
	w.lanes.Add(ops...)
}

func (w *whole) expect(about, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s\ngot  %s\nwant %s", about, got, want)
	}
}

// restart stops Weir and starts it again.
func (w *whole) restart() {
	w.wait(0) // the previous one runs
	w.lanes = New(w.lanes.cfg)
	ctx, stop := context.WithCancel(w.t.Context())
	w.t.Cleanup(stop)
	go w.lanes.Run(ctx)
	w.wait(0)
}

// all changes the members of each pool.
func (w *whole) all(pools []lb.PoolID, members string) {
	for _, id := range pools {
		w.change(id, members)
	}
	w.wait(time.Minute)
}

// entries returns a pool's content sorted by name.
func (w *whole) entries(id lb.PoolID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	fields := strings.Fields(spell(w.pools[id.Key()].Addresses))
	slices.Sort(fields)
	return strings.Join(fields, " ")
}

// final returns the last notifications of a pool, without those of checks.
func (w *whole) final(id lb.PoolID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, r := range w.reports {
		if r.Ref.Name != id.Name || r.Resync {
			continue
		}
		for range r.Updated {
			names = append(names, "Updated")
		}
		for range r.Failed {
			names = append(names, "Failed")
		}
	}
	return strings.Join(names, " ")
}
