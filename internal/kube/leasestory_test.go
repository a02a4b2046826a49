// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/leases"
	"weir.dev/weir/internal/lease"
)

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

// While cloud-provider-azure holds the Lease, nothing is read or written in Azure and the pools
// report what they wait for. Not parallel: it stops the shared controller.
func TestTwoControllersOfOneLoadBalancer(t *testing.T) {
	s := newRivalry(t)
	s.bothPools(s.ip(1))
	s.takesTurnsFromHere()
	s.theOtherTakesIt()
	s.changesWait()
	s.l.upstreamReleases()
	s.goesOn()
	s.keepsTheOtherAwayWhileItWrites()
	s.theOtherTakesIt() // all passes are over
}

// rivalry is a Service with two pools and a controller that shares the Lease with
// cloud-provider-azure.
type rivalry struct {
	*scene

	l      *locker
	shared *lease.Shared
	log    *safeBuffer
}

func newRivalry(t *testing.T) *rivalry {
	t.Helper()
	s := &rivalry{l: newLocker(t), scene: newScene(t, "web"), log: &safeBuffer{}}
	for n := 1; n <= 3; n++ {
		s.hasNode(n)
	}
	s.hasService("web", corev1.ServiceTypeLoadBalancer)
	s.binds("web", "web")
	s.azurePool("api")
	s.hasSlice("a", "web", s.on(1))
	s.binds("api", "web")
	return s
}

func (s *rivalry) bothPools(ips ...string) {
	s.Helper()
	s.holds("web", ips...)
	s.holds("api", ips...)
}

// takesTurnsFromHere replaces the shared controller with one that uses the Lease.
func (s *rivalry) takesTurnsFromHere() {
	s.Helper()
	s.l.must(controller.stop())
	s.shared = lease.NewShared(newResourceLease(s.T, cluster.Config), leases.ResourceTerm, slog.New(slog.NewTextHandler(s.log, nil)))
	looks := map[string]int{"web": s.looks("web"), "api": s.looks("api")}
	var err error
	controller, err = startWith(s.shared)
	s.l.must(err)
	s.Cleanup(func() { // restore the shared controller
		s.l.must(controller.stop())
		controller, err = start()
		s.l.must(err)
	})
	s.until(func() string {
		for name, before := range looks {
			if s.looks(name) == before {
				return "no first look at " + name
			}
		}
		return ""
	})
	s.bothSay(v1alpha1.ReasonLevel, "level with 1 node")
}

func (s *rivalry) bothSay(reason, part string) {
	s.Helper()
	s.comesToSay("web", reason, part)
	s.comesToSay("api", reason, part)
}

func (s *rivalry) theOtherTakesIt() {
	s.Helper()
	s.until(func() string {
		if err := s.l.upstreamTakes(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// changesWait checks that a change is kept and reported once.
func (s *rivalry) changesWait() {
	s.Helper()
	said, calls, refused := s.events("Service", "web"), s.calls(), s.shared.Refusals()
	s.changeSlice("a", s.on(1), s.on(2))
	s.bothSay(v1alpha1.ReasonUpdating, `a change waits: the lease kube-system/`+lockerName+` is held by "`+upstream+`"`)
	version := get[v1alpha1.BackendPool](s.scene, s.ns, "web").ResourceVersion
	s.until(func() string {
		if n := s.shared.Refusals() - refused; n < 4 {
			return fmt.Sprintf("refused %d times", n)
		}
		return ""
	})
	if n := s.calls(); n != calls {
		s.Errorf("%d calls to Azure without the lease", n-calls)
	}
	if got := controller.lanes.Backlog().Operations; got < 2 { // pools of other tests may wait, too
		s.Errorf("%d operations wait, want both", got)
	}
	if now := get[v1alpha1.BackendPool](s.scene, s.ns, "web").ResourceVersion; now != version {
		s.Errorf("said more than once: %s", s.says("web"))
	}
	if n := s.log.count("no resource lease"); n != 1 {
		s.Errorf("%d log lines, want one", n)
	}
	if got := s.events("Service", "web"); fmt.Sprint(got) != fmt.Sprint(said) {
		s.Errorf("events: %v, before %v", got, said)
	}
}

// goesOn checks that pending changes are made and cloud-provider-azure's cache is invalidated.
func (s *rivalry) goesOn() {
	s.Helper()
	s.bothPools(s.ip(1), s.ip(2))
	if n := s.log.count("ours again"); n != 1 {
		s.Errorf("%d log lines for the end", n)
	}
	if got := s.l.get().Annotations[previousNote]; got != ours {
		s.Errorf("the previous holder is %q: the cloud provider would not read anew what we changed", got)
	}
}

func (s *rivalry) keepsTheOtherAwayWhileItWrites() {
	s.Helper()
	var meanwhile error
	var only sync.Once
	duringPut.Store(new(func() { only.Do(func() { meanwhile = s.l.upstreamTakes() }) }))
	defer duringPut.Store(nil)
	s.changeSlice("a", s.on(2))
	s.bothPools(s.ip(2))
	if meanwhile == nil || !strings.Contains(meanwhile.Error(), ours) {
		s.Errorf("during our write the other got %v, want that we hold it", meanwhile)
	}
}

// Without the setting, the Lease is never requested.
func TestWithoutTheSettingNothingIsAsked(t *testing.T) {
	l := newLocker(t)
	s := web(t)
	s.hasSlice("a", "web", s.on(1))
	s.holds("web", s.ip(1))
	if _, err := l.api.Get(t.Context(), lockerName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Lease exists: %v", err)
	}
}
