// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/requestlog"
	"weir.dev/weir/internal/service"
)

// maxSearchWrites limits the writes of one search for rejected namespaces: twice the depth of a bisection of 100
// jobs, plus room for a second search.
const maxSearchWrites = 24

// writeFunc writes some jobs. A job that the plan rejects carries its own error; the returned error applies to all
// others.
type writeFunc func(ctx context.Context, jobs []*job) error

// search bisects jobs to find the namespaces with Services that Azure rejects.
type search struct {
	of         *LoadBalancers
	writesLeft int
}

// writeBisecting writes the jobs and returns those in sync. The others failed or were requeued.
func (b *LoadBalancers) writeBisecting(ctx context.Context, jobs []*job, write writeFunc) (inSync []*job) {
	return (&search{b, maxSearchWrites}).bisectJobs(ctx, jobs, write)
}

// bisectJobs writes the jobs. If Azure rejects the write, it writes each half of the namespaces. It does not bisect
// within a namespace: those jobs are requeued, so that they delay no other namespace.
func (s *search) bisectJobs(ctx context.Context, jobs []*job, write writeFunc) (inSync []*job) {
	if len(jobs) == 0 || ctx.Err() != nil {
		return nil
	}
	if s.writesLeft == 0 {
		s.of.requeueJobs(jobs)
		return nil
	}
	s.writesLeft--
	for _, j := range jobs {
		j.rejection = nil
	}
	err := write(requestlog.WithCauses(ctx, requestCauses(jobs)...), jobs)
	jobs = s.of.failUnready(ctx, jobs, func(j *job) error { return j.rejection })
	if len(jobs) == 0 {
		return nil
	}
	if err == nil {
		s.of.rejections.CountAcceptedWrite(jobs[0].namespace())
		return jobs
	}
	jobs = slices.SortedStableFunc(slices.Values(jobs), func(a, b *job) int { return strings.Compare(a.namespace(), b.namespace()) })
	half := namespaceBoundary(jobs)
	switch {
	case !isRequestError(err, time.Now()) || ctx.Err() != nil:
		return s.of.failUnready(ctx, jobs, func(j *job) error { s.of.recordJobRejection(j, err); return err })
	case half > 0:
		return append(s.bisectJobs(ctx, jobs[:half], write), s.bisectJobs(ctx, jobs[half:], write)...)
	case len(jobs) == 1:
		s.of.recordJobRejection(jobs[0], err)
		return s.of.failUnready(ctx, jobs, func(*job) error { return err })
	}
	s.of.rejections.CountRejectedWrite(jobs[0].namespace(), len(jobs), time.Now())
	s.of.requeueJobs(jobs)
	return nil
}

// namespaceBoundary returns the namespace boundary closest to the middle of the sorted jobs; 0 if there is one namespace.
func namespaceBoundary(jobs []*job) int {
	best := 0
	for i := 1; i < len(jobs); i++ {
		if jobs[i].namespace() != jobs[i-1].namespace() && (best == 0 || max(i, len(jobs)-i) < max(best, len(jobs)-best)) {
			best = i
		}
	}
	return best
}

func (b *LoadBalancers) requeueJobs(jobs []*job) {
	for _, j := range jobs {
		b.enqueueNext(j)
	}
}

// isRequestError reports whether one Service may have caused the error: Azure rejected the content. Missing
// permissions and deny assignments affect all Services, and a Retry-After forbids the extra writes of a search.
func isRequestError(err error, now time.Time) bool {
	f := armerror.FromError(err)
	return f.Class == armerror.Terminal && !f.RetryAt.After(now) && (f.Reason == "refused" || f.Reason == "operation_failed") &&
		f.Code != armerror.CodeUnclassified && f.Code != "AuthorizationFailed" && f.Code != "DenyAssignmentAuthorizationFailed"
}

func (b *LoadBalancers) recordJobRejection(j *job, err error) {
	now := time.Now()
	if !isRequestError(err, now) {
		b.addRejection(j.rejectionKey(), j.Desired, j.RetryToken, err) // for a reason other than its spec
		return
	}
	width := 1
	if b.rejections.IsRejected(j.rejectionKey()) {
		width = 0
	}
	b.rejections.CountRejectedWrite(j.namespace(), width, now)
	b.rejections.RecordRejection(j.rejectionKey(), specHash(j.Desired, j.RetryToken), err, now)
}

// RecordRejection records that Azure rejected a Service, whatever the cause. It is retried after a pause.
func (b *LoadBalancers) RecordRejection(name string, desired *service.Spec, retryToken string, err error) {
	b.addRejection(rejectionKeyOf(name, desired), desired, retryToken, err)
}

func (b *LoadBalancers) addRejection(key string, desired *service.Spec, retryToken string, err error) {
	if f, is := errors.AsType[*armerror.Fault](err); is && f.Class == armerror.Terminal && f.Reason == "refused" && f.Code != armerror.CodeUnclassified {
		b.rejections.RecordRejection(key, specHash(desired, retryToken), err, time.Now())
	}
}

// specHash returns a short hash of a spec, which may be large, and of the user's token: a retry that a user requests counts
// as a changed spec.
func specHash(desired *service.Spec, retryToken string) string {
	text, err := json.Marshal(desired)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append(text, retryToken...))
	return string(sum[:])
}

// rejectionKey returns the key under which rejections of a job are counted. Removal and closing have their own keys, so
// that other rejections do not block them.
func (j *job) rejectionKey() string {
	if j.CloseOnly {
		return "close " + j.Service
	}
	return rejectionKeyOf(j.Service, j.Desired)
}

func rejectionKeyOf(name string, desired *service.Spec) string {
	if desired == nil {
		return "leave " + name
	}
	return name
}

func (j *job) canWritePublicIPs() bool {
	return j.Desired != nil && !j.started && slices.ContainsFunc(j.Desired.Frontends, func(f service.Frontend) bool { return f.PublicIP != nil })
}

func (j *job) canDefer() bool {
	return !j.started && !j.OnlyRestricts && !j.CloseOnly && j.Desired != nil
}

// deferReason returns why a job must wait. namespaces caches the result per namespace.
func (q *queue) deferReason(j *job, namespaces map[string]error, now time.Time) error {
	if j.started {
		return nil
	}
	if err := q.checkRejections(j.rejectionKey(), j.Desired, j.RetryToken, now); err != nil || !j.canDefer() {
		return err
	}
	err, known := namespaces[j.namespace()]
	if !known {
		err = q.checkWriteBudget(j.namespace(), now)
		namespaces[j.namespace()] = err
	}
	return err
}

// CheckDeferred returns why no request of a Service is sent to Azure now: its spec was rejected or its namespace has no
// write budget left. It does not call Azure. narrows marks a Service that only admits fewer clients than
// before.
func (b *LoadBalancers) CheckDeferred(name string, desired *service.Spec, retryToken string, narrows bool, now time.Time) error {
	if err := b.checkRejections(rejectionKeyOf(name, desired), desired, retryToken, now); err != nil || desired == nil || narrows {
		return err
	}
	namespace, _, _ := strings.Cut(name, "/")
	return b.checkWriteBudget(namespace, now)
}

// RejectedPrefix begins the message of a deferral after a rejection.
const RejectedPrefix = "Azure rejected "

// Reasons of deferrals; values of a metric label.
const (
	deferredObject    = "rejected service"
	deferredNamespace = "rejected writes"
	deferredShare     = "share used"
)

func (b *LoadBalancers) checkRejections(key string, desired *service.Spec, retryToken string, now time.Time) error {
	until, err := b.rejections.ObjectRetryAt(key, func() string { return specHash(desired, retryToken) }, now)
	if err == nil {
		return nil
	}
	return b.deferUntil(deferredObject, until, fmt.Errorf(RejectedPrefix+"it, and another try follows at %s: %w", until.UTC().Format(time.RFC3339), err))
}

func (b *LoadBalancers) checkWriteBudget(namespace string, now time.Time) error {
	if until := b.rejections.NamespaceRetryAt(namespace, now); until.After(now) {
		return b.deferUntil(deferredNamespace, until, fmt.Errorf(RejectedPrefix+"the last writes for Services of namespace %s: correct them; "+
			"until then each Service of the namespace waits for its turn", namespace))
	}
	if b.cfg.Writes == nil {
		return nil
	}
	_, _, suspect := b.rejections.BatchLimit(namespace, now)
	if d, is := b.cfg.Writes.DeferService(b.cfg.Place.SubscriptionID, namespace, suspect, now); is {
		return b.deferUntil(deferredShare, d.Until, errors.New(d.String()))
	}
	return nil
}

func (b *LoadBalancers) deferUntil(reason string, until time.Time, err error) error {
	if b.cfg.OnDeferred != nil {
		b.cfg.OnDeferred(reason)
	}
	return armerror.NewDeferred(until, err)
}
