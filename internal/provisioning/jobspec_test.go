// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"regexp"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
)

// A step's Job name is deterministic, unique per step, and short enough for its pods' names and
// labels.
func TestLawNamesOfJobs(t *testing.T) {
	fits := regexp.MustCompile(`^weir-[a-z0-9]([-a-z0-9]*[a-z0-9])?-[0-9a-f]{16}$`)
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
		uid := types.UID(rapid.StringMatching(`[0-9a-f-]{36}`).Draw(t, "uid"))
		a, b := step.Draw(t, "a"), step.Draw(t, "b")
		name := JobName(uid, a)
		if len(name) > 57 || !fits.MatchString(name) || name != JobName(uid, a) || name == JobName(uid+"0", a) {
			t.Fatalf("step %s has Job %s", a, name)
		}
		if a != b && name == JobName(uid, b) {
			t.Fatalf("steps %s and %s have one name, %s", a, b, name)
		}
	})
}

// A container gets what the step specifies and no additional rights.
func TestContainerSpec(t *testing.T) {
	p := &v1alpha1.Provision{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "1"}, Status: v1alpha1.ProvisionStatus{AttemptNumber: 7}}
	of := func(step v1alpha1.JobStep) *batchv1.Job {
		step.Image = "fetch"
		return NewJob(p, &v1alpha1.ProvisionStep{Name: "payload", Job: &step}, client.ObjectKey{Namespace: "edge", Name: "weir-payload"}, 90*time.Second+time.Millisecond)
	}
	plain := of(v1alpha1.JobStep{})
	if pod := plain.Spec.Template.Spec; *pod.AutomountServiceAccountToken || pod.SecurityContext.RunAsUser != nil || *pod.Containers[0].SecurityContext.AllowPrivilegeEscalation || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("a plain one: %+v", pod)
	}
	if s := plain.Spec; *s.BackoffLimit != 0 || *s.ActiveDeadlineSeconds != 90 || len(s.PodFailurePolicy.Rules) != 1 || s.PodFailurePolicy.Rules[0].Action != batchv1.PodFailurePolicyActionIgnore {
		t.Errorf("its Job: %+v", s)
	}
	if JobState(plain).Attempt != 7 {
		t.Errorf("it is of attempt %d", JobState(plain).Attempt)
	}
	full := of(v1alpha1.JobStep{
		ServiceAccountName: "migrate", RunAsUser: new(int64(1000)), TerminalExitCodes: []int32{64},
		Env:       []v1alpha1.JobEnv{{Name: "A", Value: "b"}, {Name: "C", SecretKeyRef: &v1alpha1.SecretKey{Name: "d", Key: "e"}}},
		Resources: &v1alpha1.JobResources{Limits: map[string]resource.Quantity{"memory": resource.MustParse("64Mi")}},
		Volumes:   []v1alpha1.JobVolume{{ClaimName: "payload", MountPath: "/payload"}, {ClaimName: "more", MountPath: "/more"}},
	}).Spec
	pod, c := full.Template.Spec, full.Template.Spec.Containers[0]
	if pod.AutomountServiceAccountToken != nil || pod.ServiceAccountName != "migrate" || !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.FSGroup != 1000 || c.SecurityContext.Capabilities.Drop[0] != "ALL" {
		t.Errorf("whose it is: %+v", pod)
	}
	if ref := c.Env[1].ValueFrom.SecretKeyRef; c.Env[0].Value != "b" || ref.Name != "d" || ref.Key != "e" || !c.Resources.Limits.Memory().Equal(resource.MustParse("64Mi")) {
		t.Errorf("its environment: %+v, %+v", c.Env, c.Resources)
	}
	if pod.Volumes[1].PersistentVolumeClaim.ClaimName != "more" || c.VolumeMounts[1].Name != pod.Volumes[1].Name || c.VolumeMounts[1].MountPath != "/more" {
		t.Errorf("its volumes: %+v, %+v", pod.Volumes, c.VolumeMounts)
	}
	if on := full.PodFailurePolicy.Rules[1]; on.Action != batchv1.PodFailurePolicyActionFailJob || on.OnExitCodes.Values[0] != 64 || *on.OnExitCodes.ContainerName != c.Name {
		t.Errorf("its exit codes: %+v", on)
	}
}

// An adopted Job gets the deadline of the attempt, counted from the Job's start.
func TestTimeOfAJobThatIsTakenOver(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	for began, want := range map[time.Duration]string{0: "1800", -time.Hour: "5400", time.Hour: "1800"} { // also by a clock that is ahead
		job.Status.StartTime = nil
		if began != 0 {
			job.Status.StartTime = &metav1.Time{Time: now.Add(began)}
		}
		patch, err := AdoptJobPatch(job, 8, now, now.Add(30*time.Minute))
		if text := string(patch); err != nil || !strings.Contains(text, `"activeDeadlineSeconds":`+want+`}`) || !strings.Contains(text, `"weir.dev/attempt":"8"`) || !strings.Contains(text, `"uid":"1"`) {
			t.Errorf("begun %s ago: %s, %v", -began, text, err)
		}
	}
}

// Descriptions of pod states.
func TestWordsOfPods(t *testing.T) {
	waits := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}
	for want, status := range map[string]corev1.PodStatus{
		"its pod a is new":                                {},
		"its pod a is Running":                            {Phase: corev1.PodRunning},
		"its pod a waits: ImagePullBackOff no such image": {ContainerStatuses: []corev1.ContainerStatus{{State: waits}}},
		"its pod a has no node: 0/3 nodes are available":  {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}},
		"its pod a ended with exit code 3":                {ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}}},
	} {
		if got := PodState(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: status}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// Messages are cut at the beginning, so a possibly incomplete line is dropped.
func TestLastLineOfAMessage(t *testing.T) {
	long := strings.Repeat("x", 2048)
	for message, want := range map[string]string{"": "", "a\n": "a", "a\nb\n\n": "b", long: "", long + "\nend": "end"} {
		if got := lastLine(message); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
