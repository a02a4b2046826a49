// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/calls"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/service"
)

// mostTries limits the writes of one search for rejected namespaces: twice the depth of a bisection of 100
// jobs, plus room for a second search.
const mostTries = 24

// trial writes some jobs. A job that the plan rejects carries its own error; the returned error applies to all
// others.
type trial func(ctx context.Context, jobs []*job) error

// search bisects jobs to find the namespaces with Services that Azure rejects.
type search struct {
	of    *Balancers
	tries int
}

// among writes the jobs and returns those in sync. The others failed or were requeued.
func (b *Balancers) among(ctx context.Context, jobs []*job, write trial) (inSync []*job) {
	return (&search{b, mostTries}).halve(ctx, jobs, write)
}

// halve writes the jobs. If Azure rejects the write, it writes each half of the namespaces. It does not bisect
// within a namespace: those jobs are requeued, so that they delay no other namespace.
func (s *search) halve(ctx context.Context, jobs []*job, write trial) (inSync []*job) {
	if len(jobs) == 0 || ctx.Err() != nil {
		return nil
	}
	if s.tries == 0 {
		s.of.putBack(jobs)
		return nil
	}
	s.tries--
	for _, j := range jobs {
		j.refused = nil
	}
	err := write(calls.For(ctx, causes(jobs)...), jobs)
	jobs = s.of.sift(ctx, jobs, func(j *job) error { return j.refused })
	if len(jobs) == 0 {
		return nil
	}
	if err == nil {
		s.of.rejections.Pass(jobs[0].namespace())
		return jobs
	}
	jobs = slices.SortedStableFunc(slices.Values(jobs), func(a, b *job) int { return strings.Compare(a.namespace(), b.namespace()) })
	half := middle(jobs)
	switch {
	case !culpable(err, time.Now()) || ctx.Err() != nil:
		return s.of.sift(ctx, jobs, func(j *job) error { s.of.rejected(j, err); return err })
	case half > 0:
		return append(s.halve(ctx, jobs[:half], write), s.halve(ctx, jobs[half:], write)...)
	case len(jobs) == 1:
		s.of.rejected(jobs[0], err)
		return s.of.sift(ctx, jobs, func(*job) error { return err })
	}
	s.of.rejections.Strike(jobs[0].namespace(), len(jobs), time.Now())
	s.of.putBack(jobs)
	return nil
}

// middle returns the namespace boundary closest to the middle of the sorted jobs; 0 if there is one namespace.
func middle(jobs []*job) int {
	best := 0
	for i := 1; i < len(jobs); i++ {
		if jobs[i].namespace() != jobs[i-1].namespace() && (best == 0 || max(i, len(jobs)-i) < max(best, len(jobs)-best)) {
			best = i
		}
	}
	return best
}

func (b *Balancers) putBack(jobs []*job) {
	for _, j := range jobs {
		b.next(j)
	}
}

// culpable reports whether one Service may have caused the error: Azure rejected the content. Missing
// permissions affect all Services, and a Retry-After forbids the extra writes of a search.
func culpable(err error, now time.Time) bool {
	f := fault.From(err)
	return f.Class == fault.Terminal && !f.RetryAt.After(now) && (f.Reason == "refused" || f.Reason == "operation_failed") &&
		f.Code != fault.CodeUnclassified && f.Code != "AuthorizationFailed"
}

func (b *Balancers) rejected(j *job, err error) {
	now := time.Now()
	if !culpable(err, now) {
		b.reject(j.wish(), j.Desired, err) // for a reason other than its spec
		return
	}
	width := 1
	if b.rejections.Rejected(j.wish()) {
		width = 0
	}
	b.rejections.Strike(j.namespace(), width, now)
	b.rejections.Reject(j.wish(), fingerprint(j.Desired), err, now)
}

// Reject records that Azure rejected a Service, whatever the cause. It is retried after a pause.
func (b *Balancers) Reject(name string, desired *service.Spec, err error) {
	b.reject(wish(name, desired), desired, err)
}

func (b *Balancers) reject(key string, desired *service.Spec, err error) {
	if f, is := errors.AsType[*fault.Fault](err); is && f.Class == fault.Terminal && f.Reason == "refused" && f.Code != fault.CodeUnclassified {
		b.rejections.Reject(key, fingerprint(desired), err, time.Now())
	}
}

// fingerprint returns a short hash of a spec, which may be large.
func fingerprint(desired *service.Spec) string {
	text, err := json.Marshal(desired)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// wish returns the key under which rejections of a job are counted. Removal and closing have their own keys, so
// that other rejections do not block them.
func (j *job) wish() string {
	if j.Closes {
		return "close " + j.Service
	}
	return wish(j.Service, j.Desired)
}

func wish(name string, desired *service.Spec) string {
	if desired == nil {
		return "leave " + name
	}
	return name
}

func (j *job) makesPublicIPs() bool {
	return j.Desired != nil && !j.begun && slices.ContainsFunc(j.Desired.Frontends, func(f service.Frontend) bool { return f.PublicIP != nil })
}

func (j *job) deferrable() bool { return !j.begun && !j.Narrows && !j.Closes && j.Desired != nil }

// deferral returns why a job must wait. namespaces caches the result per namespace.
func (q *queue) deferral(j *job, namespaces map[string]error, now time.Time) error {
	if j.begun {
		return nil
	}
	if err := q.rejectedBefore(j.wish(), j.Desired, now); err != nil || !j.deferrable() {
		return err
	}
	err, known := namespaces[j.namespace()]
	if !known {
		err = q.share(j.namespace(), now)
		namespaces[j.namespace()] = err
	}
	return err
}

// Defer returns why no request of a Service is sent to Azure now: its spec was rejected or its namespace has no
// write budget left. It does not call Azure. narrows marks a Service that only admits fewer clients than
// before.
func (b *Balancers) Defer(name string, desired *service.Spec, narrows bool, now time.Time) error {
	if err := b.rejectedBefore(wish(name, desired), desired, now); err != nil || desired == nil || narrows {
		return err
	}
	namespace, _, _ := strings.Cut(name, "/")
	return b.share(namespace, now)
}

// Reasons of deferrals; values of a metric label.
const (
	deferredObject    = "rejected service"
	deferredNamespace = "rejected writes"
	deferredShare     = "share used"
)

func (b *Balancers) rejectedBefore(key string, desired *service.Spec, now time.Time) error {
	until, err := b.rejections.Object(key, func() string { return fingerprint(desired) }, now)
	if err == nil {
		return nil
	}
	return b.deferred(deferredObject, until, fmt.Errorf("Azure rejected it, and another try follows at %s: %w", until.UTC().Format(time.RFC3339), err))
}

func (b *Balancers) share(namespace string, now time.Time) error {
	if until := b.rejections.Namespace(namespace, now); until.After(now) {
		return b.deferred(deferredNamespace, until, fmt.Errorf("Azure rejected the last writes for Services of namespace %s: correct them; "+
			"until then each Service of the namespace waits for its turn", namespace))
	}
	if b.cfg.Writes == nil {
		return nil
	}
	_, _, suspect := b.rejections.Suspect(namespace, now)
	if d, is := b.cfg.Writes.Defer(b.cfg.Place.SubscriptionID, namespace, suspect, now); is {
		return b.deferred(deferredShare, d.Until, errors.New(d.String()))
	}
	return nil
}

func (b *Balancers) deferred(reason string, until time.Time, err error) error {
	if b.cfg.Deferred != nil {
		b.cfg.Deferred(reason)
	}
	return fault.Deferred(until, err)
}
