// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/transcript"
)

var failing = transcript.FormatError

// life is a world that records all actions of the Reconciler and its read-only view, compared with testdata.
type life struct {
	*transcript.Transcript
	*world
	began  time.Time
	logged bytes.Buffer
	fails  map[string]error // by ledger method
	others []string         // Services with a status address
	labels map[string]string
	held   []lb.PoolID
}

// lives plays a life and compares it.
func lives(t *testing.T, name string, set func(*Settings), plays func(l *life)) {
	t.Helper()
	transcript.Compare(t, name, func(t *testing.T, x *transcript.Transcript) {
		t.Helper()
		if set == nil {
			set = func(*Settings) {}
		}
		l := &life{Transcript: x, world: newWorld(t, set), began: time.Now(), fails: map[string]error{}, labels: map[string]string{}}
		l.starts()
		plays(l)
	})
}

// starts starts a process.
func (l *life) starts() {
	cfg := l.r.cfg
	cfg.Cluster, cfg.Store, cfg.Events, cfg.Balancers, cfg.DryRunner = l, l, l, l, l
	cfg.Log = slog.New(slog.NewTextHandler(&l.logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	l.r, l.asked = New(cfg), nil
}

// looks reconciles the Service and records the delay.
func (l *life) looks() time.Duration {
	requeueAfter, err := l.r.Reconcile(l.t.Context(), "shop/web", time.Now())
	l.warnings()
	l.AddLine("looked at: %s%s; %s", transcript.FormatRequeue(requeueAfter), failing(err), l.reads())
	return requeueAfter
}

// warnings records the log.
func (l *life) warnings() {
	for line := range strings.Lines(l.logged.String()) {
		_, msg, _ := strings.Cut(strings.TrimSpace(line), " msg=")
		l.AddLine("log: %s", msg)
	}
	l.logged.Reset()
}

// reads records the read-only view.
func (l *life) reads() string {
	var got []string
	for _, c := range AllConditions() {
		if n := l.r.States.CountConditions()[c]; n > 0 {
			got = append(got, fmt.Sprintf("%d %s", n, c))
		}
	}
	if s := l.r.States.ObservedFor("shop/web", l.s.UID); s != nil {
		got = append(got, fmt.Sprintf("served on %s (%d pools)", s.On.Name, len(s.Pools)))
	}
	got = append(got, fmt.Sprintf("%d addressed, all looked at %t", l.r.States.countAddressed(l.ServicesWithAddress()), l.r.States.allResolved(l.ServicesWithAddress())))
	return strings.Join(got, ", ")
}

// ends delivers the result of the running request.
func (l *life) ends(edit ...func(*loadbalancer.Result)) {
	if l.asked == nil {
		l.AddLine("nothing is under way")
		return
	}
	res := loadbalancer.Result{Request: *l.asked, Changed: true}
	if l.asked.Desired != nil {
		res.Pools = l.asked.Desired.Pools
	}
	if l.asked.Desired != nil {
		res.Addresses = lost
	}
	for _, f := range edit {
		f(&res)
	}
	l.asked = nil
	name := "it ends well"
	if res.Err != nil {
		name = "it fails: " + res.Err.Error()
	}
	l.AddLine("%s; somebody waits: %t", name, l.r.States.AddResult(res))
}

func (l *life) served() {
	l.looks()
	l.ends()
	l.looks()
}

func poolNames(ids []lb.PoolID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id.LoadBalancer.Name + "/" + id.Name
	}
	return fmt.Sprint(names)
}

// does records a ledger call and fails it if requested.
func (l *life) does(method, format string, args ...any) error {
	err := l.fails[method]
	l.AddLine(format+"%s", append(args, failing(err))...)
	return err
}

func (l *life) ServicesWithAddress() []string {
	return append(l.world.ServicesWithAddress(), l.others...)
}
func (l *life) NamespaceLabels(_ context.Context, namespace string) (map[string]string, error) {
	return l.labels, l.does("labels", "labels of namespace %s", namespace)
}
func (l *life) AllowsGatewayLoadBalancer(string, lb.LoadBalancerID) (allowed, known bool) {
	return true, true
}
func (l *life) ProxyProtocolNeighbor(Service) string { return "" }

func (l *life) SharesAddress(Service) bool { return false }
func (l *life) RecordedPools(_ Service, names []string, on []lb.LoadBalancerID) (recorded, created []lb.PoolID) {
	for _, id := range on {
		if id.Name != "" && len(l.held) > 0 {
			recorded = append(recorded, lb.PoolID{LoadBalancer: id, Name: names[0]})
		}
	}
	return recorded, l.held
}

func (l *life) PersistRecord(_ context.Context, _ Service, r Record) error {
	class := "none"
	if r.Class != nil {
		class = *r.Class
	}
	if err := l.does("record", "ledger: places %v, groups %v, class %s", r.LoadBalancers, r.Groups, class); err != nil {
		return err
	}
	l.s.Record, l.s.Finalizer = r, len(r.LoadBalancers) > 0
	return nil
}
func (l *life) PublishAddresses(_ context.Context, _ Service, addresses []netip.Addr) error {
	if slices.Equal(l.s.StatusAddresses, addresses) {
		return nil
	}
	if err := l.does("publish", "ledger: published %v", addresses); err != nil {
		return err
	}
	l.s.StatusAddresses = addresses
	return nil
}
func (l *life) UpdateLink(_ context.Context, _ Service, state *privatelink.State, _ bool) error {
	if state != nil {
		l.says("condition %s: %s", state.Reason, state.Text)
	}
	return nil
}

func (l *life) RejectPorts(context.Context, Service, map[service.PortRef]string) error { return nil }
func (l *life) UpdateConditions(ctx context.Context, s Service, c StatusUpdate) error {
	if !c.HasAddresses {
		return nil
	}
	return l.PublishAddresses(ctx, s, c.Addresses)
}
func (l *life) UpdateConflicts(_ context.Context, _ Service, contests []conflict.Conflict, _ bool) error {
	return l.does("contested", "ledger: %d contests", len(contests))
}
func (l *life) RequeuePools(Service) { l.AddLine("ledger: its BackendPools are looked at") }
func (l *life) MakePools(_ context.Context, _ Service, on lb.LoadBalancerID, pools []service.Pool) ([]string, error) {
	var names []string
	for _, p := range pools {
		names = append(names, p.Name)
	}
	return names, l.does("make", "ledger: pools %v are made on %s", names, on.Name)
}
func (l *life) DropPools(_ context.Context, _ Service, keep []string, removed []lb.PoolID) error {
	return l.does("drop", "ledger: pools are dropped but for %v, gone are %s", keep, poolNames(removed))
}
func (l *life) DrainPools(_ context.Context, pools []plan.DrainingPool) error {
	var ids []lb.PoolID
	for _, e := range pools {
		ids = append(ids, e.Pool)
	}
	return l.does("empty", "ledger: network interfaces leave %s", poolNames(ids))
}
func (l *life) DropInterimPools(_ context.Context, removed []lb.PoolID) error {
	if len(removed) == 0 {
		return nil
	}
	return l.does("interim", "ledger: of pools that stood in for others, gone are %s", poolNames(removed))
}
func (l *life) DropNodePools(_ context.Context, id lb.LoadBalancerID) error {
	return l.does("nodes", "ledger: the pools of nodes of %s are dropped", id.Name)
}
func (l *life) RecordPlan(ctx context.Context, _ Service, text string) error {
	return l.does("planned", "ledger: planned is %q", text)
}

func (l *life) RecordEvent(_ Service, e Event) {
	kind := "Normal"
	if e.Warning {
		kind = "Warning"
	}
	text := e.Text
	if e.Err != nil {
		text += "|" + e.Err.Error()
	}
	if e.Conflict != nil {
		text += fmt.Sprintf("%s, until %s, of %d", e.Conflict.Resource, e.Conflict.Until.Sub(l.began), e.Of)
	}
	l.AddLine("event: %s %s: %s", kind, e.Reason, text)
}

func (l *life) FindPlacement(ctx context.Context, p loadbalancer.PlacementRequest) (string, []string, error) {
	if p.Owner != service.OwnerNameOf(l.s.UID) || p.Service != "shop/web" {
		l.t.Errorf("located %+v", p)
	}
	on, leave, err := l.world.FindPlacement(ctx, p)
	if p.NamespaceLabels["tier"] == "front" {
		on = "lb-2"
		leave = slices.DeleteFunc(slices.Clone(p.LoadBalancers), func(name string) bool { return name == on })
	}
	return on, leave, err
}

func (l *life) CheckLinksReadable(_ context.Context, group string) error {
	return l.CheckReadable(context.Background(), group)
}

func (l *life) CheckReadable(_ context.Context, group string) error {
	return l.does("reads", "public IPs of group %s are read", group)
}

func (l *life) CheckDeferred(string, *service.Spec, string, bool, time.Time) error { return nil }
func (l *life) RecordRejection(string, *service.Spec, string, error)               {}
func (l *life) ForgetService(string, string)                                       {}

func (l *life) EnsureLoadBalancer(req loadbalancer.Request) {
	if l.asked != nil {
		l.t.Error("asked while a request is under way")
	}
	l.asked = &req
	leave := []string{}
	for _, id := range req.RemoveFrom {
		leave = append(leave, id.Name)
	}
	wants := "nothing"
	if req.Desired != nil {
		wants = fmt.Sprintf("%d rules", len(req.Desired.Rules))
	}
	l.AddLine("asked: %s on %q, leave %v (on record %v), spare %t, shown %v, groups %v, held %s, made %s, again %q, own pools %v",
		wants, req.On.Name, leave, req.LoadBalancers, req.ProtectAddresses, req.StatusAddresses, req.Groups, poolNames(req.RecordedPools), poolNames(req.ManagedPools), req.RetryToken, req.DedicatedPools)
	if req.DeleteUnused {
		l.AddLine("and to delete the public IPs that it does not use")
	}
}

func (l *life) DryRun(ctx context.Context, _ Service, request func(context.Context, Locator) (loadbalancer.Request, bool, error)) (string, error) {
	if until, ok := ctx.Deadline(); !ok || time.Until(until) != dryRunTimeout {
		l.t.Error("a rehearsal without its deadline")
	}
	req, ok, err := request(ctx, l)
	return fmt.Sprintf("it would be on %q, which holds something: %t", req.On.Name, ok), err
}

// err makes a result fail.
func err(text string) func(*loadbalancer.Result) {
	return func(r *loadbalancer.Result) { r.Err = errors.New(text) }
}
