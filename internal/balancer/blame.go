// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"reflect"
	"sync"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// What was refused is tried again after a pause that doubles.
const (
	firstRefused = 5 * time.Second
	lastRefused  = 5 * time.Minute
)

// mostTries bounds the writes by which a round finds out whom Azure refuses: twice the
// depth of a search among a hundred Services, and room for a second culprit.
const mostTries = 24

// trial is a write for some jobs. Those that the plan refuses say so, and an error is that of all
// others.
type trial func(ctx context.Context, jobs []*job) error

// search is one for the Services that are to blame for what Azure refuses.
type search struct {
	of       *Balancers
	refusals *refusals
	on       lb.LoadBalancerKey
	// tries are the writes that it may still make.
	tries int
}

func (b *Balancers) search(r *refusals, on lb.LoadBalancerKey) *search {
	return &search{b, r, on, mostTries}
}

// among writes the jobs, and returns those whose step is done. All others have failed.
// Those that were refused before are written by themselves, so that their neighbours do
// not pay again.
func (s *search) among(ctx context.Context, jobs []*job, write trial) (level []*job) {
	good, suspects := s.refusals.part(jobs)
	level = s.halve(ctx, good, write)
	return append(level, s.halve(ctx, suspects, write)...)
}

// halve writes the jobs; if Azure refuses that, each half by itself.
func (s *search) halve(ctx context.Context, jobs []*job, write trial) (level []*job) {
	if len(jobs) == 0 || ctx.Err() != nil {
		return nil
	}
	s.tries--
	for _, j := range jobs {
		j.refused = nil
	}
	err := write(ctx, jobs)
	jobs = s.of.sift(ctx, jobs, func(j *job) error { return j.refused })
	switch {
	case err == nil:
		return jobs
	case culpable(err, time.Now()) && len(jobs) > 1 && s.tries > 0:
		half := len(jobs) / 2
		return append(s.halve(ctx, jobs[:half], write), s.halve(ctx, jobs[half:], write)...)
	}
	return s.of.sift(ctx, jobs, func(j *job) error {
		if culpable(err, time.Now()) {
			s.refusals.add(j, s.on, err, time.Now())
		}
		return err
	})
}

// culpable reports whether one of several Services may be to blame for an error: Azure
// looked at the content and refused it. Missing rights are everybody's trouble, and where
// Azure asks for patience nobody is looked for: that would take more writes.
func culpable(err error, now time.Time) bool {
	f := fault.From(err)
	return f.Class == fault.Terminal && !f.RetryAt.After(now) && (f.Reason == "refused" || f.Reason == "operation_failed") &&
		f.Code != fault.CodeUnclassified && f.Code != "AuthorizationFailed"
}

// refusals are the Services that were to blame for a refused write of one kind of resource. The
// zero value has none.
type refusals struct {
	mu sync.Mutex
	of map[string]*refusal // by Service
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

// is reports whether a job is what was refused.
func (r *refusal) is(j *job, on lb.LoadBalancerKey) bool {
	return r.on == on && reflect.DeepEqual(r.desired, j.Desired)
}

// due ends the jobs that Azure refused a while ago, and returns the others.
func (b *Balancers) due(ctx context.Context, jobs []*job, r *refusals, on lb.LoadBalancerKey) []*job {
	return b.sift(ctx, jobs, func(j *job) error { return r.why(j, on, time.Now()) })
}

// why is why a job is not tried now; nil if it is.
func (r *refusals) why(j *job, on lb.LoadBalancerKey, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was := r.of[j.Service]; was != nil && was.is(j, on) && now.Before(was.until) {
		return was.err
	}
	return nil
}

// part parts the jobs that were never refused from those that were.
func (r *refusals) part(jobs []*job) (good, suspects []*job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range jobs {
		if r.of[j.Service] != nil {
			suspects = append(suspects, j)
		} else {
			good = append(good, j)
		}
	}
	return good, suspects
}

func (r *refusals) add(j *job, on lb.LoadBalancerKey, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.of[j.Service]
	if was == nil || !was.is(j, on) {
		was = &refusal{desired: j.Desired, on: on}
		if r.of == nil {
			r.of = map[string]*refusal{}
		}
		r.of[j.Service] = was
	}
	was.err, was.until = err, now.Add(min(firstRefused<<min(was.times, 10), lastRefused))
	was.times++
}

// forget is for a job that was not refused.
func (r *refusals) forget(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, j.Service)
}
