// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/humanize"
)

// CheckPods returns what keeps pods from being ready, one finding for each cause.
func (i *Installation) CheckPods() []Finding {
	if i.Deployment == nil || i.isReady() || i.PodsUnseen {
		return nil
	}
	severity := Warn
	if i.Deployment.Status.ReadyReplicas == 0 {
		severity = Fail
	}
	var findings []Finding
	of := map[int][]string{}
	slices.SortFunc(i.Pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	for n := range i.Pods {
		reason, do := i.podProblem(&i.Pods[n])
		if reason == "" {
			continue
		}
		at := slices.IndexFunc(findings, func(f Finding) bool { return f.Why == reason })
		if at < 0 {
			at, findings = len(findings), append(findings, Finding{severity, reason, do})
		}
		of[at] = append(of[at], i.Pods[n].Name)
	}
	for n := range findings {
		findings[n].Why = podNames(of[n]) + ": " + findings[n].Why
		findings[n].Fix = strings.ReplaceAll(findings[n].Fix, "POD", of[n][0])
	}
	return findings
}

func podNames(names []string) string {
	if len(names) == 1 {
		return "pod " + names[0]
	}
	return "pods " + humanize.FormatList(names, 2)
}

// podProblem returns why a pod is not ready; empty if it is. POD in the fix is its name.
func (i *Installation) podProblem(p *corev1.Pod) (reason, do string) {
	if c := podCondition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return "", ""
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if message, do := i.containerProblem(s); message != "" {
			return message, do
		}
	}
	describe := fmt.Sprintf("kubectl -n %s describe pod POD", p.Namespace)
	if c := podCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return "no node: " + c.Message, "make room on a node, or let Weir's pods run on another one (nodeSelector, tolerations): " + describe
	}
	if e, ok := i.warnings[string(p.UID)]; ok {
		return fmt.Sprintf("not started: %s: %s", e.Reason, e.Message), i.eventRemedy(e, describe)
	}
	if p.Status.Phase == corev1.PodFailed {
		return fmt.Sprintf("failed: %s: %s", p.Status.Reason, p.Status.Message), describe
	}
	if p.Status.Phase == corev1.PodRunning {
		return "running but not ready: the API server does not respond, or Weir lacks a permission", fmt.Sprintf("kubectl -n %s logs POD", p.Namespace)
	}
	return "not started yet", describe
}

func (i *Installation) eventRemedy(e corev1.Event, otherwise string) string {
	if e.Reason != "FailedMount" {
		return otherwise
	}
	return "create what the message names: a Secret with azure.json is created by " + i.createSecretCommand()
}

func podCondition(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	at := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &p.Status.Conditions[at]
}

func (i *Installation) containerProblem(s corev1.ContainerStatus) (reason, do string) {
	namespace, waiting := i.Deployment.Namespace, s.State.Waiting
	switch {
	case waiting == nil:
	case waiting.Reason == "ImagePullBackOff", waiting.Reason == "ErrImagePull", waiting.Reason == "InvalidImageName", waiting.Reason == "ErrImageNeverPull":
		return fmt.Sprintf("image %s cannot be pulled (%s): %s", s.Image, waiting.Reason, waiting.Message),
			fmt.Sprintf("set an image that exists (kubectl -n %s set image deployment/%s %s=REGISTRY/weir:VERSION), or give the pods the rights to pull it (imagePullSecrets)", namespace, i.Deployment.Name, s.Name)
	case waiting.Reason == "CreateContainerConfigError", waiting.Reason == "CreateContainerError", waiting.Reason == "RunContainerError":
		return fmt.Sprintf("container %s cannot be started (%s): %s", s.Name, waiting.Reason, waiting.Message),
			"create what the message names, such as a Secret or a key of it, or change the Deployment"
	}
	ended := s.LastTerminationState.Terminated
	if ended == nil {
		ended = s.State.Terminated
	}
	if ended == nil {
		return "", ""
	}
	reason = fmt.Sprintf("ended %s, the last time with exit code %d (%s)", humanize.FormatCount(int(max(1, s.RestartCount)), "time"), ended.ExitCode, ended.Reason)
	logs := fmt.Sprintf("kubectl -n %s logs POD --previous", namespace)
	message := lastLine(ended.Message)
	switch {
	case ended.Reason == "OOMKilled":
		return reason, "give it more memory; docs/reference/support.md#sizing has what it needs"
	case message == "":
		return reason, "the last line of its log has the cause: " + logs
	case ended.ExitCode == 2:
		return reason + ": " + message, "change the setting that the message names, then kubectl -n " + namespace + " rollout restart deployment " + i.Deployment.Name
	}
	return reason + ": " + message, "fix what the message names; for earlier lines: " + logs
}

// lastLine returns the last line of a termination message, which is the end of the log.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
