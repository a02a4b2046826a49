// SPDX-License-Identifier: Apache-2.0

package apifault_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
)

// The partitions last as long as specified, in real time, with default client and lease timeouts.
// Backoffs that grow for two minutes exceed the time limit for recovery: the informers' is one
// minute, and the work queue, which tried after 41 and 82 s, would next try after 164 s.
const (
	partitionTime = 2 * time.Minute
	catchUpTime   = 25 * time.Second
	// The lease duration, and the time that a candidate observes an unrenewed lease, plus retries.
	leaseDuration = 15 * time.Second
	leaseTakeover = leaseDuration + 3*time.Second
)

var (
	refusedPort = (*apifault.Proxy).RefuseConnections
	// silentNetwork ends idle connections after 45 s.
	silentNetwork = (*apifault.Proxy).BlackHole
)

// The partition begins when the controller records its next write: nothing is written without a
// record.
func TestAPartitionThatBeginsWithARecord(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*apifault.Proxy){"refused": refusedPort, "silent": silentNetwork} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.runController(k8s.DefaultQueueBackoff())
			s.waitInSync(1)
			s.proxy.Forget()
			record := apifault.Request{Verb: "patch", Resource: "backendpools/status"}
			whole := s.proxy.AddRule(apifault.Rule{Request: record, Fault: apifault.Fault{Connection: apifault.ResetConn}})
			s.moveEndpoints(1, 2)
			controlplane.WaitUntil(t, func() string {
				if sent, _ := s.proxy.CountCalls(record); sent == 0 {
					return "nothing was recorded"
				}
				return ""
			})
			began := time.Now()
			cut(s.proxy)
			whole()
			s.changeCluster(partitionTime)
			if written := s.putsSince(began); len(written) != 0 {
				t.Errorf("%d writes to Azure, and none could be recorded: %v", len(written), written)
			}
			s.endPartition(catchUpTime)
		})
	}
}

// The partition begins while a recorded write waits for its second try, one interval of 30 s after
// the first. A controller without election makes exactly this write with its current state; a
// leader has lost its lease by then.
func TestAPartitionThatBeginsBetweenTwoTries(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*apifault.Proxy){"refused": refusedPort, "silent": silentNetwork} {
		t.Run(name+", alone", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.interval = 30 * time.Second
			s.runController(k8s.DefaultQueueBackoff())
			began := s.partitionAfterConflict(cut)
			s.changeCluster(partitionTime)
			if got := s.putsSince(began); len(got) != 1 || !slices.Equal(got[0].holds, s.holding(1, 2)) {
				t.Errorf("the writes behind the partition are %v, want %v once", got, s.holding(1, 2))
			}
			s.endPartition(catchUpTime)
		})
		t.Run(name+", leader", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.interval = 30 * time.Second
			elected := func(o *ctrl.Options) {
				o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "weir-controller", s.ns
				o.LeaderElectionReleaseOnCancel = true
			}
			first := s.runController(k8s.DefaultQueueBackoff(), elected)
			began := s.partitionAfterConflict(cut)
			runs := s.restartsAfter(first, elected)
			s.changeCluster(partitionTime)
			if got := s.putsSince(began.Add(leaseDuration)); len(got) != 0 {
				t.Errorf("%v were written after the lease had ended", got)
			}
			s.endPartition(leaseTakeover + catchUpTime)
			<-runs
			if first.err == nil {
				t.Error("the first one ended without an error, and nobody would start it again")
			}
		})
	}
}

// partitionAfterConflict begins a partition after a write that adds the second node got a conflict. Until the
// partition ends it would get another one, which is then its final result.
func (s *stage) partitionAfterConflict(cut func(*apifault.Proxy)) (began time.Time) {
	s.Helper()
	s.waitInSync(1)
	s.conflictNextWrites(2)
	s.moveEndpoints(1, 2)
	controlplane.WaitUntil(s.T, func() string {
		c := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSynced)
		if c.Reason != v1alpha1.ReasonRetrying {
			return "the write met no conflict: " + c.Reason
		}
		return ""
	})
	s.waitEvents()
	cut(s.proxy)
	return time.Now()
}

// restartsAfter restarts a controller that exited, like the kubelet, and retries a second after a
// failure. It returns a channel that is closed once one runs.
func (s *stage) restartsAfter(first *runningController, with ...func(*ctrl.Options)) (runs <-chan struct{}) {
	began, started := time.Now(), make(chan struct{})
	go func() {
		<-first.ended
		for err := first.err; s.Context().Err() == nil; s.waitFault(time.Second) { // until the test is over
			s.Logf("none runs %s after the cut: %v", time.Since(began).Round(10*time.Millisecond), err)
			if _, err = s.launch(k8s.DefaultQueueBackoff(), with...); err == nil {
				close(started)
				return
			}
		}
	}()
	return started
}

// changeCluster moves endpoints every few seconds, and adds and deletes nodes, through another
// connection.
func (s *stage) changeCluster(d time.Duration) {
	s.Helper()
	end := time.Now().Add(d)
	s.moveEndpoints(3, 4)
	if err := api.Delete(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node(3)}}); err != nil {
		s.Fatal(err)
	}
	for i := 0; time.Until(end) > 7*time.Second; i++ {
		s.waitFault(7 * time.Second)
		s.moveEndpoints(1+i%nodes, 1+(i+2)%nodes)
	}
	s.waitFault(time.Until(end))
	s.moveEndpoints(5, 6)
}

// isWithin reports whether a is a subset of b.
func isWithin(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// endPartition ends a partition. Writes since the start may contain the state desired before or after it,
// and previous members, which leave once the watches are in sync. After its end they may also
// contain intermediate states, which a silent watch delivers one by one.
func (s *stage) endPartition(within time.Duration) {
	s.Helper()
	s.conflictNextWrites(0)
	healed := time.Now()
	if err := s.proxy.Restore(); err != nil {
		s.Fatal(err)
	}
	elapsed := s.waitInSync(5, 6)
	s.Logf("in sync %s after it", elapsed)
	if elapsed > within {
		s.Errorf("it took %s to catch up, longer than %s", elapsed, within)
	}
	s.checkRecorded()
	var before []string
	for _, p := range s.putsSince(time.Time{}) {
		right := [][]string{s.holding(1), s.holding(1, 2), s.holding(5, 6)}
		if p.at.After(healed) {
			right = append(right, s.wanted...)
		}
		if !slices.ContainsFunc(right, func(r []string) bool { return isWithin(r, p.holds) && isWithin(p.holds, slices.Concat(r, before)) }) {
			s.Errorf("%v was written after %v, which the cluster did not want then", p.holds, before)
		}
		before = p.holds
	}
	s.moveEndpoints(2)
	if elapsed := s.waitInSync(2); elapsed > catchUpTime+s.interval {
		s.Errorf("the next change took %s", elapsed)
	}
}

// putsSince returns the Azure writes since a time.
func (s *stage) putsSince(t time.Time) (since []put) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.puts {
		if p.at.After(t) {
			since = append(since, p)
		}
	}
	return since
}

func (p put) String() string { return fmt.Sprintf("%s %v", p.at.Format("15:04:05.0"), p.holds) }

// The last status of a pool could not be written, and no change after the partition triggers it
// again.
func TestAStatusThatWasKeptIsWritten(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.runController(k8s.DefaultQueueBackoff())
	s.waitInSync(1)

	// Azure accepts the write, and the API server becomes unavailable before the status.
	s.afterNextWrite(s.proxy.RefuseConnections)
	s.moveEndpoints(1, 2)
	controlplane.WaitUntil(t, func() string {
		if len(s.pool()) == 3 {
			return ""
		}
		return "not written yet"
	})
	s.waitFault(partitionTime)
	if got := len(s.status().WrittenAddresses); got != 2 {
		t.Errorf("%d addresses are recorded", got)
	}
	if err := s.proxy.Restore(); err != nil {
		t.Fatal(err)
	}
	elapsed := s.waitInSync(1, 2)
	t.Logf("said so %s after it", elapsed)
	if elapsed > catchUpTime {
		t.Errorf("it took %s to say so, longer than %s", elapsed, catchUpTime)
	}
	s.checkRecorded()
}
