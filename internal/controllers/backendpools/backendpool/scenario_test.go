// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/test/transcript"
)

var failing = transcript.FormatError

// life records everything the Controller does in virtual time: calls to the updater and the API server,
// events, and each changed status line. The test compares it with testdata.
type life struct {
	*testing.T
	*transcript.Transcript
	*world
	*Controller
	startedAt time.Time
	p         *v1alpha1.BackendPool

	members       membership.Set        // of the Service's pools
	inSync        bool                  // what the updater reports
	stale         bool                  // the cluster cache may be stale
	dropped       int                   // operations queued for a Service
	isNeeded      bool                  // what the owner returns
	permissions   map[string]Permission // by name; default Granted
	rejection     Rejection             // of BackendPools without a right
	failures      map[string]error      // by API verb
	version       int                   // of the object
	lastShown     map[string]string     // the last status shown
	ops           []schedule.Operation
	tamperNext    func(*v1alpha1.BackendPoolStatus) // by another process, with the next write
	isConflicting bool                              // other writers change the object before each write
}

// runScenario runs a scenario and compares its trace.
func runScenario(t *testing.T, name string, p *v1alpha1.BackendPool, plays func(l *life)) {
	t.Helper()
	transcript.Compare(t, name, func(t *testing.T, x *transcript.Transcript) {
		t.Helper()
		l := &life{
			T: t, Transcript: x, startedAt: time.Now(), p: p, permissions: map[string]Permission{}, failures: map[string]error{}, lastShown: map[string]string{},
			world: &world{pools: map[string]*v1alpha1.BackendPool{}, services: map[schedule.ServiceName]Service{}, nodes: map[string]netip.Addr{}},
		}
		l.startProcess()
		l.addObjects(p, serviceOfType(corev1.ServiceTypeLoadBalancer))
		plays(l)
	})
}

func (l *life) startProcess() {
	l.Controller = New(Config{
		Cluster: l, Owner: l, Workers: l, Events: l, Retention: &RetentionPolicy{Stale: func(time.Time) bool { return l.stale }, NodeAt: l.nodeByAddress}, Log: slog.New(logRecorder{l}), RecheckInterval: 5 * time.Minute, ReleaseRetryInterval: time.Minute,
		Queue: func(ref schedule.Ref) { l.AddLine("queued: %s", ref.Name) },
	}, NewStatuses(l))
}

// updatePool updates the BackendPool in the cluster and the API server.
func (l *life) updatePool(edit ...func(*v1alpha1.BackendPool)) {
	next := l.p.DeepCopy()
	if e := l.statuses.GetEntry(RefOf(next)); e != nil {
		next.Status = e.status
	}
	for _, f := range edit {
		f(next)
	}
	l.p = next
	l.addObjects(next)
}

func (l *life) reconcilePool() {
	result, err := l.Reconcile(l.Context(), l.p.Namespace, l.p.Name, time.Now())
	l.AddLine("reconciled: %s%s", transcript.FormatRequeue(result.After), failing(err))
}

func (l *life) changeEndpoints() {
	l.AddLine("endpoints changed%s", failing(l.EndpointsChanged(l.Context(), schedule.ServiceName{Namespace: "shop", Name: "web"}, time.Now())))
}

// startAttempt makes the calls of an attempt for the last queued operation.
func (l *life) startAttempt(intent *diff.Intent) {
	op := l.ops[len(l.ops)-1]
	if !l.IsNeeded(op) {
		l.AddLine("the lane drops it")
		return
	}
	want, err := l.DesiredPool(op.Ref)
	if err != nil {
		l.AddLine("the lane does not know what to write: %v", err)
		return
	}
	l.AddLine("the lane wants %s (alone %t); recorded are %v, Down %v, taken %t; n9 is ours: %t",
		nodeNames(want.Addresses), want.IsExclusive, want.Record.Written, want.Record.Down, want.Record.Adopted, want.IsOwnAddress(nodeIP("n9")))
	if by := want.Machines; by != nil {
		l.AddLine("members are %s interfaces, configuration %s, every node %t", by.Family, by.Configuration, by.Every)
		for _, a := range want.Addresses {
			m, err := by.Lookup(a.Name)
			l.AddLine("    %s: %s%s", a.Name, m.Key(), failing(err))
		}
	}
	if intent != nil {
		l.AddLine("recorded%s", failing(l.Record(l.Context(), op.Ref, *intent)))
	}
}

func (l *life) endAttempt(o diff.Outcome, edit ...func(*updater.Report)) {
	r := updater.Report{Ref: RefOf(l.p), Pool: l.ResolveBinding(l.p, time.Now()).Pool, Outcome: o, At: time.Now(), Budget: 3}
	r.InSync = o == diff.Written || o == diff.Unchanged
	if !r.InSync {
		r.Observed = -1
		r.Fault = &armerror.Fault{Class: armerror.Terminal, Code: "Bad", Err: errors.New("no way")}
	}
	for _, f := range edit {
		f(&r)
	}
	l.AddLine("the lane reports %s", o)
	l.Report(l.Context(), r)
}

func (l *life) webService() []schedule.ServiceName {
	return []schedule.ServiceName{{Namespace: "shop", Name: "web"}}
}

func nodeNames(addresses []lb.Address) string {
	var names []string
	for _, a := range addresses {
		names = append(names, a.Name)
	}
	return "[" + strings.Join(names, " ") + "]"
}

// Members implements Cluster.
func (l *life) Members(p *v1alpha1.BackendPool) (membership.Set, error) {
	if err := l.failures["members"]; err != nil {
		return membership.Set{}, err
	}
	if p.Spec.Nodes == nil {
		return l.members, nil
	}
	set, err := l.world.Members(p)
	set.KeptUp, set.Draining = l.members.KeptUp, l.members.Draining
	return set, err
}

// AddressOf implements Cluster.
func (l *life) AddressOf(machine string, family lb.Family) (netip.Addr, bool) {
	ip, ok := l.nodes[machine]
	return ip, ok && family == lb.IPv4
}

// MachineOf implements Cluster: a machine has the name of its node.
func (l *life) MachineOf(node string) (nic.Machine, error) {
	if err := l.failures["machine of "+node]; err != nil {
		return nic.Machine{}, err
	}
	return nic.ParseMachine("azure:///subscriptions/s0/resourceGroups/rg0/providers/Microsoft.Compute/virtualMachines/" + node)
}

// Permission implements Owner.
func (l *life) Permission(p *v1alpha1.BackendPool, at lb.PoolID) (Permission, Rejection) {
	if have, ok := l.permissions[p.Name]; ok {
		return have, l.rejection
	}
	return l.world.Permission(p, at)
}

func (l *life) IsInUse(*v1alpha1.BackendPool) bool     { return l.isNeeded }
func (l *life) HandleDeletion(p *v1alpha1.BackendPool) { l.AddLine("owner: %s goes", p.Name) }
func (l *life) HandleMissing(p *v1alpha1.BackendPool) {
	l.AddLine("owner: the pool of %s is missing", p.Name)
}
func (l *life) HandleEmpty(p *v1alpha1.BackendPool) { l.AddLine("owner: %s is empty", p.Name) }
func (l *life) HandleAttempt(p *v1alpha1.BackendPool, r updater.Report) {
	l.AddLine("owner: %s was filled: %s", p.Name, r.Outcome)
}

func (l *life) Add(ops ...schedule.Operation) {
	for _, op := range ops {
		text := fmt.Sprintf("lanes: %s for %s %q", op.Ref.Name, op.Pool.Name, op.Service.Name)
		if op.Admin {
			text += fmt.Sprintf(", admin states (stay %d, leave %d, return %d)", op.Impact.Serving, op.Impact.Stopping, op.Impact.Starting)
		}
		if !op.ChangedAt.IsZero() {
			text += ", changed now"
			if !op.ChangedAt.Equal(time.Now()) {
				l.Errorf("changed at %s", op.ChangedAt)
			}
		}
		if !op.NotBefore.IsZero() {
			text += ", not before " + op.NotBefore.Sub(l.startedAt).String()
		}
		if op.FillsPool {
			text += ", new"
		}
		if op.LastNotification != (schedule.LastNotification{}) {
			text += fmt.Sprintf(", told %+v", op.LastNotification)
		}
		l.AddLine("%s", text)
	}
	l.ops = append(l.ops, ops...)
}

func (l *life) RemoveService(name schedule.ServiceName) int {
	l.AddLine("lanes: the operations of Service %s go", name.Name)
	return l.dropped
}
func (l *life) Drop(ref schedule.Ref)  { l.AddLine("lanes: %s is dropped", ref.Name) }
func (l *life) Retry(ref schedule.Ref) { l.AddLine("lanes: %s is tried again", ref.Name) }
func (l *life) Forget(pool lb.PoolID)  { l.AddLine("lanes: pool %s is forgotten", pool.Name) }
func (l *life) IsInSync(_ lb.PoolID, print uint64) bool {
	return l.inSync && print == membership.Fingerprint(l.members.Addresses)
}

func (l *life) OnPool(p *v1alpha1.BackendPool, e Event) {
	l.AddLine("event on %s: %s %s: %s", p.Name, e.Kind, e.Reason, e.Text)
}
func (l *life) OnService(name schedule.ServiceName, e Event) {
	l.AddLine("event on Service %s: %s %s: %s", name.Name, e.Kind, e.Reason, e.Text)
}
func (l *life) RecordRetained(p *v1alpha1.BackendPool, _ Binding, set membership.Set) {
	l.AddLine("event on %s: %s", p.Name, RetainedMessage(set))
}
func (l *life) AdminStates(p *v1alpha1.BackendPool, _ Binding, _ updater.Report, t AdminChanges) {
	if len(t.Down)+len(t.Back)+len(t.Failed) > 0 {
		l.AddLine("event on %s: Down %v, back %v, owed %v", p.Name, t.Down, t.Back, t.Failed)
	}
}

// Pool implements Cluster: the cache equals the API server.
func (l *life) Pool(namespace, name string) *v1alpha1.BackendPool {
	p := l.world.Pool(namespace, name)
	if p != nil {
		p = p.DeepCopy()
		p.ResourceVersion = fmt.Sprint(l.version)
	}
	return p
}

// All implements API.
func (l *life) All(ctx context.Context) ([]*v1alpha1.BackendPool, error) {
	p, err := l.Load(ctx, RefOf(l.p))
	return []*v1alpha1.BackendPool{p}, err
}

// Load implements API.
func (l *life) Load(_ context.Context, ref schedule.Ref) (*v1alpha1.BackendPool, error) {
	l.AddLine("API: %s is read%s", ref.Name, failing(l.failures["load"]))
	if err := l.failures["load"]; err != nil {
		return nil, err
	}
	stored := l.p.DeepCopy()
	stored.ResourceVersion = fmt.Sprint(l.version)
	if l.tamperNext != nil {
		l.tamperNext(&stored.Status)
	}
	return stored, nil
}

// Apply implements API and records the changed status lines.
func (l *life) Apply(ctx context.Context, ref schedule.Ref, version string, status *v1alpha1.BackendPoolStatus) (string, error) {
	if until, ok := ctx.Deadline(); !ok || time.Until(until) != statusTimeout {
		l.Error("a write without its deadline")
	}
	if l.isConflicting {
		l.version++
	}
	if version != fmt.Sprint(l.version) {
		l.AddLine("API: the status of %s has another version than %s", ref.Name, version)
		return "", metadata.ErrConflict
	}
	if err := l.failures["apply"]; err != nil {
		l.AddLine("API: the status of %s is not written: %v", ref.Name, err)
		return "", err
	}
	l.version++
	l.tamperNext = nil
	l.AddLine("API: the status of %s is written", ref.Name)
	got := l.statusLines(status)
	for _, line := range sortedLines(got, l.lastShown) {
		if got[line] != l.lastShown[line] {
			l.AddLine("    %s %s", line, got[line])
		}
	}
	l.lastShown = got
	return fmt.Sprint(l.version), nil
}

// SetFinalizer implements API.
func (l *life) SetFinalizer(_ context.Context, p *v1alpha1.BackendPool, want bool) (*v1alpha1.BackendPool, error) {
	l.AddLine("API: %s has a finalizer: %t", p.Name, want)
	if err := l.failures["finalizer"]; err != nil {
		return nil, err
	}
	l.version++
	pool := p.DeepCopy()
	pool.ResourceVersion = fmt.Sprint(l.version)
	return pool, nil
}

func (l *life) statusLines(s *v1alpha1.BackendPoolStatus) map[string]string {
	got := map[string]string{
		"written": strings.Join(s.WrittenAddresses, " "), "made for": s.MadeFor,
		"counts": fmt.Sprintf("desired %s observed %s foreign %s; retries %s of %s", formatCount(s.Desired), formatCount(s.Observed), formatCount(s.Foreign), formatCount(s.RetriesUsed), formatCount(s.RetryBudget)),
	}
	if id := s.PoolID; id != "" {
		got["pool"] = id[strings.LastIndex(id, "/")+1:]
	}
	var down []string
	for _, d := range s.Down {
		down = append(down, fmt.Sprintf("%s (%s, %s)", d.Address, d.Node, d.Reason))
	}
	got["Down"] = strings.TrimSpace(fmt.Sprintf("%s %s", formatCount(s.DownCount), strings.Join(down, ", ")))
	if s.NextEligibleAt != nil {
		got["next eligible"] = s.NextEligibleAt.Sub(l.startedAt).String()
	}
	if s.LastWrite != nil {
		got["last write"] = s.LastWrite.Sub(l.startedAt).String()
	}
	if s.LastOutcome != nil {
		got["last outcome"] = fmt.Sprintf("%s %s since %s", s.LastOutcome.Class, s.LastOutcome.Code, s.LastOutcome.Since.Sub(l.startedAt))
	}
	if s.LastEvent != nil {
		got["last event"] = fmt.Sprintf("%+v", *s.LastEvent)
	}
	for _, c := range s.Conditions {
		got[c.Type] = fmt.Sprintf("%s %s of generation %d: %s", c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	return got
}

func formatCount(n *int32) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func sortedLines(lines ...map[string]string) []string {
	var names []string
	for _, m := range lines {
		for name := range m {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// logRecorder records warnings of the log.
type logRecorder struct{ *life }

func (logRecorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l logRecorder) Handle(_ context.Context, r slog.Record) error {
	l.AddLine("log: %s", r.Message)
	return nil
}
func (l logRecorder) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logRecorder) WithGroup(string) slog.Handler      { return l }
