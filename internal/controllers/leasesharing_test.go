// SPDX-License-Identifier: Apache-2.0

package controllers_test

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
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/leader"
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
	s := newLeaseSharing(t)
	s.waitForPools(s.ip(1))
	s.startSharing()
	s.waitForOther()
	s.checkPending()
	s.l.upstreamRelease()
	s.checkResumed()
	s.checkOtherWaits()
	s.waitForOther() // all passes are over
}

// leaseSharing is a Service with two pools and a controller that shares the Lease with
// cloud-provider-azure.
type leaseSharing struct {
	*testEnv

	l      *leaseEnv
	shared *leader.SharedLease
	log    *safeBuffer
}

func newLeaseSharing(t *testing.T) *leaseSharing {
	t.Helper()
	s := &leaseSharing{l: newLeaseEnv(t), testEnv: newTestEnv(t, "web"), log: &safeBuffer{}}
	for n := 1; n <= 3; n++ {
		s.createNode(n)
	}
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createBackendPool("web", "web")
	s.azurePool("api")
	s.createSlice("a", "web", s.endpointOn(1))
	s.createBackendPool("api", "web")
	return s
}

func (s *leaseSharing) waitForPools(ips ...string) {
	s.Helper()
	s.waitForMembers("web", ips...)
	s.waitForMembers("api", ips...)
}

// startSharing replaces the shared controller with one that uses the Lease.
func (s *leaseSharing) startSharing() {
	s.Helper()
	s.l.requireNoError(controller.stop())
	s.shared = leader.NewSharedLease(newResourceLease(s.T, cluster.Config), k8s.ResourceTerm, slog.New(slog.NewTextHandler(s.log, nil)))
	looks := map[string]int{"web": s.countReads("web"), "api": s.countReads("api")}
	var err error
	controller, err = startWith(s.shared)
	s.l.requireNoError(err)
	s.Cleanup(func() { // restore the shared controller
		s.l.requireNoError(controller.stop())
		controller, err = start()
		s.l.requireNoError(err)
	})
	s.waitUntil(func() string {
		for name, before := range looks {
			if s.countReads(name) == before {
				return "no first look at " + name
			}
		}
		return ""
	})
	s.waitForReasons(v1alpha1.ReasonInSync, "in sync with 1 node")
}

func (s *leaseSharing) waitForReasons(reason, part string) {
	s.Helper()
	s.waitForReason("web", reason, part)
	s.waitForReason("api", reason, part)
}

func (s *leaseSharing) waitForOther() {
	s.Helper()
	s.waitUntil(func() string {
		if err := s.l.upstreamAcquire(); err != nil {
			return err.Error()
		}
		return ""
	})
}

// checkPending checks that a change is kept and reported once.
func (s *leaseSharing) checkPending() {
	s.Helper()
	output, calls, refused := s.countEvents("Service", "web"), s.countCalls(), s.shared.FailureCount()
	s.changeSlice("a", s.endpointOn(1), s.endpointOn(2))
	s.waitForReasons(v1alpha1.ReasonUpdating, `a change waits: the lease kube-system/`+lockerName+` is held by "`+upstream+`"`)
	version := get[v1alpha1.BackendPool](s.testEnv, s.ns, "web").ResourceVersion
	s.waitUntil(func() string {
		if n := s.shared.FailureCount() - refused; n < 4 {
			return fmt.Sprintf("refused %d times", n)
		}
		return ""
	})
	if n := s.countCalls(); n != calls {
		s.Errorf("%d calls to Azure without the lease", n-calls)
	}
	if got := controller.lanes.Backlog().Operations; got < 2 { // pools of other tests may wait, too
		s.Errorf("%d operations wait, want both", got)
	}
	if current := get[v1alpha1.BackendPool](s.testEnv, s.ns, "web").ResourceVersion; current != version {
		s.Errorf("said more than once: %s", s.syncedMessage("web"))
	}
	if n := s.log.count("no resource lease"); n != 1 {
		s.Errorf("%d log lines, want one", n)
	}
	if got := s.countEvents("Service", "web"); fmt.Sprint(got) != fmt.Sprint(output) {
		s.Errorf("events: %v, before %v", got, output)
	}
}

// checkResumed checks that pending changes are made and cloud-provider-azure's cache is invalidated.
func (s *leaseSharing) checkResumed() {
	s.Helper()
	s.waitForPools(s.ip(1), s.ip(2))
	if n := s.log.count("ours again"); n != 1 {
		s.Errorf("%d log lines for the end", n)
	}
	if got := s.l.get().Annotations[previousNote]; got != managedLoadBalancers {
		s.Errorf("the previous holder is %q: the cloud provider would not read anew what we changed", got)
	}
}

func (s *leaseSharing) checkOtherWaits() {
	s.Helper()
	var meanwhile error
	var only sync.Once
	duringPut.Store(new(func() { only.Do(func() { meanwhile = s.l.upstreamAcquire() }) }))
	defer duringPut.Store(nil)
	s.changeSlice("a", s.endpointOn(2))
	s.waitForPools(s.ip(2))
	if meanwhile == nil || !strings.Contains(meanwhile.Error(), managedLoadBalancers) {
		s.Errorf("during our write the other got %v, want that we hold it", meanwhile)
	}
}

// Without the setting, the Lease is never requested.
func TestWithoutTheSettingNothingIsAsked(t *testing.T) {
	l := newLeaseEnv(t)
	s := newBoundEnv(t)
	s.createSlice("a", "web", s.endpointOn(1))
	s.waitForMembers("web", s.ip(1))
	if _, err := l.api.Get(t.Context(), lockerName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Lease exists: %v", err)
	}
}
