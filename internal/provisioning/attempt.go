// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/provisioning/objects"
	"weir.dev/weir/internal/provisioning/policy"
	"weir.dev/weir/internal/ratelimit"
)

// invalidError is a permanent error: the spec has to change.
type invalidError struct{ error }

func newInvalidError(format string, args ...any) error {
	return invalidError{fmt.Errorf(format, args...)}
}

type run struct {
	reconciler    *Reconciler
	p             *v1alpha1.Provision // with the status this attempt last recorded
	target        *target
	log           *policy.Log
	objectsByStep map[string]objectSet
	objectCount   int
	fromSecret    map[objectID]bool
}

func (r *run) logf(format string, args ...any) {
	r.log.AddLine(time.Now(), fmt.Sprintf(format, args...))
}

// saveLog saves the attempt's log. A failed write does not fail the attempt.
func (r *run) saveLog(ctx context.Context, log *policy.Log) {
	err := r.reconciler.writes.Wait(ctx, r.p.Namespace)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, recordTimeout)
		defer cancel()
		err = objects.KeepLog(ctx, r.reconciler.Writer, r.p, log.Text())
	}
	if err != nil {
		r.reconciler.Log.Warn("the log of an attempt is not kept", "provision", r.p.Namespace+"/"+r.p.Name, "err", err)
	}
}

// runAttempt starts or resumes an attempt. It returns nil if the process stops first. It owns d.p.
func (r *Reconciler) runAttempt(ctx context.Context, d reconcilePlan) (end *attemptResult) {
	parent, p := ctx, d.p
	ctx, cancel := context.WithTimeout(ctx, time.Until(d.decision.At))
	defer cancel()
	a := &run{reconciler: r, p: p, log: &policy.Log{}}
	ctx, span := a.startSpan(ctx)
	defer func() { endSpan(span, end) }()
	if d.decision.Action == policy.ResumeAttempt {
		a.loadLog(ctx)
		a.logf("attempt %d continues in another process", p.Status.Attempts)
	} else {
		since := ""
		if n := p.Status.AttemptNumber; n != int64(p.Status.Attempts) { // logs are named by AttemptNumber
			since = fmt.Sprintf(", number %d of all", n)
		}
		a.logf("attempt %d begins%s", p.Status.Attempts, since)
	}
	step, err := a.runSteps(ctx)
	if a.target != nil {
		defer a.target.close()
	}
	if errors.Is(err, errDeleted) {
		return nil
	}
	if parent.Err() != nil { // another process resumes the attempt
		saveCtx, cancel := context.WithTimeout(context.WithoutCancel(parent), recordTimeout)
		defer cancel()
		a.saveLog(saveCtx, a.log)
		return nil
	}
	now := time.Now()
	end = &attemptResult{policy: d.policy, ProvisionAttempt: v1alpha1.ProvisionAttempt{
		Number: p.Status.AttemptNumber, EndedAt: *microTime(now), Result: string(policy.ResultSucceeded),
	}}
	if p.Status.StartedAt != nil {
		end.StartedAt = *p.Status.StartedAt
	}
	if err != nil {
		end.Step, end.Result = step, string(policy.ResultFailed)
		if ctx.Err() != nil {
			err = fmt.Errorf("the attempt's time was over: %w", err)
		}
		if _, ok := errors.AsType[invalidError](err); ok {
			end.Result = string(policy.ResultInvalid)
		}
		end.Message = humanize.FormatMessage(a.log.CleanText(shortenError(err, a.p.Status.Target)), humanize.MaxMessage-200)
		end.outcome.NotBefore = a.retryAfter(err, now)
	}
	end.outcome.Result = policy.Result(end.Result)
	summary := end.Result
	if step != "" {
		summary += ", step " + step
	}
	if end.Message != "" {
		summary += ": " + end.Message
	}
	a.logf("attempt %d ends: %s", p.Status.Attempts, summary)
	a.saveLog(parent, a.log)
	r.Log.Info("attempt to provision has ended", "provision", p.Namespace+"/"+p.Name, "attempt", p.Status.Attempts, "result", end.Result, "step", end.Step, "err", end.Message)
	return end
}

// loadLog loads the log of an earlier process, if it can be read.
func (r *run) loadLog(ctx context.Context) {
	hold, err := r.reconciler.serialReads.Acquire(ctx, r.p.Namespace, 1)
	if err != nil {
		return
	}
	defer hold.Release()
	kept, _, _ := objects.ReadLog(ctx, r.reconciler.Live, r.p, r.p.Status.AttemptNumber)
	r.log.Resume(kept)
}

var errorPrefixes = strings.NewReplacer(
	"failed to get restmapping: ", "", "failed to get server groups: ", "", "unexpected error when reading response body. Please retry. Original error: ", "",
)

// shortenError drops the URL prefix of requests to the target, which tables show separately.
func shortenError(err error, target string) string {
	text := errorPrefixes.Replace(err.Error())
	urlPrefix, invalid := regexp.Compile(`\b(Get|Post|Put|Patch|Delete) "` + regexp.QuoteMeta(target) + `[/?][^"]*": ((dial|read|write) tcp \S+: ((connect|read|write): )?)?`)
	if target == "" || invalid != nil {
		return text
	}
	return urlPrefix.ReplaceAllString(text, "")
}

// retryAfter returns the latest Retry-After, from a response header or a Status.
func (r *run) retryAfter(err error, now time.Time) time.Time {
	var at time.Time
	if r.target != nil {
		at = r.target.transport.retryAfter()
	}
	if seconds, named := apierrors.SuggestsClientDelay(err); named {
		if retryAt := now.Add(min(time.Duration(seconds), ratelimit.MaxRetryAfter/time.Second) * time.Second); retryAt.After(at) {
			at = retryAt
		}
	}
	return at
}

func (r *run) runSteps(ctx context.Context) (string, error) {
	var err error
	if r.target, err = r.reconciler.connectTarget(ctx, r.p, r.log); err != nil {
		return "", err
	}
	r.logf("target %s", r.target.name)
	if r.p.Status.Target != r.target.name {
		err := r.reconciler.updateStatus(ctx, r.p, func(s *v1alpha1.ProvisionStatus) {
			if s.Target != "" { // it was applied to another target
				s.Steps = nil
			}
			s.Target = r.target.name
		})
		if err != nil {
			return "", err
		}
	}
	if err := r.waitForTarget(ctx); err != nil {
		return "", err
	}
	return r.runInOrder(ctx)
}

func (r *run) stepStatus(step string) v1alpha1.StepStatus {
	for _, s := range r.p.Status.Steps {
		if s.Name == step {
			return *s.DeepCopy()
		}
	}
	return v1alpha1.StepStatus{Name: step}
}

func (r *run) recordStep(ctx context.Context, status v1alpha1.StepStatus) error {
	return r.reconciler.updateStatus(ctx, r.p, func(s *v1alpha1.ProvisionStatus) {
		for i := range s.Steps {
			if s.Steps[i].Name == status.Name {
				s.Steps[i] = status
				return
			}
		}
		s.Steps = append(s.Steps, status)
	})
}

func (r *run) completeStep(ctx context.Context, status v1alpha1.StepStatus) error {
	status.DoneAt, status.Applied = new(metav1.Now()), 0
	return r.recordStep(ctx, status)
}
