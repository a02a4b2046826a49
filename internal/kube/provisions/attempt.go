// SPDX-License-Identifier: Apache-2.0

package provisions

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
	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/kube/attemptlogs"
	"weir.dev/weir/internal/provision"
	"weir.dev/weir/internal/words"
)

// invalidError is a permanent error: the spec has to change.
type invalidError struct{ error }

func invalid(format string, args ...any) error { return invalidError{fmt.Errorf(format, args...)} }

type run struct {
	room    *Room
	p       *v1alpha1.Provision // with the status this attempt last recorded
	target  *target
	log     *provision.Log
	has     map[string]has
	objects int
	secret  map[thing]bool
}

func (a *run) says(format string, args ...any) {
	a.log.Add(time.Now(), fmt.Sprintf(format, args...))
}

// keep saves the attempt's log. A failed write does not fail the attempt.
func (a *run) keep(ctx context.Context, log *provision.Log) {
	err := a.room.writes.Wait(ctx, a.p.Namespace)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, recordDeadline)
		defer cancel()
		err = attemptlogs.Keep(ctx, a.room.Writer, a.p, log.Text())
	}
	if err != nil {
		a.room.Log.Warn("the log of an attempt is not kept", "provision", a.p.Namespace+"/"+a.p.Name, "err", err)
	}
}

// attempt starts or resumes an attempt. It returns nil if the process stops first. It owns d.p.
func (r *Room) attempt(ctx context.Context, d decided) (end *ended) {
	parent, p := ctx, d.p
	ctx, cancel := context.WithTimeout(ctx, time.Until(d.decision.At))
	defer cancel()
	a := &run{room: r, p: p, log: &provision.Log{}}
	ctx, span := a.spanOfAttempt(ctx)
	defer func() { spanEnds(span, end) }()
	if d.decision.Do == provision.Resume {
		a.resumeLog(ctx)
		a.says("attempt %d goes on, in another process", p.Status.Attempts)
	} else {
		since := ""
		if n := p.Status.AttemptNumber; n != int64(p.Status.Attempts) { // logs are named by AttemptNumber
			since = fmt.Sprintf(", number %d of all", n)
		}
		a.says("attempt %d begins%s", p.Status.Attempts, since)
	}
	step, err := a.steps(ctx)
	if a.target != nil {
		defer a.target.close()
	}
	if errors.Is(err, errGone) {
		return nil
	}
	if parent.Err() != nil { // another process resumes the attempt
		saveCtx, cancel := context.WithTimeout(context.WithoutCancel(parent), recordDeadline)
		defer cancel()
		a.keep(saveCtx, a.log)
		return nil
	}
	now := time.Now()
	end = &ended{policy: d.policy, ProvisionAttempt: v1alpha1.ProvisionAttempt{
		Number: p.Status.AttemptNumber, EndedAt: *microTime(now), Result: string(provision.DidSucceed),
	}}
	if p.Status.StartedAt != nil {
		end.StartedAt = *p.Status.StartedAt
	}
	if err != nil {
		end.Step, end.Result = step, string(provision.DidFail)
		if ctx.Err() != nil {
			err = fmt.Errorf("the attempt's time was over: %w", err)
		}
		if _, is := errors.AsType[invalidError](err); is {
			end.Result = string(provision.IsInvalid)
		}
		end.Message = words.Sentence(a.log.Clean(inShort(err, a.p.Status.Target)), words.MaxMessage-200)
		end.outcome.NotBefore = a.notBefore(err, now)
	}
	end.outcome.Result = provision.Result(end.Result)
	summary := end.Result
	if step != "" {
		summary += ", step " + step
	}
	if end.Message != "" {
		summary += ": " + end.Message
	}
	a.says("attempt %d ends: %s", p.Status.Attempts, summary)
	a.keep(parent, a.log)
	r.Log.Info("attempt to provision has ended", "provision", p.Namespace+"/"+p.Name, "attempt", p.Status.Attempts, "result", end.Result, "step", end.Step, "err", end.Message)
	return end
}

// resumeLog loads the log of an earlier process, if it can be read.
func (a *run) resumeLog(ctx context.Context) {
	hold, err := a.room.reads.Take(ctx, a.p.Namespace, 1)
	if err != nil {
		return
	}
	defer hold.Release()
	kept, _, _ := attemptlogs.Read(ctx, a.room.Live, a.p, a.p.Status.AttemptNumber)
	a.log.Resume(kept)
}

var machinery = strings.NewReplacer(
	"failed to get restmapping: ", "", "failed to get server groups: ", "", "unexpected error when reading response body. Please retry. Original error: ", "",
)

// inShort drops the URL prefix of requests to the target, which tables show separately.
func inShort(err error, target string) string {
	text := machinery.Replace(err.Error())
	urlPrefix, invalid := regexp.Compile(`\b(Get|Post|Put|Patch|Delete) "` + regexp.QuoteMeta(target) + `[/?][^"]*": ((dial|read|write) tcp \S+: ((connect|read|write): )?)?`)
	if target == "" || invalid != nil {
		return text
	}
	return urlPrefix.ReplaceAllString(text, "")
}

// notBefore returns the latest Retry-After, from a response header or a Status.
func (a *run) notBefore(err error, now time.Time) time.Time {
	var at time.Time
	if a.target != nil {
		at = a.target.wire.until()
	}
	if seconds, named := apierrors.SuggestsClientDelay(err); named {
		if retryAt := now.Add(min(time.Duration(seconds), backoff.MaxRetryAfter/time.Second) * time.Second); retryAt.After(at) {
			at = retryAt
		}
	}
	return at
}

func (a *run) steps(ctx context.Context) (string, error) {
	var err error
	if a.target, err = a.room.reach(ctx, a.p, a.log); err != nil {
		return "", err
	}
	a.says("target %s", a.target.name)
	if a.p.Status.Target != a.target.name {
		err := a.room.record(ctx, a.p, func(s *v1alpha1.ProvisionStatus) {
			if s.Target != "" { // it was applied to another target
				s.Steps = nil
			}
			s.Target = a.target.name
		})
		if err != nil {
			return "", err
		}
	}
	if err := a.waitForAnswer(ctx); err != nil {
		return "", err
	}
	return a.eachStep(ctx)
}

func (a *run) status(step string) v1alpha1.StepStatus {
	for _, s := range a.p.Status.Steps {
		if s.Name == step {
			return *s.DeepCopy()
		}
	}
	return v1alpha1.StepStatus{Name: step}
}

func (a *run) records(ctx context.Context, is v1alpha1.StepStatus) error {
	return a.room.record(ctx, a.p, func(s *v1alpha1.ProvisionStatus) {
		for i := range s.Steps {
			if s.Steps[i].Name == is.Name {
				s.Steps[i] = is
				return
			}
		}
		s.Steps = append(s.Steps, is)
	})
}

func (a *run) done(ctx context.Context, is v1alpha1.StepStatus) error {
	is.DoneAt, is.Applied = new(metav1.Now()), 0
	return a.records(ctx, is)
}
