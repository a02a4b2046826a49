// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// world is the environment of the workers in virtual time: an Azure with writes that take
// writeTime, a cluster, a status store and a reporter. Tests run in one synctest bubble and only
// inspect it while the workers are blocked; -race covers the workers.
type world struct {
	t         *testing.T
	lanes     *Workers
	start     time.Time
	readTime  time.Duration
	writeTime time.Duration

	mu     sync.Mutex // workers of several load balancers call concurrently
	pools  map[lb.PoolKey]*lb.Pool
	wanted map[string][]lb.Address // by BackendPool name
	gone   map[string]bool         // irrelevant BackendPools
	nodes  map[netip.Addr]bool     // addresses of the cluster's nodes
	// machines maps nodes to addresses, for pools of network interfaces.
	machines map[string]netip.Addr
	ledger   map[string][]netip.Addr
	down     map[string][]netip.Addr
	taken    map[string]bool
	alone    bool // Weir made the pools
	keeps    bool // an unchanged write keeps the etag
	azure    azure
	made     int // pools created by load balancer writes
	gates    time.Time
	reports  []Report
	waits    []string // "+1s web until +30s writes closed"
	calls    []string // "+1.25s PUT web n1=10.0.0.1"
	fail     func(call string, pool lb.PoolID) error
	// members writes machines; nil if pools hold addresses.
	members *machineLanes
}

func inWorld(t *testing.T, maxRetries int, explanation func(w *world)) {
	inDriftingWorld(t, maxRetries, 0, explanation)
}

// inDriftingWorld is a world with drift checks.
func inDriftingWorld(t *testing.T, maxRetries int, period time.Duration, explanation func(w *world)) {
	inWorldOf(t, Config{MaxRetries: maxRetries, ResyncPeriod: period}, explanation)
}

func inWorldOf(t *testing.T, cfg Config, explanation func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, start: time.Now(), writeTime: 2 * time.Second,
			pools: map[lb.PoolKey]*lb.Pool{}, wanted: map[string][]lb.Address{}, gone: map[string]bool{},
			nodes: map[netip.Addr]bool{}, ledger: map[string][]netip.Addr{}, down: map[string][]netip.Addr{}, taken: map[string]bool{},
			fail: func(string, lb.PoolID) error { return nil },
		}
		cfg.Interval, cfg.Azure, cfg.Cluster, cfg.StatusStore, cfg.Reporter, cfg.Log = interval, w, w, w, w, cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
		if m, ok := cfg.Members.(*machineLanes); ok {
			m.w, w.members = w, m
		}
		w.lanes = New(cfg)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { w.lanes.Run(ctx); close(ended) }()
		explanation(w)
		stop()
		<-ended
	})
}

func poolID(lbName, name string) lb.PoolID {
	return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: lbName}, Name: name}
}

func (w *world) pool(id lb.PoolID, members string) {
	w.pools[id.Key()] = &lb.Pool{ID: id, Etag: "1", Addresses: addresses(members)}
}

// set changes the world while workers are running.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// change changes a Service's members and notifies its worker.
func (w *world) change(id lb.PoolID, members string) {
	w.mu.Lock()
	w.wanted[id.Name] = addresses(members)
	for _, a := range w.wanted[id.Name] {
		w.nodes[a.IP] = true
	}
	w.mu.Unlock()
	w.lanes.Add(schedule.Operation{Ref: schedule.Ref{Name: id.Name}, Pool: id, Service: schedule.ServiceName{Name: id.Name}, ChangedAt: time.Now()})
}

// look checks a pool without a known change.
func (w *world) look(id lb.PoolID, members string) {
	w.set(func() { w.wanted[id.Name] = addresses(members) })
	w.lanes.Add(schedule.Operation{Ref: schedule.Ref{Name: id.Name}, Pool: id, Service: schedule.ServiceName{Name: id.Name}})
}

// wait advances virtual time until everything is blocked.
func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) expectPool(id lb.PoolID, want string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := spell(w.pools[id.Key()].Addresses); got != want {
		w.t.Errorf("pool %s holds %q, want %q", id.Name, got, want)
	}
}

func (w *world) expectCalls(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if fmt.Sprint(w.calls) != fmt.Sprint(want) {
		w.t.Errorf("calls:\ngot  %q\nwant %q", w.calls, want)
	}
	w.calls = nil
}

func (w *world) expectReports(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []string
	for _, r := range w.reports {
		line := r.Ref.Name + " " + string(r.Outcome)
		for _, reported := range []struct {
			word schedule.Notification
			to   []schedule.ServiceName
		}{{schedule.NotifyUpdated, r.Updated}, {schedule.NotifyRetrying, r.Retrying}, {schedule.NotifyFailed, r.Failed}} {
			for _, s := range reported.to {
				line += " " + string(reported.word) + ":" + s.Name
			}
		}
		got = append(got, line+spellAdmin(r))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("reports:\ngot  %q\nwant %q", got, want)
	}
	w.reports = nil
}

func (w *world) called(call string, id lb.PoolID, rest string) error {
	w.calls = append(w.calls, fmt.Sprintf("+%s %s %s%s", time.Since(w.start), call, id.Name, rest))
	return w.fail(call, id)
}

func (w *world) GetPool(_ context.Context, id lb.PoolID) (lb.Pool, error) {
	time.Sleep(w.readTime)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.called("GET", id, ""); err != nil {
		return lb.Pool{}, err
	}
	p, ok := w.pools[id.Key()]
	if !ok {
		return lb.Pool{}, armerror.Classify(armerror.Failure{Status: 404, TargetMissing: true}, errors.New("gone"))
	}
	return *p, nil
}

func (w *world) PutPool(ctx context.Context, p lb.Pool) (lb.Pool, error) {
	if err := w.accept(p); err != nil {
		return lb.Pool{}, err
	}
	select {
	case <-time.After(w.writeTime):
	case <-ctx.Done():
		return lb.Pool{}, ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !p.NIC && !contains(w.ledger[p.ID.Name], p.Addresses, w.nodes) {
		w.t.Errorf("pool %s gets %s, and %v is on record", p.ID.Name, spell(p.Addresses), w.ledger[p.ID.Name])
	}
	stored := w.pools[p.ID.Key()]
	if stored == nil {
		return p, armerror.Classify(armerror.Failure{Status: 404, TargetMissing: true}, errors.New("gone meanwhile"))
	}
	if w.members != nil { // others join and leave
		p.Addresses, p.NIC = withStates(stored.Addresses, p.Addresses), stored.NIC
	}
	if p.Provisioning = lb.Succeeded; !w.keeps || !sameContent(p, *stored) {
		p.Etag = nextEtag(stored.Etag)
	}
	*stored = p
	return p, nil
}

// sameContent reports whether a write changes nothing. Interfaces have no address in Azure.
func sameContent(a, b lb.Pool) bool {
	return slices.EqualFunc(a.Addresses, b.Addresses, func(x, y lb.Address) bool {
		return x.Name == y.Name && (x.AdminState == lb.Down) == (y.AdminState == lb.Down) && (a.NIC || x.IP == y.IP)
	})
}

// contains reports whether the written addresses of cluster nodes are recorded.
func contains(record []netip.Addr, written []lb.Address, nodes map[netip.Addr]bool) bool {
	return !slices.ContainsFunc(written, func(a lb.Address) bool { return nodes[a.IP] && !slices.Contains(record, a.IP) })
}

func (w *world) accept(p lb.Pool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.called("PUT", p.ID, " "+spell(p.Addresses)); err != nil {
		return err
	}
	if w.pools[p.ID.Key()] == nil {
		return armerror.Classify(armerror.Failure{Status: 404, TargetMissing: true}, errors.New("gone"))
	}
	if w.pools[p.ID.Key()].Etag != p.Etag {
		return armerror.Classify(armerror.Failure{Status: 412}, errors.New("etag"))
	}
	return nil
}

// ResolveMachines maps nic-n1 to n1.
func (w *world) ResolveMachines(_ context.Context, p lb.Pool) (lb.Pool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.called("MACHINES", p.ID, ""); err != nil {
		return lb.Pool{}, err
	}
	p.Addresses = slices.Clone(p.Addresses)
	for i, a := range p.Addresses {
		p.Addresses[i].Machine, _ = strings.CutPrefix(a.Interface, "nic-")
		if w.members != nil {
			p.Addresses[i].Machine = machineOf(p.Addresses[i].Machine).Key()
		}
	}
	return p, nil
}

func (w *world) Enter(lb.LoadBalancerID) (time.Time, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gates.After(time.Now()) {
		return w.gates, "writes closed"
	}
	return time.Time{}, ""
}

func (w *world) ReportWait(waiting Waiting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprintf("+%s %s %s", time.Since(w.start), waiting.Ref.Name, waiting.Cause)
	if !waiting.Until.IsZero() {
		line += " until +" + waiting.Until.Sub(w.start).String()
	}
	if waiting.Message != "" {
		line += ": " + waiting.Message
	}
	if waiting.CheckOnly {
		line += " (to be looked at)"
	}
	w.waits = append(w.waits, line)
}

func (w *world) IsNeeded(op schedule.Operation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.gone[op.Ref.Name]
}

func (w *world) DesiredPool(ref schedule.Ref) (diff.Desired, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fail("READ LEDGER", lb.PoolID{}); err != nil {
		return diff.Desired{}, err
	}
	return diff.Desired{
		Addresses: w.wanted[ref.Name], IsExclusive: w.alone, IsOwnAddress: func(ip netip.Addr) bool { return w.nodes[ip] },
		AddressOf: func(machine string) (netip.Addr, bool) {
			ip, ok := w.machines[path.Base(machine)]
			return ip, ok
		},
		Machines: w.members.desired(),
		Record:   diff.Record{Written: w.ledger[ref.Name], Down: w.down[ref.Name], Adopted: w.taken[ref.Name]},
	}, nil
}

func (w *world) Record(_ context.Context, ref schedule.Ref, in diff.Intent) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := fmt.Sprint(" ", in.Written)
	if len(in.Down) > 0 {
		line += fmt.Sprint(" Down ", in.Down)
	}
	if err := w.called("RECORD", poolID("", ref.Name), line); err != nil {
		return err
	}
	w.ledger[ref.Name], w.down[ref.Name], w.taken[ref.Name] = in.Written, in.Down, w.taken[ref.Name] || !in.OnlyStates
	return nil
}

func (w *world) Report(_ context.Context, r Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reports = append(w.reports, r)
	if r.StatesInSync {
		w.down[r.Ref.Name] = r.Down
	}
	if r.InSync {
		w.ledger[r.Ref.Name], w.down[r.Ref.Name], w.taken[r.Ref.Name] = r.Written, r.Down, true
	}
}
