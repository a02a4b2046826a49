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
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/test/apifault"
	"weir.dev/weir/test/controlplane"
)

// The partitions last as long as specified, in real time, with default client and lease timeouts.
// Backoffs that grow for two minutes exceed the time limit for recovery: the informers' is one
// minute, and the work queue, which tried after 41 and 82 s, would next try after 164 s.
const (
	partition = 2 * time.Minute
	catchUp   = 10 * time.Second
	// leaseLasts and leaseIsTaken are the lease duration, and the time that a candidate observes an
	// unrenewed lease, plus retries.
	leaseLasts   = 15 * time.Second
	leaseIsTaken = leaseLasts + 3*time.Second
)

var (
	refused = (*apifault.Proxy).Refuse
	// silent ends idle connections after 45 s.
	silent = (*apifault.Proxy).Swallow
)

// The partition begins when the controller records its next write: nothing is written without a
// record.
func TestAPartitionThatBeginsWithARecord(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*apifault.Proxy){"refused": refused, "silent": silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.starts(workqueue.DefaultBackoff())
			s.level(1)
			s.proxy.Forget()
			record := apifault.Request{Verb: "patch", Resource: "backendpools/status"}
			whole := s.proxy.On(apifault.Rule{Request: record, Fault: apifault.Fault{Conn: apifault.Reset}})
			s.moves(1, 2)
			controlplane.Until(t, func() string {
				if sent, _ := s.proxy.Count(record); sent == 0 {
					return "nothing was recorded"
				}
				return ""
			})
			began := time.Now()
			cut(s.proxy)
			whole()
			s.lifeGoesOn(partition)
			if written := s.putsSince(began); len(written) != 0 {
				t.Errorf("%d writes to Azure, and none could be recorded: %v", len(written), written)
			}
			s.heals(catchUp)
		})
	}
}

// The partition begins while a recorded write waits for its second try, one interval of 30 s after
// the first. A controller without election makes exactly this write with its current state; a
// leader has lost its lease by then.
func TestAPartitionThatBeginsBetweenTwoTries(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*apifault.Proxy){"refused": refused, "silent": silent} {
		t.Run(name+", alone", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.interval = 30 * time.Second
			s.starts(workqueue.DefaultBackoff())
			began := s.isCutOff(cut)
			s.lifeGoesOn(partition)
			if got := s.putsSince(began); len(got) != 1 || !slices.Equal(got[0].holds, s.holding(1, 2)) {
				t.Errorf("the writes behind the partition are %v, want %v once", got, s.holding(1, 2))
			}
			s.heals(catchUp)
		})
		t.Run(name+", leader", func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.interval = 30 * time.Second
			elected := func(o *ctrl.Options) {
				o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace = true, "weir-controller", s.ns
				o.LeaderElectionReleaseOnCancel = true
			}
			first := s.starts(workqueue.DefaultBackoff(), elected)
			began := s.isCutOff(cut)
			runs := s.restartsAfter(first, elected)
			s.lifeGoesOn(partition)
			if got := s.putsSince(began.Add(leaseLasts)); len(got) != 0 {
				t.Errorf("%v were written after the lease had ended", got)
			}
			s.heals(leaseIsTaken + catchUp)
			<-runs
			if first.err == nil {
				t.Error("the first one ended without an error, and nobody would start it again")
			}
		})
	}
}

// isCutOff begins a partition after a write that adds the second node got a conflict. Until the
// partition ends it would get another one, which is then its final result.
func (s *stage) isCutOff(cut func(*apifault.Proxy)) (began time.Time) {
	s.Helper()
	s.level(1)
	s.azureIsBusy(2)
	s.moves(1, 2)
	controlplane.Until(s.T, func() string {
		c := meta.FindStatusCondition(s.status().Conditions, v1alpha1.ConditionSynced)
		if c.Reason != v1alpha1.ReasonRetrying {
			return "the write met no conflict: " + c.Reason
		}
		return ""
	})
	s.wasTold()
	cut(s.proxy)
	return time.Now()
}

// restartsAfter restarts a controller that exited, like the kubelet, and retries a second after a
// failure. It returns a channel that is closed once one runs.
func (s *stage) restartsAfter(first *running, with ...func(*ctrl.Options)) (runs <-chan struct{}) {
	began, started := time.Now(), make(chan struct{})
	go func() {
		<-first.ended
		for err := first.err; s.Context().Err() == nil; s.lasts(time.Second) { // until the test is over
			s.Logf("none runs %s after the cut: %v", time.Since(began).Round(10*time.Millisecond), err)
			if _, err = s.launch(workqueue.DefaultBackoff(), with...); err == nil {
				close(started)
				return
			}
		}
	}()
	return started
}

// lifeGoesOn moves endpoints every few seconds, and adds and deletes nodes, through another
// connection.
func (s *stage) lifeGoesOn(d time.Duration) {
	s.Helper()
	end := time.Now().Add(d)
	s.moves(3, 4)
	if err := api.Delete(s.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.node(3)}}); err != nil {
		s.Fatal(err)
	}
	for i := 0; time.Until(end) > 7*time.Second; i++ {
		s.lasts(7 * time.Second)
		s.moves(1+i%nodes, 1+(i+2)%nodes)
	}
	s.lasts(time.Until(end))
	s.moves(5, 6)
}

// isWithin reports whether a is a subset of b.
func isWithin(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

// heals ends a partition. Writes since the start may contain the state desired before or after it,
// and previous members, which leave once the watches are in sync. After its end they may also
// contain intermediate states, which a silent watch delivers one by one.
func (s *stage) heals(within time.Duration) {
	s.Helper()
	s.azureIsBusy(0)
	healed := time.Now()
	if err := s.proxy.Heal(); err != nil {
		s.Fatal(err)
	}
	took := s.level(5, 6)
	s.Logf("level %s after it", took.Round(10*time.Millisecond))
	if took > within {
		s.Errorf("it took %s to catch up, longer than %s", took, within)
	}
	s.keptItsWord()
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
	s.moves(2)
	if took := s.level(2); took > catchUp+s.interval {
		s.Errorf("the next change took %s", took)
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
	s.starts(workqueue.DefaultBackoff())
	s.level(1)

	// Azure accepts the write, and the API server becomes unavailable before the status.
	s.afterNextWrite(s.proxy.Refuse)
	s.moves(1, 2)
	controlplane.Until(t, func() string {
		if len(s.pool()) == 3 {
			return ""
		}
		return "not written yet"
	})
	s.lasts(partition)
	if got := len(s.status().WrittenAddresses); got != 2 {
		t.Errorf("%d addresses are recorded", got)
	}
	if err := s.proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	took := s.level(1, 2)
	t.Logf("said so %s after it", took.Round(10*time.Millisecond))
	if took > catchUp {
		t.Errorf("it took %s to say so, longer than %s", took, catchUp)
	}
	s.keptItsWord()
}
