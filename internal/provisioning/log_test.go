// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/api/v1alpha1"
)

// A container's output survives the loss of its node and of the provisioner process.
func TestALogOutlivesItsNode(t *testing.T) {
	long := strings.Repeat("word ", 3000) + "\n" // only lines that fit are kept
	for name, tt := range map[string]struct {
		first podRun
		want  string
	}{
		"the node is lost":           {podRun{takes: 12 * time.Minute, lost: true, says: "unpacked 7\n"}, "| unpacked 7"},
		"with a secret":              {podRun{takes: 12 * time.Minute, lost: true, says: "token s3cr3t-of-it\n"}, "| token [hidden]"},
		"it has said too much":       {podRun{takes: 12 * time.Minute, lost: true, says: long + "the end\n"}, "| the end"},
		"it was heard by another":    {podRun{takes: 12 * time.Minute, lost: true, says: "unpacked 7\n"}, "| unpacked 7"},
		"its attempt's time is over": {podRun{takes: 50 * time.Minute, says: "unpacked 7\n"}, "| unpacked 7"},
		"nobody answers any more":    {podRun{takes: 3 * time.Hour, says: "unpacked 7\n"}, "| unpacked 7"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				job := v1alpha1.JobStep{Env: []v1alpha1.JobEnv{{Name: "TOKEN", SecretKeyRef: &v1alpha1.SecretKey{Name: "token", Key: "token"}}}}
				s := newJobStage(t, job, tt.first, podRun{takes: time.Minute, says: "all is there\n"})
				s.updateCluster(func(c *jobCluster) { c.secret = map[string][]byte{"token": []byte("s3cr3t-of-it")} })
				within := func() {
					if text := s.allLogs(); !strings.Contains(text, tt.want) || !strings.Contains(text, "the last log lines of pod pod-1 at ") {
						t.Errorf("after ten minutes the log is\n%s", text)
					}
				}
				switch name {
				case "it was heard by another":
					s.restartProcess(func() { s.reconcileOnce(); time.Sleep(10 * time.Minute); within() }, func() { s.reconcileOnce(); time.Sleep(time.Hour) })
				default:
					s.runWhile(func() {
						s.reconcileOnce()
						time.Sleep(10 * time.Minute)
						within()
						s.updateCluster(func(c *jobCluster) { c.away = name == "nobody answers any more" })
						time.Sleep(2 * time.Hour)
					})
				}
				if text := s.allLogs(); !strings.Contains(text, tt.want) || !strings.Contains(text, "| all is there") && tt.first.lost {
					t.Errorf("at last it is\n%s", text)
				}
				if requested := slices.DeleteFunc(slices.Clone(s.cluster.asked), func(a string) bool { return !strings.HasSuffix(a, "/log") }); len(requested) > 20 {
					t.Errorf("the log was asked for %d times", len(requested))
				}
			})
		})
	}
}

// An unanswered log request neither delays nor fails a Job for long.
func TestALogThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{takes: 12 * time.Minute})
		s.cluster.silent = true
		s.runWhile(func() { s.reconcileOnce(); time.Sleep(15 * time.Minute); s.expect("Succeeded", 1, 1) })
		if log := s.allLogs(); !strings.Contains(log, "the log of pod pod-1 cannot be read") {
			t.Errorf("the log:\n%s", log)
		}
	})
}

// After a reset the log shows both the attempt's number and the total.
func TestALogAfterAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{takes: time.Minute})
		s.runWhile(func() {
			s.reconcileOnce()
			time.Sleep(10 * time.Minute)
			s.setRequest(v1alpha1.ResetAnnotation)
			time.Sleep(10 * time.Minute)
		})
		if log := s.allLogs(); !strings.Contains(log, "attempt 1 begins\n") || !strings.Contains(log, "attempt 1 begins, number 2 of all\n") {
			t.Errorf("the logs:\n%s", log)
		}
	})
}

// Of long lines the last ones are kept, each in full: a cut could split a secret.
func TestLongLinesOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want strings.Builder
		for n := range 100 {
			fmt.Fprintf(&want, "line %d %s\n", n, strings.Repeat("hunter22 ", 110))
		}
		want.WriteString("the end\n")
		s := newJobStage(t, v1alpha1.JobStep{Env: []v1alpha1.JobEnv{{Name: "TOKEN", SecretKeyRef: &v1alpha1.SecretKey{Name: "token", Key: "token"}}}}, podRun{takes: time.Minute, says: want.String()})
		s.cluster.secret = map[string][]byte{"token": []byte("hunter22")}
		s.runWhile(func() { s.reconcileOnce(); time.Sleep(time.Hour) })
		s.expect("Succeeded", 1, 1)
		log := s.allLogs()
		if strings.Contains(log, "hunt") {
			t.Errorf("a part of a secret is told:\n%s", log)
		}
		if !strings.Contains(log, "| line 0 ") || !strings.Contains(log, "| line 99 ") || !strings.Contains(log, "| the end\n") || strings.Contains(log, "| line 50 ") {
			t.Errorf("the log:\n%s", log)
		}
	})
}

// Where head and tail of a log overlap, no line is kept twice.
func TestLogsThatOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want strings.Builder
		for n := range 120 {
			fmt.Fprintf(&want, "line %d. %s\n", n, strings.Repeat("x", 100))
		}
		s := newJobStage(t, v1alpha1.JobStep{}, podRun{takes: time.Minute, says: want.String()})
		s.runWhile(func() { s.reconcileOnce(); time.Sleep(time.Hour) })
		s.expect("Succeeded", 1, 1)
		for n := range 120 {
			if got := strings.Count(s.allLogs(), fmt.Sprintf("| line %d. ", n)); got != 1 {
				t.Fatalf("line %d is there %d times:\n%s", n, got, s.allLogs())
			}
		}
	})
}

// A container's first and last output is kept, without contents of Secrets.
func TestLogsOfJobs(t *testing.T) {
	var message strings.Builder
	for n := range 2000 {
		fmt.Fprintf(&message, "line %d with hunter22 and eyJhbGciOi.eyJzdWIi.c2ln\n", n)
	}
	message.WriteString("error: hunter22 is refused\n")
	env := []v1alpha1.JobEnv{{Name: "TOKEN", SecretKeyRef: &v1alpha1.SecretKey{Name: "token", Key: "token"}}}
	for name, secret := range map[string]map[string][]byte{"readable": {"token": []byte("hunter22")}, "not readable": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newJobStage(t, v1alpha1.JobStep{Env: env, TerminalExitCodes: []int32{2}}, podRun{takes: 5 * time.Minute, code: 2, says: message.String()})
				s.cluster.secret = secret
				s.runWhile(func() { s.reconcileOnce(); time.Sleep(time.Hour) })
				s.expect("Failed", 1, 1)
				log, last := s.allLogs(), s.getProvision(s.key).Status.LastAttempt.Message
				if strings.Contains(log+last, "hunter22") || strings.Contains(log+last, "eyJ") {
					t.Errorf("a secret is told:\n%s\n%s", last, log)
				}
				if secret == nil {
					if !strings.Contains(log, "is left out: Secret token, which it may quote, cannot be read (Forbidden)") || strings.Contains(log, "| line") || strings.HasSuffix(last, "is refused") {
						t.Errorf("%s\n%s", last, log)
					}
					return
				}
				for _, want := range []string{"| line 0 with", "| line 40 with", "| …", "| line 1950 with", "| error: [hidden] is refused"} {
					if strings.Count(log, want) != 1 {
						t.Errorf("the log has %q %d times:\n%s", want, strings.Count(log, want), log)
					}
				}
				if strings.Contains(log, "| line 1000 with") || !strings.HasSuffix(last, "exit code 2: error: [hidden] is refused") {
					t.Errorf("%s\n%s", last, log)
				}
			})
		})
	}
}
