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
	"weir.dev/weir/internal/kube"
	"weir.dev/weir/internal/lease"
)

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
