// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"encoding/json"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/provisioning/policy"
)

// JobState converts a Job for policy.NextJobAction.
func JobState(job *batchv1.Job) *policy.Job {
	if job == nil {
		return nil
	}
	number, _ := strconv.ParseInt(job.Annotations[AttemptAnnotation], 10, 64) // 0 means no attempt
	state := &policy.Job{Deleting: job.DeletionTimestamp != nil, Attempt: number}
	switch failed := jobCondition(job, batchv1.JobFailed); {
	case jobCondition(job, batchv1.JobComplete) != nil:
		state.End = policy.ResultSucceeded
	case failed != nil && failed.Reason == batchv1.JobReasonPodFailurePolicy:
		state.End = policy.ResultInvalid
	case failed != nil:
		state.End = policy.ResultFailed
	}
	return state
}

func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Type == kind && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

// AdoptJobPatch returns the patch that assigns a Job to another attempt. activeDeadlineSeconds counts from
// the Job's start.
func AdoptJobPatch(job *batchv1.Job, attempt int64, now, ends time.Time) ([]byte, error) {
	remaining := ends.Sub(now)
	if job.Status.StartTime != nil {
		remaining += max(0, now.Sub(job.Status.StartTime.Time))
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": job.UID, "annotations": map[string]string{AttemptAnnotation: strconv.FormatInt(attempt, 10)}},
		"spec":     map[string]any{"activeDeadlineSeconds": DeadlineSeconds(remaining)},
	})
}
