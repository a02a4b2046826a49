// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// Annotations of Jobs.
const (
	ProvisionAnnotation = "weir.dev/provision"
	StepAnnotation      = "weir.dev/step"
	AttemptAnnotation   = "weir.dev/attempt"
)

// JobContainer is the name of the Job's container.
const JobContainer = "step"

// jobTTL covers days without a connection, after which the Job must not run again.
const jobTTL = 7 * 24 * time.Hour

// JobName returns the deterministic Job name of a step, so that the API server allows only one.
func JobName(of types.UID, step string) string {
	sum := sha256.Sum256([]byte(string(of) + "/" + step))
	return fmt.Sprintf("weir-%s-%s", strings.TrimRight(step[:min(len(step), 24)], "-"), hex.EncodeToString(sum[:8]))
}

// NewJob returns the Job of a step. Only an evicted pod is replaced, because Weir decides about
// retries.
func NewJob(p *v1alpha1.Provision, step *v1alpha1.ProvisionStep, key client.ObjectKey, remaining time.Duration) *batchv1.Job {
	labels := map[string]string{"app.kubernetes.io/managed-by": "weir"}
	about := map[string]string{
		ProvisionAnnotation: p.Namespace + "/" + p.Name, StepAnnotation: step.Name,
		AttemptAnnotation: strconv.FormatInt(p.Status.AttemptNumber, 10),
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels, Annotations: about},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), PodReplacementPolicy: new(batchv1.Failed), PodFailurePolicy: failurePolicy(step.Job.TerminalExitCodes),
			ActiveDeadlineSeconds: new(DeadlineSeconds(remaining)), TTLSecondsAfterFinished: new(int32(jobTTL / time.Second)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{ProvisionAnnotation: about[ProvisionAnnotation], StepAnnotation: step.Name}},
				Spec:       podSpec(step.Job),
			},
		},
	}
}

// failurePolicy ignores evictions, including their exit codes, and makes terminal exit codes
// permanent.
func failurePolicy(terminal []int32) *batchv1.PodFailurePolicy {
	rules := []batchv1.PodFailurePolicyRule{{
		Action:          batchv1.PodFailurePolicyActionIgnore,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
	}}
	if len(terminal) > 0 {
		rules = append(rules, batchv1.PodFailurePolicyRule{
			Action:      batchv1.PodFailurePolicyActionFailJob,
			OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{ContainerName: new(JobContainer), Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: terminal},
		})
	}
	return &batchv1.PodFailurePolicy{Rules: rules}
}

// podSpec returns a pod spec with minimal privileges.
func podSpec(s *v1alpha1.JobStep) corev1.PodSpec {
	c := corev1.Container{
		Name: JobContainer, Image: s.Image, Command: s.Command, Args: s.Args,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext:          &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
	}
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: s.ServiceAccountName,
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
	}
	if s.ServiceAccountName == "" {
		pod.AutomountServiceAccountToken = new(false)
	}
	if s.RunAsUser != nil {
		pod.SecurityContext.RunAsNonRoot, pod.SecurityContext.RunAsUser, pod.SecurityContext.FSGroup = new(true), s.RunAsUser, s.RunAsUser
		c.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	for _, e := range s.Env {
		env := corev1.EnvVar{Name: e.Name, Value: e.Value}
		if ref := e.SecretKeyRef; ref != nil {
			env.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name}, Key: ref.Key}}
		}
		c.Env = append(c.Env, env)
	}
	if s.Resources != nil {
		c.Resources = corev1.ResourceRequirements{Requests: resourceList(s.Resources.Requests), Limits: resourceList(s.Resources.Limits)}
	}
	for i, v := range s.Volumes {
		name := fmt.Sprintf("volume-%d", i)
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: v.MountPath})
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.ClaimName},
		}})
	}
	pod.Containers = []corev1.Container{c}
	return pod
}

func resourceList(of map[string]resource.Quantity) corev1.ResourceList {
	if len(of) == 0 {
		return nil
	}
	list := corev1.ResourceList{}
	for name, quantity := range of {
		list[corev1.ResourceName(name)] = quantity
	}
	return list
}

// DeadlineSeconds returns whole seconds, at least one, as the API server requires.
func DeadlineSeconds(d time.Duration) int64 { return max(1, int64(d/time.Second)) }
