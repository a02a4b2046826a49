// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"weir.dev/weir/internal/k8s"
)

// withShutdown sets the shutdown timeout of the program.
func withShutdown(s *stage) func(*ctrl.Options) {
	return func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "weir-controller", s.ns
		o.LeaderElectionReleaseOnCancel = true
		o.GracefulShutdownTimeout = new(20 * time.Second)
	}
}

// An attempt that completes during shutdown is reported, although the manager first stops what
// needs no leader.
func TestLastAttemptIsReported(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	weir := s.runController(k8s.DefaultQueueBackoff(), withShutdown(s))
	s.waitInSync(1)
	s.checkRecorded()
	s.beforeNextReport(func() {
		weir.stop()
		s.waitFault(2 * time.Second)
	})
	s.moveEndpoints(2)
	<-weir.ended
	if weir.err != nil {
		t.Errorf("it ended with %v", weir.err)
	}
	s.checkRecorded()
}

// A silent API server does not delay shutdown: events get 5 s, and the release of the leader lease
// 5 s or 10 s. The grace period of 20 s is not exhausted.
func TestASilentAPIServerDoesNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	weir := s.runController(k8s.DefaultQueueBackoff(), withShutdown(s))
	s.waitInSync(1)
	s.checkRecorded()
	silent := make(chan struct{})
	s.beforeNextReport(func() { // followed by an event and a status
		s.proxy.BlackHole()
		close(silent)
	})
	s.moveEndpoints(2)
	<-silent
	s.waitFault(time.Second)
	began := time.Now()
	weir.stop()
	<-weir.ended
	elapsed := time.Since(began)
	t.Logf("the stop took %s", elapsed.Round(10*time.Millisecond))
	if weir.err != nil || elapsed > 19*time.Second {
		t.Errorf("the stop took %s, and ended with %v", elapsed, weir.err)
	}
}
