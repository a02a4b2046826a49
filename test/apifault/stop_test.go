// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"weir.dev/weir/internal/kube/workqueue"
)

// gracefully sets the shutdown timeout of the program.
func gracefully(s *stage) func(*ctrl.Options) {
	return func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "weir-controller", s.ns
		o.LeaderElectionReleaseOnCancel = true
		o.GracefulShutdownTimeout = new(20 * time.Second)
	}
}

// An attempt that completes during shutdown is reported, although the manager first stops what
// needs no leader.
func TestTheLastAttemptIsToldOf(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	weir := s.starts(workqueue.DefaultBackoff(), gracefully(s))
	s.level(1)
	s.keptItsWord()
	s.beforeNextReport(func() {
		weir.stop()
		s.lasts(2 * time.Second)
	})
	s.moves(2)
	<-weir.ended
	if weir.err != nil {
		t.Errorf("it ended with %v", weir.err)
	}
	s.keptItsWord()
}

// A silent API server does not delay shutdown: events get 5 s, and the release of the leader lease
// 5 s or 10 s. The grace period of 20 s is not exhausted.
func TestASilentAPIServerDoesNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	weir := s.starts(workqueue.DefaultBackoff(), gracefully(s))
	s.level(1)
	s.keptItsWord()
	silent := make(chan struct{})
	s.beforeNextReport(func() { // followed by an event and a status
		s.proxy.Swallow()
		close(silent)
	})
	s.moves(2)
	<-silent
	s.lasts(time.Second)
	began := time.Now()
	weir.stop()
	<-weir.ended
	took := time.Since(began)
	t.Logf("the stop took %s", took.Round(10*time.Millisecond))
	if weir.err != nil || took > 19*time.Second {
		t.Errorf("the stop took %s, and ended with %v", took, weir.err)
	}
}
