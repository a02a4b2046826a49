// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

const (
	// deadKey, a label or annotation with the value "true", simulates the loss of a Node's machine: its
	// status and its pods' status are no longer updated.
	deadKey = "kubelab.weir.dev/dead"
	// drainTime is how long a deleted pod keeps serving, capped by its grace period, so that tests can
	// observe endpoints that are terminating and still serving.
	drainTime = time.Second
	// evictAfter is how long pods remain on a dead node; 5 min in Kubernetes.
	evictAfter = 3 * time.Second
	// exitImage is the image prefix of a container that exits by itself; the tag is the exit code.
	exitImage = "kubelab.weir.dev/exit:"
	// exitKilled is the exit code after SIGTERM.
	exitKilled = 143
)

// podStep is the fake kubelet's next action for a pod.
type podStep string

const (
	podWait      podStep = "rest"
	podBind      podStep = "bind"   // assign a node
	podServe     podStep = "serve"  // report running and ready
	podTerminate podStep = "end"    // report terminated containers
	podNotReady  podStep = "silent" // report not ready, because the node is dead
	podRemove    podStep = "remove" // delete without grace period
)

type podState struct {
	pod         *corev1.Pod
	node        *corev1.Node  // the node in spec.nodeName; nil if unset or not cached
	nodeDeleted bool          // the node was deleted
	terminating time.Duration // since the deletion was first observed
	nodeDead    time.Duration // since the node was first observed dead
}

// nextPodStep returns the next action for a pod and when to check again; 0 means on the next change.
func nextPodStep(s podState) (podStep, time.Duration) {
	deleted := s.pod.DeletionTimestamp != nil
	finished := s.pod.Status.Phase == corev1.PodSucceeded || s.pod.Status.Phase == corev1.PodFailed
	switch {
	case s.nodeDeleted:
		return podRemove, 0
	case deleted && (finished || s.pod.Spec.NodeName == ""):
		return podRemove, 0
	case finished:
		return podWait, 0
	case s.pod.Spec.NodeName == "":
		return podBind, 0
	case s.node == nil:
		return podWait, 0
	case isDead(s.node) && s.nodeDead >= evictAfter:
		return podRemove, 0
	case isDead(s.node) && hasCondition(s.pod, corev1.PodReady):
		return podNotReady, evictAfter - s.nodeDead
	case isDead(s.node):
		return podWait, evictAfter - s.nodeDead
	case deleted && s.terminating >= drainPeriod(s.pod) && s.pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return podTerminate, 0 // Jobs need the exit code
	case deleted && s.terminating >= drainPeriod(s.pod):
		return podRemove, 0
	case deleted:
		return podWait, drainPeriod(s.pod) - s.terminating
	case !isServing(s.pod):
		return podServe, 0
	case exitsByItself(s.pod):
		return podTerminate, 0
	}
	return podWait, 0
}

// exitsByItself reports whether a pod terminates by itself.
func exitsByItself(pod *corev1.Pod) bool {
	return pod.Spec.RestartPolicy == corev1.RestartPolicyNever && strings.HasPrefix(pod.Spec.Containers[0].Image, exitImage)
}

func exitCodeOf(pod *corev1.Pod) int32 {
	code, err := strconv.ParseUint(strings.TrimPrefix(pod.Spec.Containers[0].Image, exitImage), 10, 8)
	if err != nil || pod.DeletionTimestamp != nil {
		return exitKilled
	}
	return int32(code)
}

func drainPeriod(pod *corev1.Pod) time.Duration {
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		return min(drainTime, time.Duration(*grace)*time.Second)
	}
	return drainTime
}

// isServing reports whether the pod's status already matches podServe.
func isServing(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" &&
		hasCondition(pod, corev1.ContainersReady) && hasCondition(pod, corev1.PodReady) == readinessGatesOpen(pod)
}

func readinessGatesOpen(pod *corev1.Pod) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		if !hasCondition(pod, gate.ConditionType) {
			return false
		}
	}
	return true
}

func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func isDead(node *corev1.Node) bool {
	return node.Labels[deadKey] == "true" || node.Annotations[deadKey] == "true"
}

// pickNode returns the next node by name after last, wrapping around, that is ready, schedulable,
// matches the pod's node selector and affinity, and has no untolerated taint. It returns false if there
// is none.
func pickNode(nodes []*corev1.Node, last string, pod *corev1.Pod) (*corev1.Node, bool) {
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !toleratesTaints(n, pod) })
	if len(nodes) == 0 {
		return nil, false
	}
	byName := func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(nodes, byName)
	after := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name > last })
	return nodes[max(after, 0)], true
}

func toleratesTaints(node *corev1.Node, pod *corev1.Pod) bool {
	if node.Spec.Unschedulable || node.DeletionTimestamp != nil || isDead(node) || nodeReady(node) != corev1.ConditionTrue {
		return false
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !ok {
		return false
	}
	repels := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	return !hasUntoleratedTaint(node.Spec.Taints, pod.Spec.Tolerations, repels)
}

func nodeReady(node *corev1.Node) corev1.ConditionStatus {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status
		}
	}
	return ""
}

// desiredNode returns the desired Ready condition and taints: taints that the API server adds to new
// nodes are removed, and a dead node gets the unreachable taints.
func desiredNode(node *corev1.Node) (corev1.ConditionStatus, []corev1.Taint) {
	ours := func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
	}
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), ours)
	if !isDead(node) {
		return corev1.ConditionTrue, taints
	}
	return corev1.ConditionUnknown, append(taints,
		corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
		corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute})
}

// sameTaints compares taints, ignoring TimeAdded.
func sameTaints(a, b []corev1.Taint) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.Taint) bool {
		return x.Key == y.Key && x.Value == y.Value && x.Effect == y.Effect
	})
}

// podAddresses allocates pod addresses: 10.244.0.0 + n and fd00:10:244:: + n. A released address is
// reused only after all others.
type podAddresses struct {
	last   uint16
	holder map[uint16]types.UID
	held   map[types.UID]uint16
}

func newPodAddresses() *podAddresses {
	return &podAddresses{holder: map[uint16]types.UID{}, held: map[types.UID]uint16{}}
}

// take returns the pod's number, allocating one if needed, and false if all are in use.
func (a *podAddresses) take(pod types.UID) (uint16, bool) {
	if n, ok := a.held[pod]; ok {
		return n, true
	}
	for range 1 << 16 {
		a.last++
		if _, used := a.holder[a.last]; !used && a.last != 0 {
			a.holder[a.last], a.held[pod] = pod, a.last
			return a.last, true
		}
	}
	return 0, false
}

// reserve registers the address of a pod from an earlier run.
func (a *podAddresses) reserve(pod types.UID, ip string) {
	addr, err := netip.ParseAddr(ip)
	if err != nil || !addr.Is4() || addr.As4()[0] != 10 || addr.As4()[1] != 244 {
		return // a host address
	}
	n := uint16(addr.As4()[2])<<8 | uint16(addr.As4()[3])
	if _, used := a.holder[n]; used {
		return
	}
	a.holder[n], a.held[pod], a.last = pod, n, max(a.last, n)
}

func (a *podAddresses) release(pod types.UID) {
	if n, ok := a.held[pod]; ok {
		delete(a.held, pod)
		delete(a.holder, n)
	}
}

// podIPs returns the addresses with number n, IPv4 first.
func podIPs(n uint16, dualStack bool) []corev1.PodIP {
	high, low := byte(n>>8), byte(n)
	ips := []corev1.PodIP{{IP: netip.AddrFrom4([4]byte{10, 244, high, low}).String()}}
	if dualStack {
		ips = append(ips, corev1.PodIP{IP: netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x10, 0x02, 0x44, 14: high, 15: low}).String()})
	}
	return ips
}
