// SPDX-License-Identifier: Apache-2.0

package nicupdate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Errorf(format string, args ...any)
}

// world fakes Azure and the cluster in virtual time; a write takes two seconds. It reports an error
// if a resource is written twice at a time.
type world struct {
	meter   meter
	t       fataler
	u       *Updater
	start   time.Time
	ctx     context.Context
	cancel  func()
	stop    func() // cancels, and waits for Run to return
	written time.Duration

	mu       sync.Mutex
	nics     map[string]*lb.NetworkInterface // by name
	sets     map[string]*lb.ScaleSet         // by name
	insts    map[string]*lb.Instance         // by "set/id"
	changed  map[string]bool                 // models, by name
	etags    int
	bare     bool // lists show no etags
	ignores  bool // writes have no effect
	nodes    []nic.Node
	expected []lb.PoolID // pools of the cluster
	gate     func(id lb.ResourceID) (time.Time, string)
	fail     func(call string) error
	calls    []string
	settled  []string
	writing  map[string]bool
	most     int // maximum of concurrent writes
	onCall   func(call string)
	lose     func(call string) bool // whether to drop the response to a write that took effect
	setLists int                    // lists of scale sets
}

const subscription = "s1"

func newWorld(t fataler) *world {
	return &world{
		t: t, start: time.Now(), written: 2 * time.Second, nics: map[string]*lb.NetworkInterface{}, sets: map[string]*lb.ScaleSet{}, insts: map[string]*lb.Instance{},
		writing: map[string]bool{}, changed: map[string]bool{}, gate: func(lb.ResourceID) (time.Time, string) { return time.Time{}, "" }, fail: func(string) error { return nil }, onCall: func(string) {}, lose: func(string) bool { return false },
	}
}

// inWorld runs a test with an Updater.
func inWorld(t *testing.T, explanation func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.ctx = t.Context()
		w.run(4, nil)
		explanation(w)
		w.stop()
		synctest.Wait()
		if len(w.writing) > 0 {
			t.Errorf("still writing %v", w.writing)
		}
	})
}

// run starts another Updater, which knows nothing of the previous one.
func (w *world) run(parallel int, lease Lease) {
	w.u = New(Config{Azure: w, Cluster: w, Lease: lease, Parallel: parallel, OnPoolIdle: w.heard, Home: setID("any"), Metrics: &w.meter, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan struct{})
	go func() { w.u.Run(ctx); close(ended) }()
	w.cancel, w.stop = cancel, func() { cancel(); <-ended }
}

func (w *world) heard(pool lb.PoolID) {
	w.set(func() { w.settled = append(w.settled, w.stamp(pool.LoadBalancer.Name+"/"+pool.Name)) })
}

func (w *world) stamp(text string) string { return "+" + time.Since(w.start).String() + " " + text }

// set changes the world while workers run.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// wait advances virtual time until everything is blocked.
func (w *world) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func vm(name string) nic.Machine {
	return nic.Machine{VM: lb.ResourceID{SubscriptionID: subscription, ResourceGroup: "rg", Type: lb.TypeVirtualMachine, Name: name}}
}

func setID(name string) lb.ResourceID {
	return lb.ResourceID{SubscriptionID: subscription, ResourceGroup: "rg", Type: lb.TypeScaleSet, Name: name}
}

// machineOf parses "n1", a virtual machine, or "blue/3", an instance.
func machineOf(name string) nic.Machine {
	if set, id, ok := strings.Cut(name, "/"); ok {
		return nic.Machine{ScaleSet: setID(set), Instance: id}
	}
	return vm(name)
}

func machines(names string) []nic.Machine {
	var machines []nic.Machine
	for name := range strings.FieldsSeq(names) {
		machines = append(machines, machineOf(name))
	}
	return machines
}

// poolID parses "kubernetes/k8s".
func poolID(name string) lb.PoolID {
	balancer, pool, _ := strings.Cut(name, "/")
	return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: "rg", Name: balancer}, Name: pool}
}

// target builds a target for a pool of all nodes. A name ending in 6 is IPv6; load balancer b has
// configuration b.
func target(name, members, leaves string) nic.Target {
	p := nic.Pool{ID: poolID(name), Family: lb.IPv4, Configuration: "a", AllNodes: true, Members: machines(members)}
	if strings.HasSuffix(name, "6") {
		p.Family = lb.IPv6
	}
	if strings.HasPrefix(name, "b") {
		p.Configuration = "b"
	}
	return nic.Target{Pool: p, ToRemove: machines(leaves), Missing: p.Members}
}

// bring sets a target and formats the State as "working n1 n2; waits n3: why; failed n4: error".
func (w *world) bring(name, members, leaves string) string {
	return told(w.u.SetTarget(target(name, members, leaves)))
}

func told(s nic.State) string {
	var parts []string
	if len(s.Working) > 0 {
		parts = append(parts, "working "+strings.Join(named(s.Working), " "))
	}
	for _, m := range s.Waiting {
		parts = append(parts, "waits "+nameOf(m.Machine)+": "+m.Reason)
	}
	for _, m := range s.Unavailable {
		parts = append(parts, "without "+nameOf(m.Machine)+": "+m.Reason)
	}
	for _, m := range s.Failed {
		parts = append(parts, "failed "+nameOf(m.Machine)+": "+m.Err.Error())
	}
	if s.ScaleSetsUnknown {
		parts = append(parts, "looking")
	}
	return strings.Join(parts, "; ")
}

func named(ms []nic.Machine) []string {
	var names []string
	for _, m := range ms {
		names = append(names, nameOf(m))
	}
	return names
}

func nameOf(m nic.Machine) string {
	if m.IsUniform() {
		return m.ScaleSet.Name + "/" + m.Instance
	}
	return m.VM.Name
}

// ids parses pool names such as "kubernetes/k8s".
func ids(pools string) []string {
	var ids []string
	for name := range strings.FieldsSeq(pools) {
		ids = append(ids, poolID(name).String())
	}
	return ids
}

func configuration(pools string) lb.InterfaceConfiguration {
	v4, v6, _ := strings.Cut(pools, "|")
	return lb.InterfaceConfiguration{Name: "nic", Primary: true, IPConfigurations: []lb.IPConfiguration{
		{Name: "v4", Family: lb.IPv4, Primary: true, Pools: ids(v4)}, {Name: "v6", Family: lb.IPv6, Pools: ids(v6)},
	}}
}

// has creates a machine whose interface is in the given pools; IPv6 pools follow a bar.
func (w *world) has(name, pools string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set, id, ok := strings.Cut(name, "/")
	if !ok {
		w.nics[name] = &lb.NetworkInterface{
			ID:   lb.ResourceID{SubscriptionID: subscription, ResourceGroup: "rg", Type: lb.TypeNetworkInterface, Name: "nic-" + name},
			Etag: w.etag(), Provisioning: lb.Succeeded, Machine: vm(name).Key(), InterfaceConfiguration: configuration(pools),
		}
		return
	}
	w.insts[name] = &lb.Instance{
		ScaleSet: setID(set), ID: id, Etag: w.etag(), Provisioning: lb.Succeeded, LatestModel: true,
		Interfaces: []lb.InterfaceConfiguration{configuration(pools)},
	}
}

// hasSet creates a uniform scale set.
func (w *world) hasSet(name string, mode lb.UpgradeMode, pools string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sets[name] = &lb.ScaleSet{
		ID: setID(name), Etag: w.etag(), Provisioning: lb.Succeeded, Uniform: true, UpgradeMode: mode,
		Interfaces: []lb.InterfaceConfiguration{configuration(pools)},
	}
}

// etag returns a new etag. The caller holds w.mu, or is alone.
func (w *world) etag() string {
	w.etags++
	return fmt.Sprint(w.etags)
}

// shows returns the pools of a machine, or of a scale set's model.
func (w *world) shows(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var c lb.InterfaceConfiguration
	switch {
	case w.nics[name] != nil:
		c = w.nics[name].InterfaceConfiguration
	case w.insts[name] != nil:
		c = w.insts[name].Interfaces[0]
	case w.sets[name] != nil:
		c = w.sets[name].Interfaces[0]
	}
	return saidOf(c)
}

func saidOf(c lb.InterfaceConfiguration) string {
	var families []string
	for _, ip := range c.IPConfigurations {
		var names []string
		for _, id := range ip.Pools {
			parts := strings.Split(id, "/")
			names = append(names, parts[8]+"/"+parts[10])
		}
		families = append(families, strings.Join(names, " "))
	}
	return strings.TrimSuffix(strings.Join(families, "|"), "|")
}

func (w *world) expectShown(name, want string) {
	w.t.Helper()
	if got := w.shows(name); got != want {
		w.t.Errorf("%s is in %q, want %q", name, got, want)
	}
}

func (w *world) expect(about, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: got %q, want %q", about, got, want)
	}
}

// expectCalls compares the calls since the last check.
func (w *world) expectCalls(want ...string) {
	w.t.Helper()
	if got := w.take(&w.calls); !slices.Equal(got, want) {
		w.t.Errorf("Azure was asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// expectSettled compares the pools that became idle since the last check.
func (w *world) expectSettled(want ...string) {
	w.t.Helper()
	got := w.take(&w.settled)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Errorf("settled %q, want %q", got, want)
	}
}

func (w *world) take(of *[]string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	got := *of
	*of = nil
	return got
}

// count returns the number of calls of each kind, as "LIST 1 PUT 3".
func (w *world) count() string {
	n := map[string]int{}
	for _, call := range w.take(&w.calls) {
		n[strings.Fields(call)[1]]++
	}
	var names []string
	for _, kind := range slices.Sorted(maps.Keys(n)) {
		names = append(names, fmt.Sprint(kind, " ", n[kind]))
	}
	return strings.Join(names, " ")
}

// failing makes the next calls of a kind fail with an answer.
func (w *world) failing(call string, times int, a armerror.Failure) {
	w.set(func() {
		w.fail = func(got string) error {
			if !strings.HasPrefix(got, call) || times == 0 {
				return nil
			}
			times--
			return armerror.Classify(a, errors.New("refused"))
		}
	})
}

func (w *world) Machines() []nic.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.nodes)
}

func (w *world) InterfacePools() []lb.PoolID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.expected
}

var errGone = armerror.Classify(armerror.Failure{Status: 404, TargetMissing: true}, errors.New("not found"))
