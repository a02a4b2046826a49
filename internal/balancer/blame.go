// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"reflect"
	"slices"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// What was refused is tried again after a pause that doubles.
const (
	firstRefused = 5 * time.Second
	lastRefused  = 5 * time.Minute
)

// mostTries bounds the writes by which a pass finds out whom Azure refuses: twice the
// depth of a search among a hundred Services, and room for a second culprit.
const mostTries = 24

// trial is a write for some jobs. Those that the plan refuses are left out of it, and an
// error is that of all others.
type trial func(ctx context.Context, jobs []*job) (refused map[*job]error, err error)

// blame writes the jobs, and returns those whose step is done. All others have failed.
// Those that were refused before are written by themselves, so that their neighbours do
// not pay again.
func (w *worker) blame(ctx context.Context, jobs []*job, of contest.In, write trial) (level []*job) {
	var good, suspects []*job
	w.Balancers.mu.Lock()
	for _, j := range jobs {
		if w.suspects[string(of)+j.Service] != nil {
			suspects = append(suspects, j)
		} else {
			good = append(good, j)
		}
	}
	w.Balancers.mu.Unlock()
	tries := mostTries
	level = w.search(ctx, good, of, write, &tries)
	return append(level, w.search(ctx, suspects, of, write, &tries)...)
}

// search writes the jobs; if Azure refuses that, each half by itself.
func (w *worker) search(ctx context.Context, jobs []*job, of contest.In, write trial, tries *int) (level []*job) {
	if len(jobs) == 0 || ctx.Err() != nil {
		return nil
	}
	*tries--
	refused, err := write(ctx, jobs)
	for _, j := range jobs {
		if refused[j] != nil {
			w.fail(ctx, j, refused[j])
		}
	}
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j *job) bool { return refused[j] != nil })
	switch {
	case err == nil:
		return jobs
	case culpable(err) && len(jobs) > 1 && *tries > 0:
		half := len(jobs) / 2
		return append(w.search(ctx, jobs[:half], of, write, tries), w.search(ctx, jobs[half:], of, write, tries)...)
	}
	for _, j := range jobs {
		if culpable(err) {
			w.suspect(of, j, err)
		}
		w.fail(ctx, j, err)
	}
	return nil
}

// culpable reports whether one of several Services may be to blame for an error: Azure
// looked at the content and refused it. Missing rights are everybody's trouble, and where
// Azure asks for patience nobody is looked for: that would take more writes.
func culpable(err error) bool {
	f := fault.From(err)
	return f.Class == fault.Terminal && !f.RetryAt.After(time.Now()) && (f.Reason == "refused" || f.Reason == "operation_failed") &&
		f.Code != fault.CodeUnclassified && f.Code != "AuthorizationFailed"
}

// refusal is what Azure would not take of a Service, and until when it is not asked again
// for the same: each try is a write, and many that are refused would use up the quota of
// all. A Service that changed is tried at once.
type refusal struct {
	desired *service.Spec
	on      lb.LoadBalancerKey
	err     error
	times   int
	until   time.Time
}

func (w *worker) suspect(of contest.In, j *job, err error) {
	w.Balancers.mu.Lock()
	defer w.Balancers.mu.Unlock()
	r := w.suspects[string(of)+j.Service]
	if r == nil || !r.is(j, w.id) {
		r = &refusal{desired: j.Desired, on: w.id.Key()}
		w.suspects[string(of)+j.Service] = r
	}
	r.err, r.until = err, time.Now().Add(min(firstRefused<<min(r.times, 10), lastRefused))
	r.times++
}

// is reports whether a job is what was refused.
func (r *refusal) is(j *job, on lb.LoadBalancerID) bool {
	return r.on == on.Key() && reflect.DeepEqual(r.desired, j.Desired)
}

// refused returns why a job is not tried now; nil if it is.
func (w *worker) refused(of contest.In, j *job) error {
	w.Balancers.mu.Lock()
	defer w.Balancers.mu.Unlock()
	if r := w.suspects[string(of)+j.Service]; r != nil && r.is(j, w.id) && time.Now().Before(r.until) {
		return r.err
	}
	return nil
}

func (b *Balancers) trust(of contest.In, j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.suspects, string(of)+j.Service)
}
