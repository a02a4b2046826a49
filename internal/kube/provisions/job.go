// SPDX-License-Identifier: Apache-2.0

package provisions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/kube/jobs"
	"weir.dev/weir/internal/provision"
	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/words"
)

type jobStep struct {
	*run

	step *v1alpha1.ProvisionStep
	key  client.ObjectKey
	ends time.Time
	// awaits is set once the Job was seen running: if it disappears, the attempt fails.
	awaits bool
	said   string
	reader *jobs.Reader
	// listens is when to read the pod's log next.
	listens  time.Time
	listened int
}

// job runs a Job to completion. It adopts a Job of an earlier attempt, which may have failed only
// because the connection was lost.
func (a *run) job(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	input, is := a.inputOf(step), a.status(step.Name)
	if is.Input == input && is.DoneAt != nil {
		a.says("nothing has changed since it was done")
		return nil
	}
	j := a.jobOf(ctx, step)
	if err := j.reader.Hide(ctx, j.key.Namespace, step.Job.Env); err != nil {
		return err
	}
	defer j.reader.TellHeard() // on every return path
	runCtx, cancel := context.WithDeadline(ctx, j.ends.Add(-graceOf(time.Until(j.ends))))
	defer cancel()
	for n := 1; ctx.Err() == nil; n++ {
		if runCtx.Err() != nil {
			return j.timeIsOver(ctx)
		}
		job, err := j.get(ctx)
		if err != nil {
			return err
		}
		seen := jobs.Seen(job)
		do := provision.NextOfJob(seen, is.Input == input, a.p.Status.AttemptNumber)
		if do == provision.MakeJob && is.Input != input { // record the input first: it identifies the Job
			is.Input, is.DoneAt, is.Applied = input, nil, 0
			err = a.records(ctx, is)
		}
		switch {
		case err != nil:
			return err
		case do == provision.AwaitJob:
			j.awaits = j.awaits || !seen.Leaving
			j.watchPod(ctx, job)
			j.listen(runCtx, job)
			_ = sleep.For(runCtx, looks.After(n))
		case do != provision.SettleJob:
			err = j.does(ctx, do, job)
		default:
			if err = j.settle(ctx, job, seen.End); err == nil {
				return a.done(ctx, is)
			}
		}
		if err != nil {
			return fmt.Errorf("Job %s %w", j.key, err) //nolint:staticcheck // it begins with a kind
		}
	}
	return fmt.Errorf("Job %s: %w", j.key, ctx.Err()) //nolint:staticcheck // it begins with a kind
}

func (j *jobStep) does(ctx context.Context, do provision.JobDo, job *batchv1.Job) error {
	switch do {
	case provision.MakeJob:
		if j.awaits {
			return errors.New("is gone: somebody has deleted it")
		}
		return j.make(ctx)
	case provision.TakeJob:
		return j.take(ctx, job)
	case provision.RemoveJob:
		return j.remove(ctx, job)
	}
	return nil
}

func (a *run) jobOf(ctx context.Context, step *v1alpha1.ProvisionStep) *jobStep {
	ends, ok := ctx.Deadline()
	if !ok {
		ends = time.Now().Add(provision.BuiltIn().AttemptTimeout)
	}
	key := client.ObjectKey{Namespace: cmp.Or(step.Job.Namespace, a.target.namespace), Name: jobs.Name(a.p.UID, step.Name)}
	return &jobStep{run: a, step: step, key: key, ends: ends, reader: &jobs.Reader{API: a.target, Pods: a.target.pods, Log: a.log}}
}

// mostGrace is how long before its deadline an attempt gives up its Job, to read the log over a
// slow link.
const mostGrace = 30 * time.Second

func graceOf(left time.Duration) time.Duration { return min(mostGrace, left/4) }

func (j *jobStep) get(ctx context.Context) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	err := j.target.Get(ctx, j.key, job)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("Job %s: %w", j.key, err) //nolint:staticcheck // it begins with a kind
	}
	return job, nil
}

// make creates the Job. AlreadyExists means another process was faster.
func (j *jobStep) make(ctx context.Context) error {
	job := jobs.New(j.p, j.step, j.key, time.Until(j.ends))
	err := j.target.Create(ctx, job, client.FieldOwner(fieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot be made: %w", err)
	}
	j.awaits = true
	j.says("made Job %s", j.key)
	j.keep(ctx, j.log) // the log names the Job
	return nil
}

// take adopts a Job of an earlier attempt until this one's deadline.
func (j *jobStep) take(ctx context.Context, job *batchv1.Job) error {
	patch, err := jobs.Taken(job, j.p.Status.AttemptNumber, time.Now(), j.ends)
	if err == nil {
		err = j.target.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	}
	if err != nil {
		return fmt.Errorf("of an earlier attempt: %w", err)
	}
	j.says("Job %s of an earlier attempt goes on", j.key)
	return nil
}

// remove deletes a Job in the foreground, so that no two run at once.
func (j *jobStep) remove(ctx context.Context, job *batchv1.Job) error {
	err := j.target.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot be deleted: %w", err)
	}
	j.says("deleted Job %s", j.key)
	return nil
}

func (j *jobStep) watchPod(ctx context.Context, job *batchv1.Job) {
	if job.DeletionTimestamp != nil || job.Status.Ready != nil && *job.Status.Ready > 0 {
		return
	}
	pod, err := j.reader.Pod(ctx, job)
	is := "it has no pod yet"
	switch {
	case err != nil:
		is = "its pods cannot be seen: " + err.Error()
	case pod != nil:
		is = jobs.State(pod)
	}
	if is = words.Sentence(j.log.Clean(is), maxStatus); is != j.said {
		j.said = is
		j.says("Job %s: %s", j.key, is)
	}
}

var hearings = backoff.Doubling{First: time.Minute, Max: 5 * time.Minute}

// listen saves the log of a running container, because its node or this process may be lost.
func (j *jobStep) listen(ctx context.Context, job *batchv1.Job) {
	now := time.Now()
	if atWork := job.DeletionTimestamp == nil && job.Status.Ready != nil && *job.Status.Ready > 0; !atWork || now.Before(j.listens) {
		return
	}
	if j.listened++; j.listened > 1 {
		if log := j.reader.Listen(ctx, job); log != nil {
			j.keep(ctx, log)
		}
	}
	j.listens = now.Add(hearings.After(j.listened))
}

func (j *jobStep) settle(ctx context.Context, job *batchv1.Job, end provision.Result) error {
	pod := j.reader.Tell(ctx, job)
	if end == provision.DidSucceed {
		return nil
	}
	why := j.reader.Why(job, pod)
	if end == provision.IsInvalid {
		return invalid("has failed: %s", why)
	}
	return fmt.Errorf("has failed: %s", why)
}

// timeIsOver deletes a Job that missed the deadline, so that it does not block the next attempt.
func (j *jobStep) timeIsOver(ctx context.Context) error {
	over := fmt.Errorf("Job %s was not done in the attempt's time", j.key) //nolint:staticcheck // it begins with a kind
	if j.said != "" {
		over = fmt.Errorf("%w: %s", over, j.said)
	}
	job, err := j.get(ctx)
	if err != nil || job == nil || job.DeletionTimestamp != nil {
		return errors.Join(over, err)
	}
	logCtx, cancel := context.WithTimeout(ctx, time.Until(j.ends)/2) // the other half is for the deletion
	defer cancel()
	j.reader.Tell(logCtx, job)
	return errors.Join(over, j.remove(ctx, job))
}
