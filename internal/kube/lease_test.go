// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/lease"
)

const (
	upstream     = "cloud-controller-manager"
	ours         = "weir-controller"
	lockerName   = "aks-managed-resource-locker"
	previousNote = "aks-managed-resource-locker-previous-holder"
)

// locker is the Lease as an administrator sees it. There is one in the cluster, so
// the tests of it run alone.
type locker struct {
	*testing.T
	api typedcoordinationv1.LeaseInterface
}

func newLocker(t *testing.T) *locker {
	t.Helper()
	api, err := typedcoordinationv1.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	l := &locker{t, api.Leases("kube-system")}
	l.remove()
	t.Cleanup(l.remove)
	return l
}

func (l *locker) remove() {
	if err := l.api.Delete(context.Background(), lockerName, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		l.Fatal(err)
	}
}

func (l *locker) get() *coordinationv1.Lease {
	l.Helper()
	stands, err := l.api.Get(l.Context(), lockerName, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	return stands
}

func (l *locker) holder() string {
	l.Helper()
	if h := l.get().Spec.HolderIdentity; h != nil {
		return *h
	}
	return ""
}

// upstreamTakes does what the Azure cloud provider does before it writes: it takes the
// Lease if it has no holder, or an expired one, or itself.
func (l *locker) upstreamTakes() error {
	l.Helper()
	stands, err := l.api.Get(l.Context(), lockerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		stands, err = l.api.Create(l.Context(), &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: lockerName}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(900))},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	s := &stands.Spec
	if s.HolderIdentity != nil && *s.HolderIdentity != "" && *s.HolderIdentity != upstream &&
		time.Now().Before(s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds)*time.Second)) {
		return fmt.Errorf("held by %s", *s.HolderIdentity)
	}
	now := metav1.NowMicro()
	s.HolderIdentity, s.AcquireTime, s.RenewTime = new(upstream), &now, &now
	_, err = l.api.Update(l.Context(), stands, metav1.UpdateOptions{})
	return err
}

func (l *locker) upstreamReleases() {
	l.Helper()
	stands := l.get()
	stands.Spec.HolderIdentity = new("")
	if stands.Annotations == nil {
		stands.Annotations = map[string]string{}
	}
	stands.Annotations[previousNote] = upstream
	if _, err := l.api.Update(l.Context(), stands, metav1.UpdateOptions{}); err != nil {
		l.Fatal(err)
	}
}

// change writes the Lease behind everybody's back.
func (l *locker) change(fn func(*coordinationv1.Lease)) {
	l.Helper()
	stands := l.get()
	fn(stands)
	if _, err := l.api.Update(l.Context(), stands, metav1.UpdateOptions{}); err != nil {
		l.Fatal(err)
	}
}

// counted is the API server for one of our processes, which counts its requests.
type counted struct {
	*kube.ResourceLease
	requests atomic.Int64
	// before is called before each request is sent, on its way.
	before func(method string)
}

type transport struct {
	c  *counted
	to http.RoundTripper
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.c.requests.Add(1)
	if t.c.before != nil {
		t.c.before(req.Method)
	}
	return t.to.RoundTrip(req)
}

func newResourceLease(t *testing.T, cfg *rest.Config) *counted {
	t.Helper()
	c := &counted{}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(to http.RoundTripper) http.RoundTripper { return transport{c, to} })
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	if c.ResourceLease, err = kube.NewResourceLease(cfg, client); err != nil {
		t.Fatal(err)
	}
	return c
}

// costs is how many requests there were since the last time.
func (c *counted) costs(t *testing.T, what string, want int64) {
	t.Helper()
	if got := c.requests.Swap(0); got != want {
		t.Errorf("%s cost %d requests, want %d", what, got, want)
	}
}

func (l *locker) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *locker) isRefused(err error, holder string) {
	l.Helper()
	held, ok := errors.AsType[*lease.HeldError](err)
	if !ok || held.Holder != holder || held.Lease != "kube-system/"+lockerName {
		l.Errorf("got %v, want that %s holds it", err, holder)
	}
}

// A pass costs two requests, an acquisition and a release, as long as nobody else
// writes the Lease, and a refusal one.
func TestWhatTheLeaseCosts(t *testing.T) {
	l := newLocker(t)
	weir := newResourceLease(t, cluster.Config)
	l.must(weir.Acquire(t.Context()))
	weir.costs(t, "the first acquisition: reading and creating", 2)
	made := l.get()
	l.must(weir.Acquire(t.Context()))
	weir.costs(t, "a renewal", 1)
	stands := l.get()
	if *stands.Spec.HolderIdentity != ours || *stands.Spec.LeaseDurationSeconds != 900 || stands.Annotations[previousNote] != ours {
		t.Errorf("the Lease: %+v %v", stands.Spec, stands.Annotations)
	}
	if !stands.Spec.AcquireTime.Equal(made.Spec.AcquireTime) || !stands.Spec.RenewTime.After(made.Spec.RenewTime.Time) {
		t.Errorf("renewed: %v, %v; made: %v, %v", stands.Spec.AcquireTime, stands.Spec.RenewTime, made.Spec.AcquireTime, made.Spec.RenewTime)
	}
	l.must(weir.Release(t.Context()))
	weir.costs(t, "a release", 1)
	if l.holder() != "" || l.get().Annotations[previousNote] != ours {
		t.Errorf("released: %+v %v", l.get().Spec, l.get().Annotations)
	}
	for range 10 {
		l.must(weir.Acquire(t.Context()))
		l.must(weir.Release(t.Context()))
	}
	weir.costs(t, "ten passes", 20)

	l.must(l.upstreamTakes())
	l.isRefused(weir.Acquire(t.Context()), upstream)
	weir.costs(t, "finding out that somebody else took it: a write that conflicts and a read", 2)
	l.isRefused(weir.Acquire(t.Context()), upstream)
	weir.costs(t, "a refusal", 1)
	l.must(weir.Release(t.Context()))
	if l.holder() != upstream {
		t.Error("released what is another's")
	}
	l.upstreamReleases()
	l.must(weir.Acquire(t.Context()))
	if err := l.upstreamTakes(); err == nil {
		t.Error("upstream takes what is ours")
	}
}

func TestWhoMayTakeTheLease(t *testing.T) {
	l := newLocker(t)
	for _, tt := range []struct {
		name   string
		change func(s *coordinationv1.LeaseSpec)
		free   bool
	}{
		{"held", func(*coordinationv1.LeaseSpec) {}, false},
		{"no holder", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = nil }, true},
		{"an empty holder", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new("") }, true},
		{"ours, of a process that was killed", func(s *coordinationv1.LeaseSpec) { s.HolderIdentity = new(ours) }, true},
		{"expired", func(s *coordinationv1.LeaseSpec) { s.RenewTime = ago(901*time.Second + 30*time.Second) }, true},
		{"expired by less than clocks may differ", func(s *coordinationv1.LeaseSpec) { s.RenewTime = ago(910 * time.Second) }, false},
		{"about to expire", func(s *coordinationv1.LeaseSpec) { s.RenewTime = ago(899 * time.Second) }, false},
		{"a short term that is over", func(s *coordinationv1.LeaseSpec) {
			s.RenewTime, s.LeaseDurationSeconds = ago(time.Minute), new(int32(15))
		}, true},
		{"never renewed", func(s *coordinationv1.LeaseSpec) { s.RenewTime = nil }, true},
		{"a clock that is far ahead", func(s *coordinationv1.LeaseSpec) { s.RenewTime = ago(-24 * time.Hour) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l.remove()
			l.must(l.upstreamTakes())
			l.change(func(stands *coordinationv1.Lease) { tt.change(&stands.Spec) })
			err := newResourceLease(t, cluster.Config).Acquire(t.Context())
			if (err == nil) != tt.free {
				t.Errorf("got %v, want it free: %v", err, tt.free)
			}
			if tt.free && l.holder() != ours {
				t.Errorf("held by %q", l.holder())
			}
		})
	}
}

func ago(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(time.Now().Add(-d))) }

// Somebody writes between our read and our write: the newest state decides.
func TestWhoWritesInBetweenIsReadFirst(t *testing.T) {
	l := newLocker(t)
	weir := newResourceLease(t, cluster.Config)
	once := func(method string, do func()) {
		var only sync.Once
		weir.before = func(m string) {
			if m == method {
				only.Do(do)
			}
		}
	}
	once(http.MethodPost, func() { l.must(l.upstreamTakes()) })
	l.isRefused(weir.Acquire(t.Context()), upstream)
	l.upstreamReleases()
	once(http.MethodPut, func() { l.must(l.upstreamTakes()) })
	l.isRefused(weir.Acquire(t.Context()), upstream)
	if l.holder() != upstream {
		t.Error("our write won over a newer one")
	}
	l.upstreamReleases()
	note := func() {
		l.change(func(stands *coordinationv1.Lease) { stands.Labels = map[string]string{"who": "somebody"} })
	}
	once(http.MethodPut, note)
	l.must(weir.Acquire(t.Context())) // a label is no holder
	once(http.MethodPut, note)
	l.change(func(stands *coordinationv1.Lease) { stands.Labels = nil })
	l.must(weir.Release(t.Context()))
	if l.holder() != "" {
		t.Error("not released, though nobody else holds it")
	}
	once(http.MethodPut, l.remove)
	l.must(weir.Acquire(t.Context())) // deleted meanwhile: made anew
	if l.holder() != ours {
		t.Error("not held")
	}
}

// The next leader goes on at once; the one before, which stops late, does not release
// what the next one holds.
func TestTheNextLeaderGoesOn(t *testing.T) {
	l := newLocker(t)
	first, second := newResourceLease(t, cluster.Config), newResourceLease(t, cluster.Config)
	l.must(first.Acquire(t.Context()))
	l.must(second.Acquire(t.Context()))
	l.must(first.Release(t.Context()))
	if l.holder() != ours {
		t.Fatal("the leader before released what the next one holds")
	}
	l.must(second.Release(t.Context()))
	if l.holder() != "" {
		t.Error("not released")
	}
}

// With the roles that we ship it can do what it has to, and nothing else with Leases
// of that namespace.
func TestTheRolesOfTheLease(t *testing.T) {
	l := newLocker(t)
	as := rest.CopyConfig(cluster.Config)
	as.Impersonate.UserName = "system:serviceaccount:weir-system:weir"
	weir := newResourceLease(t, as)
	if err := weir.Acquire(t.Context()); !apierrors.IsForbidden(errors.Unwrap(err)) || !strings.Contains(err.Error(), "kube-system/"+lockerName) {
		t.Errorf("without the roles: %v", err)
	}
	l.applyRoles("../../config/resource-lease/role.yaml")
	until := time.Now().Add(20 * time.Second)
	for weir.Acquire(t.Context()) != nil && time.Now().Before(until) { // roles take a moment
		time.Sleep(20 * time.Millisecond)
	}
	l.must(weir.Acquire(t.Context()))
	l.must(weir.Release(t.Context()))

	api, err := typedcoordinationv1.NewForConfig(as)
	l.must(err)
	_, err = api.Leases("kube-system").Get(t.Context(), "kube-controller-manager", metav1.GetOptions{})
	_, list := api.Leases("kube-system").List(t.Context(), metav1.ListOptions{})
	gone := api.Leases("kube-system").Delete(t.Context(), lockerName, metav1.DeleteOptions{})
	for what, err := range map[string]error{"another Lease": err, "a list": list, "deletion": gone} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func (l *locker) applyRoles(path string) {
	l.Helper()
	raw, err := os.ReadFile(filepath.FromSlash(path))
	l.must(err)
	parts := strings.Split(string(raw), "\n---\n")
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	l.must(yaml.UnmarshalStrict([]byte(parts[0]), role))
	l.must(yaml.UnmarshalStrict([]byte(parts[1]), binding))
	scheme := kube.Scheme()
	l.must(rbacv1.AddToScheme(scheme))
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme})
	l.must(err)
	l.must(admin.Create(l.Context(), role))
	l.must(admin.Create(l.Context(), binding))
	l.Cleanup(func() {
		l.must(admin.Delete(context.Background(), role))
		l.must(admin.Delete(context.Background(), binding))
	})
}

// safeBuffer is a log that a controller writes while a test reads it.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) count(part string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.buf.String(), part)
}

// The Azure cloud provider holds the Lease: nothing is read or written in Azure, the
// pools say what they wait for, and everything goes level when it lets go. While we
// write, it has to wait in turn.
//
// It runs alone: the controller that all tests share is stopped meanwhile.
func TestTwoControllersOfOneLoadBalancer(t *testing.T) {
	l := newLocker(t)
	s := newScene(t, "web")
	for n := 1; n <= 3; n++ {
		s.hasNode(n)
	}
	s.hasService("web", corev1.ServiceTypeLoadBalancer)
	s.binds("web", "web")
	s.azurePool("api")
	s.hasSlice("a", "web", s.on(1))
	s.binds("api", "web")
	s.holds("web", s.ip(1))
	s.holds("api", s.ip(1))
	l.must(controller.stop())
	log := &safeBuffer{}
	shared := lease.NewShared(newResourceLease(t, cluster.Config), kube.ResourceLeaseTerm, slog.New(slog.NewTextHandler(log, nil)))
	var err error
	controller, err = startWith(shared)
	l.must(err)
	t.Cleanup(func() { // the others go on without it
		l.must(controller.stop())
		controller, err = start()
		l.must(err)
	})
	s.until(func() string {
		for _, name := range []string{"web", "api"} { // each was written, and is looked at once
			if got := s.status(name).LastOutcome.Class; got != "Unchanged" {
				return "the first look is not over at " + name + ": " + got
			}
		}
		return ""
	})
	s.comesToSay("web", v1alpha1.ReasonLevel, "level with 1 node")
	s.comesToSay("api", v1alpha1.ReasonLevel, "level with 1 node")

	s.until(func() string {
		if err := l.upstreamTakes(); err != nil {
			return err.Error() // one of our looks is under way
		}
		return ""
	})
	said, calls, refused := s.events("Service", "web"), s.calls(), shared.Refusals()
	s.changeSlice("a", s.on(1), s.on(2))
	waits := `a change of the members waits: the lease kube-system/` + lockerName + ` is held by "` + upstream + `"`
	s.comesToSay("web", v1alpha1.ReasonUpdating, waits)
	s.comesToSay("api", v1alpha1.ReasonUpdating, waits)
	version := get[v1alpha1.BackendPool](s, s.ns, "web").ResourceVersion
	s.until(func() string { // some intervals pass
		if shared.Refusals() < refused+4 {
			return fmt.Sprintf("refused %d times", shared.Refusals()-refused)
		}
		return ""
	})
	if n := s.calls(); n != calls {
		t.Errorf("%d calls to Azure without the lease", n-calls)
	}
	if got := controller.lanes.Backlog().Operations; got < 2 { // pools of other tests may wait, too
		t.Errorf("%d operations wait, want both", got)
	}
	if now := get[v1alpha1.BackendPool](s, s.ns, "web").ResourceVersion; now != version {
		t.Errorf("said more than once: %s", s.says("web"))
	}
	if n := log.count("no resource lease"); n != 1 {
		t.Errorf("%d log lines, want one", n)
	}
	if got := s.events("Service", "web"); fmt.Sprint(got) != fmt.Sprint(said) {
		t.Errorf("events: %v, before %v", got, said)
	}

	l.upstreamReleases()
	s.holds("web", s.ip(1), s.ip(2))
	s.holds("api", s.ip(1), s.ip(2))
	if n := log.count("ours again"); n != 1 {
		t.Errorf("%d log lines for the end", n)
	}
	if got := l.get().Annotations[previousNote]; got != ours {
		t.Errorf("the previous holder is %q: the cloud provider would not read anew what we changed", got)
	}

	// Ours is held while a write is under way.
	var meanwhile error
	var only sync.Once
	duringPut.Store(new(func() { only.Do(func() { meanwhile = l.upstreamTakes() }) }))
	defer duringPut.Store(nil)
	s.changeSlice("a", s.on(2))
	s.holds("web", s.ip(2))
	s.holds("api", s.ip(2))
	if meanwhile == nil || !strings.Contains(meanwhile.Error(), ours) {
		t.Errorf("during our write the other got %v, want that we hold it", meanwhile)
	}
	s.until(func() string { // and released, when all passes are over
		if err := l.upstreamTakes(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// A controller without the setting never asks.
func TestWithoutTheSettingNothingIsAsked(t *testing.T) {
	l := newLocker(t)
	s := web(t)
	s.hasSlice("a", "web", s.on(1))
	s.holds("web", s.ip(1))
	if _, err := l.api.Get(t.Context(), lockerName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Lease exists: %v", err)
	}
}
