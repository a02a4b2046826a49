// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/test/controlplane"
)

// releaseTimeout is the timeout of a release of the leader lease: RenewDeadline, 10 s by default. A machine that
// stops for a shorter time does not end the leadership.
const releaseTimeout = 30 * time.Second

// asLeader elects the controller. Its shutdown timeout does not end a shutdown on a busy machine.
func asLeader(s *stage) func(*ctrl.Options) {
	return func(o *ctrl.Options) {
		o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "weir-controller", s.ns
		o.LeaderElectionReleaseOnCancel = true
		o.LeaseDuration, o.RenewDeadline = new(2*releaseTimeout), new(releaseTimeout)
		o.GracefulShutdownTimeout = new(5 * time.Minute)
	}
}

// An attempt that completes during shutdown is reported, although the manager first stops what
// needs no leader.
func TestLastAttemptIsReported(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	weir := s.runController(k8s.DefaultQueueBackoff(), asLeader(s))
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
// 5 s or RenewDeadline. With the default of 10 s, the program's grace period of 20 s is not exhausted.
func TestASilentAPIServerDoesNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	weir := s.runController(k8s.DefaultQueueBackoff(), asLeader(s))
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
	weir.stop()
	elapsed := controlplane.Eventually(t, "the stop", 3*time.Minute, func() error {
		select {
		case <-weir.ended:
			return nil
		default:
			return errors.New("it runs")
		}
	})
	t.Logf("the stop took %s", elapsed)
	if weir.err != nil || elapsed > releaseTimeout+9*time.Second {
		t.Errorf("the stop took %s, and ended with %v", elapsed, weir.err)
	}
}
