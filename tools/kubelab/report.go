// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/version"
)

// bindPod schedules a pod. If no node fits, the pod remains pending until nodeSeen queues it again.
func (k *kubelet) bindPod(ctx context.Context, pod *corev1.Pod) error {
	nodes, err := k.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	k.mu.Lock()
	node, ok := pickNode(nodes, k.lastNode, pod)
	if ok {
		k.lastNode = node.Name
	}
	k.mu.Unlock()
	if !ok {
		return nil
	}
	err = k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node.Name},
	}, metav1.CreateOptions{})
	if apierrors.IsConflict(err) {
		return nil // already bound; the cache is stale
	}
	return ignoreNotFound(err)
}

func (k *kubelet) reportRunning(ctx context.Context, pod *corev1.Pod, node *corev1.Node) error {
	hosts := hostIPs(node)
	status := corev1.PodStatus{Phase: corev1.PodRunning}
	if pod.Spec.HostNetwork {
		if len(hosts) == 0 {
			return fmt.Errorf("pod %s/%s wants its host's network, and node %s has no InternalIP", pod.Namespace, pod.Name, node.Name)
		}
		for _, h := range hosts {
			status.PodIPs = append(status.PodIPs, corev1.PodIP(h))
		}
	} else {
		k.mu.Lock()
		n, ok := k.addresses.take(pod.UID)
		k.mu.Unlock()
		if !ok {
			return errors.New("all 65,535 pod addresses are in use")
		}
		status.PodIPs = podIPs(n, k.dualStack)
	}
	status.PodIP = status.PodIPs[0].IP
	if len(hosts) > 0 {
		status.HostIP, status.HostIPs = hosts[0].IP, hosts
	}
	now := metav1.Now()
	if pod.Status.StartTime == nil {
		status.StartTime = &now
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	ready, reason := corev1.ConditionTrue, ""
	if !readinessGatesOpen(pod) {
		ready, reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
	}
	status.Conditions = []corev1.PodCondition{
		condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue, ""),
		condition(corev1.PodInitialized, corev1.ConditionTrue, ""),
		condition(corev1.ContainersReady, corev1.ConditionTrue, ""),
		condition(corev1.PodReady, ready, reason),
	}
	return k.patchPod(ctx, pod, status)
}

func (k *kubelet) reportTerminated(ctx context.Context, pod *corev1.Pod) error {
	code, now := exitCodeOf(pod), metav1.Now()
	status := corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{
		condition(corev1.ContainersReady, corev1.ConditionFalse, "PodFailed"), condition(corev1.PodReady, corev1.ConditionFalse, "PodFailed"),
	}}
	if code == 0 {
		status.Phase = corev1.PodSucceeded
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: now}},
		})
	}
	return k.patchPod(ctx, pod, status)
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.Now()}
}

func hostIPs(node *corev1.Node) (ips []corev1.HostIP) {
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			ips = append(ips, corev1.HostIP{IP: a.Address})
		}
	}
	return ips
}

// patchPod merges status into the pod's status. The UID protects a new pod with the same name.
func (k *kubelet) patchPod(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreNotFound(err)
}

func (k *kubelet) syncNode(ctx context.Context, name string) error {
	node, err := k.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isDead(node) {
		k.mu.Lock()
		delete(k.since, node.UID)
		k.mu.Unlock()
	}
	ready, taints := desiredNode(node)
	if nodeReady(node) != ready {
		if err := k.patchNode(ctx, name, map[string]any{"status": nodeStatus(node, ready)}, "status"); err != nil {
			return err
		}
	}
	if sameTaints(taints, node.Spec.Taints) {
		return nil
	}
	// Replacing the taints fails on conflict, for example after our own status patch of a new node. The
	// update event that follows queues the node again.
	return k.patchNode(ctx, name, map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
}

// nodeStatus returns the status patch for a node's readiness, including what a new node lacks.
func nodeStatus(node *corev1.Node, ready corev1.ConditionStatus) map[string]any {
	c := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		Reason: "KubeletReady", Message: "the fake kubelet is posting ready status",
	}
	if ready != corev1.ConditionTrue {
		c.Reason, c.Message = "NodeStatusUnknown", "Kubelet stopped posting node status."
	}
	status := map[string]any{"conditions": []corev1.NodeCondition{c}}
	if node.Status.NodeInfo.KubeletVersion == "" {
		status["nodeInfo"] = map[string]any{"kubeletVersion": version.Get().GitVersion}
	}
	if len(node.Status.Capacity) == 0 {
		capacity := corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("4"),
			corev1.ResourceMemory: resource.MustParse("16Gi"),
			corev1.ResourcePods:   resource.MustParse("250"),
		}
		status["capacity"], status["allocatable"] = capacity, capacity
	}
	return status
}

func (k *kubelet) patchNode(ctx context.Context, name string, change map[string]any, subresources ...string) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, subresources...)
	return ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
