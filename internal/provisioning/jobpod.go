// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewestPod returns the newest pod of a Job, or nil.
func (r *JobLogReader) NewestPod(ctx context.Context, job *batchv1.Job) (*corev1.Pod, error) {
	var pods corev1.PodList
	err := r.API.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)})
	if err != nil || len(pods.Items) == 0 {
		return nil, err
	}
	newest := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return &newest, nil
}

// PodState describes the state of a pod.
func PodState(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Terminated != nil:
			return fmt.Sprintf("its pod %s ended with exit code %d", pod.Name, c.State.Terminated.ExitCode)
		case c.State.Waiting != nil:
			return fmt.Sprintf("its pod %s waits: %s %s", pod.Name, c.State.Waiting.Reason, c.State.Waiting.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("its pod %s has no node: %s", pod.Name, c.Message)
		}
	}
	return fmt.Sprintf("its pod %s is %s", pod.Name, cmp.Or(string(pod.Status.Phase), "new"))
}

// FailureMessage describes why a Job failed.
func (r *JobLogReader) FailureMessage(job *batchv1.Job, pod *corev1.Pod) string {
	reason := ""
	if c := jobCondition(job, batchv1.JobFailed); c != nil {
		reason = fmt.Sprintf("%s: %s", c.Reason, c.Message)
	}
	if pod == nil {
		return reason
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			continue
		}
		reason = fmt.Sprintf("exit code %d (%s)", c.State.Terminated.ExitCode, reason)
		if last := lastLine(c.State.Terminated.Message); last != "" && r.hiddenReason == nil {
			reason = fmt.Sprintf("exit code %d: %s", c.State.Terminated.ExitCode, r.cleanLine(last))
		}
	}
	return reason
}

// lastLine returns the last line of a message unless it may be cut, which may split a secret.
func lastLine(message string) string {
	message = strings.TrimSpace(message)
	i := strings.LastIndexByte(message, '\n')
	if i < 0 && len(message) >= 2000 {
		return ""
	}
	return message[i+1:]
}
