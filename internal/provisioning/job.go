// SPDX-License-Identifier: Apache-2.0

package provisioning

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
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/provisioning/policy"
	"weir.dev/weir/internal/ratelimit"
)

type jobStep struct {
	*run

	step     *v1alpha1.ProvisionStep
	key      client.ObjectKey
	deadline time.Time
	// seenRunning is set once the Job was seen running: if it disappears, the attempt fails.
	seenRunning bool
	lastMessage string
	reader      *JobLogReader
	// nextRead is when to read the pod's log next.
	nextRead  time.Time
	readCount int
}

// runJob runs a Job to completion. It adopts a Job of an earlier attempt, which may have failed only
// because the connection was lost.
func (r *run) runJob(ctx context.Context, step *v1alpha1.ProvisionStep) error {
	input, status := r.inputDigest(step), r.stepStatus(step.Name)
	if status.Input == input && status.DoneAt != nil {
		r.logf("nothing has changed since it was done")
		return nil
	}
	j := r.newJobStep(ctx, step)
	if err := j.reader.HideSecrets(ctx, j.key.Namespace, step.Job.Env); err != nil {
		return err
	}
	defer j.reader.AppendTail() // on every return path
	runCtx, cancel := context.WithDeadline(ctx, j.deadline.Add(-gracePeriod(time.Until(j.deadline))))
	defer cancel()
	for n := 1; ctx.Err() == nil; n++ {
		if runCtx.Err() != nil {
			return j.expireJob(ctx)
		}
		job, err := j.getJob(ctx)
		if err != nil {
			return err
		}
		seen := JobState(job)
		do := policy.NextJobAction(seen, status.Input == input, r.p.Status.AttemptNumber)
		if do == policy.CreateJob && status.Input != input { // record the input first: it identifies the Job
			status.Input, status.DoneAt, status.Applied = input, nil, 0
			err = r.recordStep(ctx, status)
		}
		switch {
		case err != nil:
			return err
		case do == policy.WaitForJob:
			j.seenRunning = j.seenRunning || !seen.Deleting
			j.logPodState(ctx, job)
			j.readLog(runCtx, job)
			_ = ratelimit.Sleep(runCtx, pollInterval.DelayAfter(n))
		case do != policy.FinishJob:
			err = j.executeAction(ctx, do, job)
		default:
			if err = j.finishJob(ctx, job, seen.End); err == nil {
				return r.completeStep(ctx, status)
			}
		}
		if err != nil {
			return fmt.Errorf("Job %s %w", j.key, err) //nolint:staticcheck // it begins with a kind
		}
	}
	return fmt.Errorf("Job %s: %w", j.key, ctx.Err()) //nolint:staticcheck // it begins with a kind
}

func (j *jobStep) executeAction(ctx context.Context, do policy.JobAction, job *batchv1.Job) error {
	switch do {
	case policy.CreateJob:
		if j.seenRunning {
			return errors.New("was deleted by another client")
		}
		return j.createJob(ctx)
	case policy.AdoptJob:
		return j.adoptJob(ctx, job)
	case policy.DeleteJob:
		return j.deleteJob(ctx, job)
	}
	return nil
}

func (r *run) newJobStep(ctx context.Context, step *v1alpha1.ProvisionStep) *jobStep {
	ends, ok := ctx.Deadline()
	if !ok {
		ends = time.Now().Add(policy.DefaultPolicy().AttemptTimeout)
	}
	key := client.ObjectKey{Namespace: cmp.Or(step.Job.Namespace, r.target.namespace), Name: JobName(r.p.UID, step.Name)}
	return &jobStep{run: r, step: step, key: key, deadline: ends, reader: &JobLogReader{API: r.target, Pods: r.target.pods, Log: r.log}}
}

// maxGrace is how long before its deadline an attempt gives up its Job, to read the log over a
// slow link.
const maxGrace = 30 * time.Second

func gracePeriod(remaining time.Duration) time.Duration { return min(maxGrace, remaining/4) }

func (j *jobStep) getJob(ctx context.Context) (*batchv1.Job, error) {
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

// createJob creates the Job. AlreadyExists means another process was faster.
func (j *jobStep) createJob(ctx context.Context) error {
	job := NewJob(j.p, j.step, j.key, time.Until(j.deadline))
	err := j.target.Create(ctx, job, client.FieldOwner(fieldManager))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot be made: %w", err)
	}
	j.seenRunning = true
	j.logf("made Job %s", j.key)
	j.saveLog(ctx, j.log) // the log names the Job
	return nil
}

// adoptJob adopts a Job of an earlier attempt until this one's deadline.
func (j *jobStep) adoptJob(ctx context.Context, job *batchv1.Job) error {
	patch, err := AdoptJobPatch(job, j.p.Status.AttemptNumber, time.Now(), j.deadline)
	if err == nil {
		err = j.target.Patch(ctx, job, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldManager))
	}
	if err != nil {
		return fmt.Errorf("of an earlier attempt: %w", err)
	}
	j.logf("Job %s of an earlier attempt continues", j.key)
	return nil
}

// deleteJob deletes a Job in the foreground, so that no two run at once.
func (j *jobStep) deleteJob(ctx context.Context, job *batchv1.Job) error {
	err := j.target.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationForeground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot be deleted: %w", err)
	}
	j.logf("deleted Job %s", j.key)
	return nil
}

func (j *jobStep) logPodState(ctx context.Context, job *batchv1.Job) {
	if job.DeletionTimestamp != nil || job.Status.Ready != nil && *job.Status.Ready > 0 {
		return
	}
	pod, err := j.reader.NewestPod(ctx, job)
	text := "it has no pod yet"
	switch {
	case err != nil:
		text = "its pods cannot be seen: " + err.Error()
	case pod != nil:
		text = PodState(pod)
	}
	if text = humanize.FormatMessage(j.log.CleanText(text), maxStatusMessage); text != j.lastMessage {
		j.lastMessage = text
		j.logf("Job %s: %s", j.key, text)
	}
}

var logInterval = ratelimit.Exponential{Initial: time.Minute, Max: 5 * time.Minute}

// readLog saves the log of a running container, because its node or this process may be lost.
func (j *jobStep) readLog(ctx context.Context, job *batchv1.Job) {
	now := time.Now()
	if atWork := job.DeletionTimestamp == nil && job.Status.Ready != nil && *job.Status.Ready > 0; !atWork || now.Before(j.nextRead) {
		return
	}
	if j.readCount++; j.readCount > 1 {
		if log := j.reader.ReadTail(ctx, job); log != nil {
			j.saveLog(ctx, log)
		}
	}
	j.nextRead = now.Add(logInterval.DelayAfter(j.readCount))
}

func (j *jobStep) finishJob(ctx context.Context, job *batchv1.Job, end policy.Result) error {
	pod := j.reader.CopyLog(ctx, job)
	if end == policy.ResultSucceeded {
		return nil
	}
	reason := j.reader.FailureMessage(job, pod)
	if end == policy.ResultInvalid {
		return newInvalidError("has failed: %s", reason)
	}
	return fmt.Errorf("has failed: %s", reason)
}

// expireJob deletes a Job that missed the deadline, so that it does not block the next attempt.
func (j *jobStep) expireJob(ctx context.Context) error {
	over := fmt.Errorf("Job %s was not done in the attempt's time", j.key) //nolint:staticcheck // it begins with a kind
	if j.lastMessage != "" {
		over = fmt.Errorf("%w: %s", over, j.lastMessage)
	}
	job, err := j.getJob(ctx)
	if err != nil || job == nil || job.DeletionTimestamp != nil {
		return errors.Join(over, err)
	}
	logCtx, cancel := context.WithTimeout(ctx, time.Until(j.deadline)/2) // the other half is for the deletion
	defer cancel()
	j.reader.CopyLog(logCtx, job)
	return errors.Join(over, j.deleteJob(ctx, job))
}
