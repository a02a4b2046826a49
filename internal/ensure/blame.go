// SPDX-License-Identifier: Apache-2.0

package ensure

import (
	"context"
	"reflect"
	"slices"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// mostTries bounds the writes by which a pass finds out whom Azure refuses: twice the
// depth of a search among a hundred Services, and room for a second culprit.
const mostTries = 24

// writeAll writes the jobs, and returns those whose step is done. All others have failed.
// Those that were refused before are written by themselves, so that their neighbours do
// not pay again.
func (w *worker) writeAll(ctx context.Context, jobs []*job, inv *inventory) (level []*job) {
	var good, suspects []*job
	w.Balancers.mu.Lock()
	for _, j := range jobs {
		if w.suspects[j.Service] != nil {
			suspects = append(suspects, j)
		} else {
			good = append(good, j)
		}
	}
	w.Balancers.mu.Unlock()
	tries := mostTries
	level = w.search(ctx, good, inv, &tries)
	return append(level, w.search(ctx, suspects, inv, &tries)...)
}

// search writes the jobs; if Azure refuses that, each half by itself.
func (w *worker) search(ctx context.Context, jobs []*job, inv *inventory, tries *int) (level []*job) {
	if len(jobs) == 0 || ctx.Err() != nil {
		return nil
	}
	*tries--
	refused, err := w.write(ctx, jobs, inv)
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
		return append(w.search(ctx, jobs[:half], inv, tries), w.search(ctx, jobs[half:], inv, tries)...)
	}
	for _, j := range jobs {
		if culpable(err) {
			w.suspect(j, err)
		}
		w.fail(ctx, j, err)
	}
	return nil
}

// culpable reports whether one of several Services may be to blame for an error: Azure
// looked at the content and refused it. Missing rights are everybody's trouble.
func culpable(err error) bool {
	f := fault.From(err)
	return f.Class == fault.Terminal && (f.Reason == "refused" || f.Reason == "operation_failed") &&
		f.Code != fault.CodeUnclassified && f.Code != "AuthorizationFailed"
}

// refusal is what Azure would not take of a Service, and until when it is not asked again
// for the same: each try is a write, and many that are refused would use up the quota of
// all. A Service that changed is tried at once.
type refusal struct {
	wish  *service.Wish
	on    lb.LoadBalancerKey
	err   error
	times int
	until time.Time
}

func (w *worker) suspect(j *job, err error) {
	w.Balancers.mu.Lock()
	defer w.Balancers.mu.Unlock()
	r := w.suspects[j.Service]
	if r == nil || !r.is(j, w.id) {
		r = &refusal{wish: j.Wish, on: w.id.Key()}
		w.suspects[j.Service] = r
	}
	r.err, r.until = err, time.Now().Add(min(firstPause<<min(r.times, 10), lastPause))
	r.times++
}

// is reports whether a job is what was refused.
func (r *refusal) is(j *job, on lb.LoadBalancerID) bool {
	return r.on == on.Key() && reflect.DeepEqual(r.wish, j.Wish)
}

// refused returns why a job is not tried now; nil if it is.
func (w *worker) refused(j *job) error {
	w.Balancers.mu.Lock()
	defer w.Balancers.mu.Unlock()
	if r := w.suspects[j.Service]; r != nil && r.is(j, w.id) && time.Now().Before(r.until) {
		return r.err
	}
	return nil
}

func (b *Balancers) trust(j *job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.suspects, j.Service)
}
