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

// mostTries bounds the writes by which a round finds out of which namespaces Azure rejects Services: twice the
// depth of a search among a hundred, and room for a second one.
const mostTries = 24

// trial is a write for some jobs. Those that the plan refuses say so, and an error is that of all
// others.
type trial func(ctx context.Context, jobs []*job) error

// search is one for the namespaces of the Services that Azure rejects.
type search struct {
	of *Balancers
	// tries are the writes that it may still make.
	tries int
}

// among writes the jobs, and returns those with their step done. All others have failed, or wait for another round.
func (b *Balancers) among(ctx context.Context, jobs []*job, write trial) (level []*job) {
	return (&search{b, mostTries}).halve(ctx, jobs, write)
}

// halve writes the jobs. If Azure rejects that, it writes half of the namespaces, and then the others. Within a
// namespace nothing is searched now: its jobs wait for rounds of their own, which hold up no neighbor.
func (s *search) halve(ctx context.Context, jobs []*job, write trial) (level []*job) {
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

// middle returns where another namespace begins, as close to the middle as there is one; 0 if all jobs are of one
// namespace. The jobs are sorted by it.
func middle(jobs []*job) int {
	best := 0
	for i := 1; i < len(jobs); i++ {
		if jobs[i].namespace() != jobs[i-1].namespace() && (best == 0 || max(i, len(jobs)-i) < max(best, len(jobs)-best)) {
			best = i
		}
	}
	return best
}

// putBack has jobs wait for another round.
func (b *Balancers) putBack(jobs []*job) {
	for _, j := range jobs {
		b.next(j)
	}
}

// culpable reports whether one of several Services may be to blame for an error: Azure
// looked at the content and refused it. Missing rights are everybody's trouble, and where
// Azure asks for patience nobody is looked for: that would take more writes.
func culpable(err error, now time.Time) bool {
	f := fault.From(err)
	return f.Class == fault.Terminal && !f.RetryAt.After(now) && (f.Reason == "refused" || f.Reason == "operation_failed") &&
		f.Code != fault.CodeUnclassified && f.Code != "AuthorizationFailed"
}

// rejected counts what Azure rejected of one job alone.
func (b *Balancers) rejected(j *job, err error) {
	now := time.Now()
	if !culpable(err, now) {
		b.reject(j.wish(), j.Desired, err) // for another reason than what it wants
		return
	}
	width := 1
	if b.rejections.Rejected(j.wish()) {
		width = 0
	}
	b.rejections.Strike(j.namespace(), width, now)
	b.rejections.Reject(j.wish(), fingerprint(j.Desired), err, now)
}

// Reject counts what Azure rejected for a Service, whosever fault that is: it is tried again after a pause.
func (b *Balancers) Reject(name string, desired *service.Spec, err error) {
	b.reject(wish(name, desired), desired, err)
}

func (b *Balancers) reject(wish string, desired *service.Spec, err error) {
	if f, is := errors.AsType[*fault.Fault](err); is && f.Class == fault.Terminal && f.Reason == "refused" && f.Code != fault.CodeUnclassified {
		b.rejections.Reject(wish, fingerprint(desired), err, time.Now())
	}
}

// fingerprint stands for a spec: that of a Service may be large.
func fingerprint(desired *service.Spec) string {
	text, err := json.Marshal(desired)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

// wish is the name of what a job wants. What a Service wants and that it leaves are rejected apart: it may leave
// whatever else was rejected of it. Requests that close the security group are rejected apart, too.
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

// makesPublicIPs reports whether public IPs may be written for a job.
func (j *job) makesPublicIPs() bool {
	return j.Desired != nil && !j.begun && slices.ContainsFunc(j.Desired.Frontends, func(f service.Frontend) bool { return f.PublicIP != nil })
}

// deferrable reports whether a job may be put off: it has not begun, and takes nothing away.
func (j *job) deferrable() bool { return !j.begun && !j.Narrows && !j.Closes && j.Desired != nil }

// deferral returns why a job has to wait. namespaces are those that were looked at before.
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

// Defer returns why no request for a Service is sent to Azure now: Azure has rejected what it wanted, or its namespace
// has used up its share of writes. It reads nothing of Azure. Narrows is true for a Service that only admits fewer
// clients than before.
func (b *Balancers) Defer(name string, desired *service.Spec, narrows bool, now time.Time) error {
	if err := b.rejectedBefore(wish(name, desired), desired, now); err != nil || desired == nil || narrows {
		return err
	}
	namespace, _, _ := strings.Cut(name, "/")
	return b.share(namespace, now)
}

// Reasons of deferrals. These are labels of a metric.
const (
	deferredObject    = "rejected service"
	deferredNamespace = "rejected writes"
	deferredShare     = "share used"
)

// rejectedBefore returns why what a Service wants is not tried yet; nil if it is.
func (b *Balancers) rejectedBefore(wish string, desired *service.Spec, now time.Time) error {
	until, err := b.rejections.Object(wish, func() string { return fingerprint(desired) }, now)
	if err == nil {
		return nil
	}
	return b.deferred(deferredObject, until, fmt.Errorf("Azure rejected it, and another try follows at %s: %w", until.UTC().Format(time.RFC3339), err))
}

// share returns why a namespace has to wait for its next write; nil if it has not.
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
