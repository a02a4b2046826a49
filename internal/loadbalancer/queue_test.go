// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/requestlog"
	"weir.dev/weir/internal/service"
)

var errRejected = &armerror.Fault{Class: armerror.Terminal, Reason: "refused", Code: "InvalidRequest", Err: errNotNow}

func wants(name string, public bool) *job {
	spec := &service.Spec{Frontends: []service.Frontend{{}}}
	if public {
		spec.Frontends[0].PublicIP = &service.PublicIP{}
	}
	return newJob(Request{Service: name, Owner: name, Desired: spec}, false)
}

// Each job is taken once. A round for a rejected namespace contains only that namespace and does not follow
// another such round while others wait.
func TestLawRoundsOfSuspects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, _ := rounds(&shows{}, &pools{}, func(Result) {})
		l.cfg.Writes = ratelimit.New(1, 30*time.Second)
		q, now := newQueue(l.LoadBalancers, l), time.Now()
		suspect := func(j *job) bool {
			_, _, ok := l.rejections.BatchLimit(j.namespace(), now)
			return ok
		}
		for n := range rapid.IntRange(0, 3).Draw(t, "suspects") {
			for range rapid.IntRange(1, 5).Draw(t, "rejections") {
				l.rejections.CountRejectedWrite(fmt.Sprint("n", n), 100, now)
			}
		}
		all := rapid.IntRange(1, 150).Draw(t, "jobs")
		for n := range all {
			q.addJobs(wants(fmt.Sprintf("n%d/s%d", rapid.IntRange(0, 6).Draw(t, "namespace"), n), rapid.Bool().Draw(t, "public")))
		}
		taken, apart := map[*job]bool{}, false
		for len(q.waiting) > 0 {
			others := slices.ContainsFunc(q.waiting, func(j *job) bool { return !suspect(j) })
			jobs, release := q.takeBatch(t.Context(), now)
			release()
			if len(jobs) == 0 || len(jobs) > maxBatch {
				t.Fatalf("%d jobs are taken, and %d wait", len(jobs), len(q.waiting))
			}
			isSuspect := suspect(jobs[0])
			for _, j := range jobs {
				if taken[j] || isSuspect && j.namespace() != jobs[0].namespace() || !isSuspect && suspect(j) {
					t.Fatalf("%s is in a round with %s", j.Service, jobs[0].Service)
				}
				taken[j] = true
			}
			if isSuspect && apart && others {
				t.Fatal("two rounds of suspects follow each other, and others wait")
			}
			apart = isSuspect
		}
		if len(taken) != all {
			t.Fatalf("%d of %d are taken", len(taken), all)
		}
	})
}

// The namespace with rejected Services is found among many. No Service of another namespace fails, and each
// write is attributed to its namespaces.
func TestTheRejectedNamespaceIsFound(t *testing.T) {
	for _, bad := range []int{1, 3} {
		var ended []Result
		l, _ := rounds(&shows{}, &pools{}, func(r Result) { ended = append(ended, r) })
		var jobs []*job
		for n := range 20 {
			for m := range 3 {
				jobs = append(jobs, wants(fmt.Sprintf("n%02d/s%d", n, m), false))
			}
		}
		for _, j := range jobs {
			j.steps = []step{{on: l.id}}
		}
		writes := 0
		inSync := l.bisectJobs(t.Context(), jobs, new(maxSearchWrites), func(ctx context.Context, jobs []*job) error {
			writes++
			var in []string
			for _, j := range jobs {
				in = append(in, j.namespace())
			}
			slices.Sort(in)
			if causes := requestlog.ContextNamespaces(ctx).OfServices; !slices.Equal(causes, slices.Compact(in)) {
				t.Errorf("a write with Services of %v is made for %v", in, causes)
			}
			if slices.ContainsFunc(jobs, func(j *job) bool {
				return slices.Contains([]string{"n07/s0", "n07/s1", "n07/s2"}[:bad], j.Service)
			}) {
				return errRejected
			}
			return nil
		})
		q := l.queueFor(step{on: l.id})
		if len(inSync) != 57 || len(ended) > 0 || len(q.waiting) != 3 || writes > 12 {
			t.Fatalf("%d are done, %d have failed, %d wait after %d writes", len(inSync), len(ended), len(q.waiting), writes)
		}
		if width, _, suspect := l.rejections.BatchLimit("n07", time.Now()); !suspect || width != 1 {
			t.Errorf("%d of namespace n07 are written together, suspect %t", width, suspect)
		}
	}
}

// The write budget limits the public IPs of a round, not the Services of a shared write.
func TestARoundHasRoomForItsPublicIPs(t *testing.T) {
	l, _ := rounds(&shows{}, &pools{}, func(Result) {})
	l.cfg.Writes = ratelimit.New(0.2, 30*time.Second) // 200 writes
	now := time.Now()
	for range 140 {
		l.cfg.Writes.CountWrite("s", now, "shop")
	}
	take := func(public bool) (n int) {
		q := newQueue(l.LoadBalancers, l)
		for n := range 60 {
			q.addJobs(wants(fmt.Sprint("shop/s", n), public))
		}
		jobs, release := q.takeBatch(t.Context(), now)
		release()
		return len(jobs)
	}
	if public, internal := take(true), take(false); public != 19 || internal != 60 {
		t.Errorf("%d Services with public IPs and %d others are in one round", public, internal)
	}
}

// Never deferred: leaving Services, narrower access and started jobs. A rejected spec does not block removal;
// another name or kind of load balancer does not end the pause. A retry that the user requests does, once.
func TestDeferredServices(t *testing.T) {
	counted := map[string]int{}
	l, _ := rounds(&shows{}, &pools{}, func(Result) {})
	l.cfg.Writes, l.cfg.OnDeferred = ratelimit.New(0.2, 30*time.Second), func(reason string) { counted[reason]++ }
	now, want := time.Now(), &service.Spec{}
	for range 200 {
		l.cfg.Writes.CountWrite("s", now, "shop")
	}
	for about, tt := range map[string]struct {
		desired *service.Spec
		narrows bool
		put     bool
	}{"it wants something": {want, false, true}, "it admits fewer": {want, true, false}, "it leaves": {nil, false, false}} {
		if err := l.CheckDeferred("shop/web", tt.desired, "", tt.narrows, now); (err != nil) != tt.put {
			t.Errorf("%s: %v", about, err)
		}
		j := newJob(Request{Service: "shop/web", Desired: tt.desired, OnlyRestricts: tt.narrows}, false)
		if err := newQueue(l.LoadBalancers, l).deferReason(j, map[string]error{}, now); (err != nil) != tt.put {
			t.Errorf("%s, and is queued: %v", about, err)
		}
		j.started = true
		if err := newQueue(l.LoadBalancers, l).deferReason(j, map[string]error{}, now); err != nil {
			t.Errorf("%s, and has begun: %v", about, err)
		}
	}
	if err := l.CheckDeferred("blog/web", want, "", false, now); err != nil {
		t.Errorf("a neighbor: %v", err)
	}
	for range 2 {
		l.recordJobRejection(newJob(Request{Service: "blog/web", On: lb.LoadBalancerID{Name: "one"}, Desired: want}, false), errRejected)
	}
	if err := l.CheckDeferred("blog/web", &service.Spec{Internal: true}, "", true, now); !armerror.FromError(err).IsDeferred() {
		t.Errorf("it was rejected twice, and then wants something else: %v", err)
	}
	if err := l.CheckDeferred("blog/web", nil, "", false, now); err != nil {
		t.Errorf("it was rejected, and leaves: %v", err)
	}
	begun := wants("blog/web", true)
	begun.started = true
	if err := newQueue(l.LoadBalancers, l).deferReason(begun, map[string]error{}, now); err != nil {
		t.Errorf("it was rejected, and another job of it has begun: %v", err)
	}
	l.recordJobRejection(newJob(Request{Service: "blog/web"}, false), errRejected)
	if err := l.CheckDeferred("blog/web", nil, "", false, now); !armerror.FromError(err).IsDeferred() {
		t.Errorf("that it leaves was rejected: %v", err)
	}
	for range 2 {
		l.RecordRejection("bank/web", want, "", &armerror.Fault{Class: armerror.Terminal, Reason: "refused", Code: "AuthorizationFailed", Err: errNotNow}) // for a group that it names
	}
	if err := l.CheckDeferred("bank/web", &service.Spec{Internal: true}, "", false, now); !armerror.FromError(err).IsDeferred() {
		t.Errorf("two reads that it asks for were rejected: %v", err)
	}
	for _, err := range []error{errNotNow, &armerror.Fault{Class: armerror.Retriable, Reason: "throttled", Err: errNotNow}} {
		l.RecordRejection("bank/other", want, "", err)
	}
	if err := l.CheckDeferred("bank/other", want, "", false, now); err != nil {
		t.Errorf("a read was throttled: %v", err)
	}
	l.cfg.Writes = nil // the share is not limiting
	l.recordJobRejection(newJob(Request{Service: "blog/retried", Desired: want, RetryToken: "1"}, false), errRejected)
	if err := l.CheckDeferred("blog/retried", want, "1", false, now); !armerror.FromError(err).IsDeferred() {
		t.Errorf("it was rejected: %v", err)
	}
	if err := l.CheckDeferred("blog/retried", want, "2", false, now); err != nil {
		t.Errorf("it was rejected, and the user requests a retry: %v", err)
	}
	if counted[deferredShare] == 0 || counted[deferredObject] == 0 {
		t.Errorf("%v are counted", counted)
	}
}
