// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/turns"
)

const (
	// gathers is how long a load balancer waits for more Services after the first one, so
	// that those that appear together are written together.
	gathers = 250 * time.Millisecond
	// mostAtOnce bounds the Services of one plan: the first of a thousand need not wait for
	// the public IPs of all.
	mostAtOnce = 100
)

// worker brings one load balancer level.
type worker struct {
	*Balancers
	id   lb.LoadBalancerID
	wake chan struct{}
	// work makes the next step of some jobs.
	work func(ctx context.Context, jobs []*job)

	mu      sync.Mutex
	waiting []*job
}

func (w *worker) add(j *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, j)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns the oldest jobs, of each namespace in turn. Whoever woke the worker for them has been heard: a call that
// is left over would have the next Service gather no company.
func (w *worker) take() []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.wake:
	default:
	}
	var taken []*job
	taken, w.waiting = turns.Deal(w.waiting, (*job).namespace, mostAtOnce)
	return slices.Clone(taken)
}

// namespace is that of a job's Service.
func (j *job) namespace() string {
	namespace, _, _ := strings.Cut(j.Service, "/")
	return namespace
}

// run works on what waits until the context is done.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-w.wake:
		case <-ctx.Done():
			return
		}
		if !pause(ctx, gathers) {
			return
		}
		for jobs := w.take(); len(jobs) > 0 && ctx.Err() == nil; jobs = w.take() {
			w.work(ctx, jobs)
		}
	}
}

// pass makes the next step of these jobs.
func (w *worker) pass(ctx context.Context, jobs []*job) {
	jobs = slices.DeleteFunc(jobs, func(j *job) bool {
		why := w.refused(contest.LoadBalancer, j)
		if why != nil {
			w.fail(ctx, j, why)
		}
		return why != nil
	})
	if len(jobs) == 0 {
		return
	}
	ips := w.publicIPs(ctx, jobs)
	if publicip.Overtaken(requests(jobs)) {
		ips = w.publicIPs(ctx, jobs)
		w.overtaken(resourcePublicIP)(!publicip.Overtaken(requests(jobs)))
	}
	for _, j := range jobs {
		if err := j.ips.Err; err != nil {
			w.fail(ctx, j, err)
		}
	}
	jobs = slices.DeleteFunc(jobs, func(j *job) bool { return j.ips.Err != nil })
	level := w.blame(ctx, jobs, contest.LoadBalancer, func(ctx context.Context, jobs []*job) (map[*job]error, error) {
		return w.write(ctx, jobs, ips)
	})
	ips.Label(ctx, requests(level))
	ips.Remove(ctx, requests(level))
	for _, j := range level {
		if err := j.ips.Err; err != nil {
			w.fail(ctx, j, err)
			continue
		}
		j.steps = j.steps[1:]
		w.trust(contest.LoadBalancer, j)
		j.contested(w.contests.Shown(contest.PublicIPs, j.Service))
		if !j.waitsForFill() { // else a rule that moves to the pool once it is filled was not undone by anybody
			j.contested(w.contests.Shown(contest.LoadBalancer, j.Service))
		}
		w.next(j)
	}
}

// publicIPs picks the public IPs of all jobs, and makes those true that they need now.
func (w *worker) publicIPs(ctx context.Context, jobs []*job) *publicip.Round {
	ctx, cancel := context.WithTimeout(ctx, publicip.Deadline)
	defer cancel()
	for _, j := range jobs {
		j.ips.Leaves = j.steps[0].leaves
	}
	ips := w.ips.Begin(ctx, w.id, requests(jobs))
	for _, j := range jobs {
		if j.ips.Leaves && !j.steps[0].leaves {
			j.steps = append([]step{{on: w.id, leaves: true}}, j.steps...)
		}
		j.ips.Moves = j.moves()
	}
	w.spareAddresses(ctx, jobs, ips)
	ips.Write(ctx)
	return ips
}

// requests are what jobs want of public IPs.
func requests(jobs []*job) []*publicip.Request {
	all := make([]*publicip.Request, len(jobs))
	for i, j := range jobs {
		all[i] = j.ips
	}
	return all
}

// fail ends a job. One that the end of the process stopped is dropped without a word.
func (w *worker) fail(ctx context.Context, j *job, err error) {
	if ctx.Err() == nil {
		w.done(j, err)
	}
}

// pause waits, and reports false if the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
