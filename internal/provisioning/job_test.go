// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

type jobStage struct {
	*testEnv

	cluster *jobCluster
	key     types.NamespacedName
}

// newJobStage must be called in a synctest bubble.
func newJobStage(t *testing.T, job v1alpha1.JobStep, runs ...podRun) *jobStage {
	if job.Image == "" {
		job.Image = "example.com/fetch"
	}
	retries := int32(3)
	c := &jobCluster{runs: runs}
	objects := newRemote(0, v1alpha1.ProvisionStep{Name: "fetch", Job: &job}, v1alpha1.RetryPolicy{Retries: &retries, InitialInterval: "1m", Factor: "1", MaxInterval: "1m"}, true)
	key, _ := newProvision("shop", "edge-0")
	return &jobStage{testEnv: newTestEnv(t, c, objects...), cluster: c, key: key}
}

func (s *jobStage) reconcileOnce() { s.queueProvision(s.key) }

func (s *jobStage) setRequest(annotation string) {
	s.t.Helper()
	p := s.getProvision(s.key)
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[annotation] = time.Now().Format(time.RFC3339Nano)
	if err := s.here.Update(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
	s.reconcileOnce()
}

func (s *jobStage) updateCluster(change func(*jobCluster)) {
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	change(s.cluster)
}

func (s *jobStage) restartProcess(first, then func()) {
	ctx, stop := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() { s.room.Run(ctx); close(done) }()
	synctest.Wait()
	first()
	stop()
	<-done
	s.mu.Lock()
	for _, timer := range s.timers {
		timer.Stop()
	}
	s.mu.Unlock()
	room := New(s.room.Config)
	room.dial, room.attempts.requeue, room.probes.requeue = s.dial, s.queueProvision, s.queueProvision
	s.room = room
	s.runWhile(func() { time.Sleep(3 * time.Minute); then() })
}

func (s *jobStage) expect(state string, attempts int32, made int) {
	s.t.Helper()
	status := s.getProvision(s.key).Status
	s.cluster.mu.Lock()
	defer s.cluster.mu.Unlock()
	if status.State != state || status.Attempts != attempts || s.cluster.made != made {
		s.t.Errorf("%s after %d attempts and %d Jobs, want %s after %d and %d; %+v\n%s", status.State, status.Attempts, s.cluster.made, state, attempts, made, status.LastAttempt, s.allLogs())
	}
	if s.cluster.maxAtWork > 1 {
		s.t.Errorf("%d pods were at work at a time", s.cluster.maxAtWork)
	}
}

func (s *jobStage) allLogs() string {
	s.t.Helper()
	var list corev1.ConfigMapList
	if err := s.here.List(s.t.Context(), &list, client.InNamespace("shop")); err != nil {
		s.t.Fatal(err)
	}
	text := ""
	for _, c := range list.Items {
		text += c.Data["log"]
	}
	return text
}

func TestJobs(t *testing.T) {
	for _, tt := range []struct {
		name     string
		job      v1alpha1.JobStep
		runs     []podRun
		state    string
		attempts int32
		made     int
		reason   string
	}{
		{name: "it succeeds", runs: []podRun{{takes: 5 * time.Minute}}, state: "Succeeded", attempts: 1, made: 1},
		{name: "it fails, and then succeeds", runs: []podRun{{takes: time.Minute, code: 3}, {takes: time.Minute, code: 3}, {takes: time.Minute}}, state: "Succeeded", attempts: 3, made: 3},
		{
			name: "it fails each time", runs: []podRun{{takes: time.Minute, code: 3, says: "fetching\nno route to host\n"}},
			state: "Failed", attempts: 4, made: 4, reason: "has failed: exit code 3: no route to host",
		},
		{
			name: "no other attempt can mend it", job: v1alpha1.JobStep{TerminalExitCodes: []int32{3, 4}}, runs: []podRun{{takes: time.Minute, code: 4}},
			state: "Failed", attempts: 1, made: 1, reason: "exit code 4",
		},
		{name: "it is evicted", runs: []podRun{{takes: time.Minute, evicted: true}, {takes: time.Minute, evicted: true}, {takes: time.Minute}}, state: "Succeeded", attempts: 1, made: 1},
		{
			name: "it ends by a terminal exit code because it is evicted", job: v1alpha1.JobStep{TerminalExitCodes: []int32{143}},
			runs: []podRun{{takes: time.Minute, evicted: true, code: 143}, {takes: time.Minute}}, state: "Succeeded", attempts: 1, made: 1,
		},
		{name: "it hangs once", runs: []podRun{{says: "waiting for a lock\n"}, {takes: time.Minute}}, state: "Succeeded", attempts: 2, made: 2},
		{name: "it always hangs", runs: []podRun{{}}, state: "Failed", attempts: 4, made: 4, reason: "was not done in the attempt's time"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newJobStage(t, tt.job, tt.runs...)
				s.runWhile(func() { s.reconcileOnce(); time.Sleep(3 * time.Hour) })
				s.expect(tt.state, tt.attempts, tt.made)
				if last := s.getProvision(s.key).Status.LastAttempt; !strings.Contains(last.Message, tt.reason) {
					t.Errorf("the last attempt: %s", last.Message)
				}
				for _, run := range tt.runs {
					if run.says != "" && !strings.Contains(s.allLogs(), " | "+run.says[:strings.Index(run.says, "\n")]) { //nolint:gocritic // it is there
						t.Errorf("the log has not what it said:\n%s", s.allLogs())
					}
				}
			})
		})
	}
}

// The attempt fails, and the next one adopts the Job.
func TestAJobOutlivesItsLink(t *testing.T) {
	for name, takes := range map[string]time.Duration{"it still runs": 40 * time.Minute, "it was done meanwhile": 6 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newJobStage(t, v1alpha1.JobStep{}, podRun{takes: takes})
				s.runWhile(func() {
					s.reconcileOnce()
					time.Sleep(5 * time.Minute)
					s.updateCluster(func(c *jobCluster) { c.away = true })
					time.Sleep(20 * time.Minute) // the fourth attempt may still be running
					s.updateCluster(func(c *jobCluster) { c.away = false })
					s.setRequest(v1alpha1.RetryNowAnnotation)
					time.Sleep(time.Hour)
				})
				status := s.getProvision(s.key).Status
				if s.expect("Succeeded", status.Attempts, 1); status.Attempts < 2 || s.cluster.deleted > 0 {
					t.Errorf("%d attempts, %d Jobs deleted", status.Attempts, s.cluster.deleted)
				}
			})
		})
	}
}

// The next process adopts the Job of a killed one, in whatever state.
func TestAJobOutlivesItsProcess(t *testing.T) {
	for _, tt := range []struct {
		name     string
		runs     []podRun
		attempts int32
		made     int
	}{
		{"it still runs", []podRun{{takes: 20 * time.Minute}}, 1, 1},
		{"it is done", []podRun{{takes: 6 * time.Minute}}, 1, 1},
		{"it has failed", []podRun{{takes: 6 * time.Minute, code: 1}, {takes: time.Minute}}, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newJobStage(t, v1alpha1.JobStep{}, tt.runs...)
				s.restartProcess(func() { s.reconcileOnce(); time.Sleep(5 * time.Minute) }, func() { s.reconcileOnce(); time.Sleep(time.Hour) })
				s.expect("Succeeded", tt.attempts, tt.made)
				if p := s.getProvision(s.key); p.Status.AttemptNumber != int64(tt.attempts) {
					t.Errorf("%d attempts were begun", p.Status.AttemptNumber)
				}
			})
		})
	}
}

// An attempt that timed out while its process was down has failed, even if its Job completed.
func TestAJobOfAnAttemptThatLapsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{takes: 10 * time.Minute})
		s.restartProcess(func() { s.reconcileOnce(); time.Sleep(5 * time.Minute) }, func() { time.Sleep(time.Hour); s.reconcileOnce(); time.Sleep(time.Hour) })
		s.expect("Succeeded", 2, 1)
	})
}

// User requests while a Job runs, and after it.
func TestJobRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{takes: 10 * time.Minute})
		s.runWhile(func() {
			s.reconcileOnce()
			time.Sleep(time.Minute)
			s.setRequest(v1alpha1.CancelAnnotation)
			time.Sleep(time.Hour)
			s.expect("Succeeded", 1, 1)
			s.setRequest(v1alpha1.RetryNowAnnotation)
			time.Sleep(time.Hour)
			s.expect("Succeeded", 1, 1)
			s.setRequest(v1alpha1.ResetAnnotation)
			time.Sleep(time.Hour)
			s.expect("Succeeded", 1, 2) // a reset runs it again, although the Job exists
			p := s.getProvision(s.key)
			p.Spec.Steps[0].Job.Args = []string{"--all"}
			if err := s.here.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			s.reconcileOnce()
			time.Sleep(time.Hour)
			s.expect("Succeeded", 1, 3) // as does a changed input
		})
	})
}

// A deleted Job is not recreated within the attempt.
func TestDeletedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{}, podRun{takes: time.Minute})
		s.runWhile(func() {
			s.reconcileOnce()
			time.Sleep(5 * time.Minute)
			s.updateCluster(func(c *jobCluster) { c.deleteJob() })
			time.Sleep(time.Minute)
			if last := s.getProvision(s.key).Status.LastAttempt; last == nil || !strings.Contains(last.Message, "was deleted by another client") {
				t.Errorf("the attempt: %+v", last)
			}
			time.Sleep(time.Hour)
		})
		s.expect("Succeeded", 2, 2)
	})
}

// A hanging Job is deleted before the next attempt.
func TestAJobThatHangsIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{says: "waiting for a lock\n"}, podRun{takes: time.Minute})
		s.runWhile(func() {
			s.reconcileOnce()
			time.Sleep(29*time.Minute + 40*time.Second)
			s.setRequest(v1alpha1.RetryNowAnnotation)
			time.Sleep(5 * time.Minute)
			s.expect("Succeeded", 2, 2)
		})
		if log := s.allLogs(); !strings.Contains(log, "| waiting for a lock") || !strings.Contains(log, "deleted Job default/weir-fetch-") {
			t.Errorf("the log:\n%s", log)
		}
	})
}

// A Job created by another process at the same time is adopted.
func TestAJobThatAnotherProcessMakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{takes: time.Minute})
		s.cluster.quicker = true
		s.runWhile(func() { s.reconcileOnce(); time.Sleep(time.Hour) })
		s.expect("Succeeded", 1, 1)
	})
}

// While waiting, an attempt reads only the Job, at growing intervals, and the pod's log five times
// in twenty minutes.
func TestRequestsOfAWaitingJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{takes: 20 * time.Minute})
		s.runWhile(func() { s.reconcileOnce(); time.Sleep(time.Hour) })
		s.expect("Succeeded", 1, 1)
		jobs, pods := 0, 0
		for _, requested := range s.cluster.asked {
			switch {
			case strings.HasPrefix(requested, "GET") && strings.Contains(requested, "/jobs/"):
				jobs++
			case strings.Contains(requested, "/pods"):
				pods++
			}
		}
		if others := len(s.cluster.asked) - jobs - pods; jobs > 90 || pods > 2*6 || others > 6 {
			t.Errorf("%d requests for the Job, %d for its pod, %d others: %v", jobs, pods, others, slices.Compact(s.cluster.asked))
		}
	})
}
