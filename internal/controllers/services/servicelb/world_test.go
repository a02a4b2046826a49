// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/service"
)

const class = "weir.dev/azure"

var lost = []netip.Addr{netip.MustParseAddr("198.18.0.1")}

// world is an in-memory cluster with one Service, shop/web, and a scripted Azure. Its log is the sequence of
// events.
type world struct {
	t    *testing.T
	mu   sync.Mutex // guards s and log for concurrent reconciles
	r    *Reconciler
	s    Service
	gone bool
	log  []string
	// answers are the results of the next requests; without any, they succeed.
	answers []error
	// unchanged means Azure is already in sync.
	unchanged bool
	// asked is the running request.
	asked *loadbalancer.Request
	// unwritable is the error of record writes.
	unwritable error
	// slow is the duration of a ledger write.
	slow time.Duration
	// later is an offset of the clock.
	later    time.Duration
	nodes    []netip.Addr
	fills    []lb.PoolID
	drains   []plan.DrainingPool
	planned  string
	declines error
	// defers returns the deferral of a request; nil defers nothing.
	defers func(name string, desired *service.Spec, narrows bool, now time.Time) error
	// unreadable is the error of reading a resource group that the Service names.
	unreadable error
	rejected   int
	// stops cancels the context while a load balancer is chosen.
	stops context.CancelFunc
	// link is the Private Link result.
	link privatelink.Result
	// note is the security group result.
	note string
	// verdicts are the conditions of the Service by type; concluded counts writes.
	verdicts  map[string]StatusCondition
	concluded int
	// copied are the conditions in an outdated informer cache.
	copied map[string]StatusCondition
	// anew records for each conflict or link condition whether it was written again.
	anew []bool
	// refused are the rejected ports in the status.
	proxied string
	shares  bool // another Service has its address
	warned  int  // of ReasonProbesProxied
	refused map[service.PortRef]string
	// empty means no ready endpoints.
	empty bool
	// stale is set if only the cache lacks the Service; unreadableAPI is the error of the API server.
	stale         bool
	unreadableAPI error
	// emptyPool is a pool that is empty in Azure.
	emptyPool string
}

// newWorld returns a world with a new Service.
func newWorld(t *testing.T, edits ...func(*Settings)) *world {
	t.Helper()
	w := &world{t: t, verdicts: map[string]StatusCondition{}, s: Service{
		Name: "shop/web", UID: "0001-0000", Ownership: Ownership{LoadBalancer: true, Class: new(class)},
		Object: service.Service{
			Namespace: "shop", Name: "web", UID: "0001-0000", Families: []lb.Family{lb.IPv4}, Labels: map[string]string{}, Annotations: map[string]string{},
			Ports: []service.Port{{Port: 80, NodePort: 30080, Protocol: "TCP"}},
		},
	}}
	set := Settings{Class: class, Service: service.Settings{
		SeveralLoadBalancers: true, // Local Services have pools of their own

		ClusterName: "kubernetes", VirtualNetwork: "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/net", Subnet: "nodes",
	}}
	for _, edit := range edits {
		edit(&set)
	}
	w.r = newReconciler(w, set)
	return w
}

// newReconciler returns a new process.
func newReconciler(w *world, set Settings) *Reconciler {
	return New(Config{
		Settings: set, Cluster: w, Store: w, Events: w, Balancers: w, DryRunner: w,
		Backoff: ratelimit.Exponential{Initial: time.Second, Max: time.Minute}, Log: slog.New(slog.DiscardHandler),
	})
}

func (w *world) says(text string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(text, args...))
}

// looks reconciles the Service and returns the delay.
func (w *world) looks() time.Duration {
	w.t.Helper()
	requeueAfter, err := w.r.Reconcile(w.t.Context(), "shop/web", time.Now().Add(w.later))
	if err != nil {
		w.says("error: %v", err)
	}
	return requeueAfter
}

// ends delivers the result of the running request.
func (w *world) ends() {
	w.t.Helper()
	if w.asked == nil {
		w.t.Fatal("nothing is asked for")
	}
	res := loadbalancer.Result{Request: *w.asked, Changed: !w.unchanged, FillingPools: w.fills, DrainingPools: w.drains, Link: w.link, Message: w.note}
	if res.Desired != nil {
		res.Pools = res.Desired.Pools
	}
	if w.asked.Desired != nil && !w.asked.CloseOnly {
		res.Addresses = lost
	}
	if len(w.answers) > 0 {
		res.Err, w.answers = w.answers[0], w.answers[1:]
	}
	w.asked = nil
	if !w.r.States.AddResult(res) {
		w.t.Error("nobody waits for the result")
	}
}

// is compares the events since the last call.
func (w *world) is(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.log, want) {
		w.t.Errorf("it happened\n  %s\nwant\n  %s", strings.Join(w.log, "\n  "), strings.Join(want, "\n  "))
	}
	w.log = nil
}

// counts compares the metric.
func (w *world) counts(want Condition) {
	w.t.Helper()
	for cond, n := range w.r.States.CountConditions() {
		if (n == 1) != (cond == want) {
			w.t.Errorf("%d are %s, want one that is %s", n, cond, want)
		}
	}
}

func (w *world) Service(string) (Service, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.s, !w.gone
}
func (w *world) Exists(context.Context, string, string) (bool, error) {
	return w.stale, w.unreadableAPI
}
func (w *world) NamespaceLabels(context.Context, string) (map[string]string, error) {
	return map[string]string{}, nil
}
func (w *world) AllowsGatewayLoadBalancer(_ string, on lb.LoadBalancerID) (allowed, known bool) {
	return on.Name == "allowed", on.Name != "unknown"
}
func (w *world) PoolNames(Service) []string { return nil }
func (w *world) RecordedPools(Service, []string, []lb.LoadBalancerID) (recorded, created []lb.PoolID) {
	return nil, nil
}
func (w *world) NodesOf(lb.LoadBalancerID, bool) ([]netip.Addr, bool) { return w.nodes, w.nodes != nil }
func (w *world) SharesAddress(Service) bool                           { return w.shares }
func (w *world) ProxyProtocolNeighbor(Service) string                 { return w.proxied }
func (w *world) HasEndpoints(string) bool                             { return !w.empty }
func (w *world) EmptyPool(lb.LoadBalancerID, []service.Pool) string   { return w.emptyPool }
func (w *world) ServicesWithAddress() []string {
	if len(w.s.StatusAddresses) > 0 && !w.gone {
		return []string{w.s.Name}
	}
	return nil
}

func (w *world) PersistRecord(ctx context.Context, s Service, r Record) error {
	if w.slow > 0 {
		select {
		case <-time.After(w.slow):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if w.unwritable != nil {
		return w.unwritable
	}
	w.says("recorded %s", strings.Join(r.LoadBalancers, " "))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.s.Record, w.s.Finalizer = r, len(r.LoadBalancers) > 0
	return nil
}

func (w *world) PublishAddresses(_ context.Context, _ Service, addresses []netip.Addr) error {
	if slices.Equal(w.s.StatusAddresses, addresses) {
		return nil
	}
	if w.unwritable != nil {
		return w.unwritable
	}
	w.says("published %v", addresses)
	w.s.StatusAddresses = addresses
	return nil
}

func (w *world) RejectPorts(_ context.Context, _ Service, ports map[service.PortRef]string) error {
	w.refused = ports
	return nil
}
func (w *world) UpdateConflicts(_ context.Context, _ Service, _ []conflict.Conflict, anew bool) error {
	w.anew = append(w.anew, anew)
	return w.unwritable
}

// UpdateConditions writes the changes, as the real ledger does.
func (w *world) UpdateConditions(ctx context.Context, s Service, c StatusUpdate) error {
	if c.HasAddresses {
		if err := w.PublishAddresses(ctx, s, c.Addresses); err != nil {
			return err
		}
	}
	for _, v := range c.Conditions {
		kind := v.Type
		if v.Reason == "" {
			v = StatusCondition{}
		}
		if cond := w.verdicts[kind]; humanize.EqualMessages(cond.Text, v.Text) {
			v.Text = cond.Text
		}
		if old, ok := w.copied[kind]; ok && old == v && !c.Changed {
			continue
		}
		if w.verdicts[kind] != v {
			w.verdicts[kind] = v
			w.concluded++
			w.s.ProgrammedReason = w.verdicts[TypeProgrammed].Reason
		}
	}
	return nil
}
func (w *world) UpdateLink(_ context.Context, _ Service, state *privatelink.State, anew bool) error {
	w.anew = append(w.anew, anew)
	if state != nil {
		w.says("condition %s: %s", state.Reason, state.Text)
		return w.unwritable
	}
	return nil
}
func (w *world) RequeuePools(Service) {}
func (w *world) MakePools(_ context.Context, _ Service, on lb.LoadBalancerID, _ []service.Pool) ([]string, error) {
	w.says("pools made on %s", on.Name)
	return nil, w.unwritable
}
func (w *world) DropPools(context.Context, Service, []string, []lb.PoolID) error {
	return w.unwritable
}
func (w *world) DrainPools(context.Context, []plan.DrainingPool) error  { return nil }
func (w *world) DropInterimPools(context.Context, []lb.PoolID) error    { return nil }
func (w *world) DropNodePools(context.Context, lb.LoadBalancerID) error { return nil }
func (w *world) RecordPlan(_ context.Context, _ Service, text string) error {
	w.planned = text
	return nil
}
func (w *world) IsTransient(err error) bool { return !errors.Is(err, errForbidden) }

var errForbidden = errors.New("forbidden")

func (w *world) RecordEvent(_ Service, e Event) {
	text := e.Reason + ": " + e.Text
	if e.Err != nil {
		if armerror.FromError(e.Err).IsDeferred() {
			w.t.Errorf("the recorder adds the code of a fault, so that %q has it twice", e.Text)
		}
		text += e.Err.Error()
	}
	if e.Reason == ReasonProbesProxied {
		w.warned++
	}
	w.says("%s", text)
}

func (w *world) FindPlacement(_ context.Context, p loadbalancer.PlacementRequest) (string, []string, error) {
	if w.stops != nil {
		w.stops()
	}
	switch {
	case w.declines != nil:
		return "", nil, w.declines
	case p.Desired == nil:
		return "", p.LoadBalancers, nil
	}
	on := "kubernetes"
	if p.Labels["tier"] == "front" {
		on = "lb-2"
	}
	return on, slices.DeleteFunc(slices.Clone(p.LoadBalancers), func(name string) bool { return name == on }), nil
}

func (w *world) ID(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: name}
}
func (w *world) CheckReadable(context.Context, string) error { return nil }

func (w *world) CheckLinksReadable(context.Context, string) error { return w.unreadable }

func (w *world) CheckDeferred(name string, desired *service.Spec, _ string, narrows bool, now time.Time) error {
	if w.defers == nil {
		return nil
	}
	return w.defers(name, desired, narrows, now)
}

func (w *world) RecordRejection(string, *service.Spec, string, error) { w.rejected++ }

func (w *world) ForgetService(string, string) {}

func (w *world) EnsureLoadBalancer(req loadbalancer.Request) {
	if w.asked != nil {
		w.t.Error("asked while a request is under way")
	}
	for _, id := range append(slices.Clone(req.RemoveFrom), req.On) {
		if id.Name != "" && !slices.Contains(w.s.Record.LoadBalancers, id.Name) && !w.gone {
			w.t.Errorf("asked for %s, and on record are %v", id.Name, w.s.Record.LoadBalancers)
		}
	}
	w.asked = &req
	name := "all for " + req.On.Name
	switch {
	case req.Desired == nil:
		name = "to leave"
	case req.CloseOnly:
		name = fmt.Sprintf("to admit %v alone", req.Desired.Access.Ranges)
	}
	w.says("asked %s", name)
}

func (w *world) DryRun(ctx context.Context, _ Service, request func(context.Context, Locator) (loadbalancer.Request, bool, error)) (string, error) {
	req, _, err := request(ctx, w)
	return "would be on " + req.On.Name, err
}

// inTime runs a story in virtual time.
func inTime(t *testing.T, explanation func(t *testing.T)) { synctest.Test(t, explanation) }
