// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/service"
)

// isRequestError reports whether one Service may have caused the error: Azure rejected the content. A rejected sign-in,
// missing permissions and deny assignments affect all Services, and a Retry-After forbids the extra writes of a search.
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
	if f, ok := errors.AsType[*armerror.Fault](err); ok && f.Class == armerror.Terminal && (f.Reason == "refused" || f.IsUnauthenticated()) && f.Code != armerror.CodeUnclassified {
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
	if d, ok := b.cfg.Writes.DeferService(b.cfg.Place.SubscriptionID, namespace, suspect, now); ok {
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
