// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNextPodStep(t *testing.T) {
	pending := &corev1.Pod{}
	bound := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}
	running := bound.DeepCopy()
	running.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.244.0.1", Conditions: []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}}
	silent := running.DeepCopy()
	silent.Status.Conditions[1].Status = corev1.ConditionFalse
	gated := running.DeepCopy()
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}
	gatedSilent := silent.DeepCopy()
	gatedSilent.Spec.ReadinessGates = gated.Spec.ReadinessGates
	done := bound.DeepCopy()
	done.Status.Phase = corev1.PodSucceeded
	deleted := func(pod *corev1.Pod, grace int64) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.Now()), &grace
		return pod
	}
	ofJob := func(pod *corev1.Pod, image string) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.Spec.RestartPolicy, pod.Spec.Containers = corev1.RestartPolicyNever, []corev1.Container{{Name: "a", Image: image}}
		return pod
	}
	alive, dead := readyNode("n"), readyNode("n")
	dead.Annotations = map[string]string{deadKey: "true"}

	for name, test := range map[string]struct {
		situation podState
		step      podStep
		retry     time.Duration
	}{
		"new pod":                              {podState{pod: pending}, podBind, 0},
		"new pod, deleted":                     {podState{pod: deleted(pending, 30)}, podRemove, 0},
		"bound to a node not yet seen":         {podState{pod: bound}, podWait, 0},
		"bound":                                {podState{pod: bound, node: alive}, podServe, 0},
		"running":                              {podState{pod: running, node: alive}, podWait, 0},
		"running, its gate still closed":       {podState{pod: gated, node: alive}, podServe, 0},
		"unready for its gate":                 {podState{pod: gatedSilent, node: alive}, podWait, 0},
		"node deleted":                         {podState{pod: running, nodeDeleted: true}, podRemove, 0},
		"node deleted, its name taken again":   {podState{pod: running, node: alive, nodeDeleted: true}, podRemove, 0},
		"node just died":                       {podState{pod: running, node: dead}, podNotReady, 3 * time.Second},
		"node dead for a second":               {podState{pod: silent, node: dead, nodeDead: time.Second}, podWait, 2 * time.Second},
		"node dead too long":                   {podState{pod: silent, node: dead, nodeDead: evictAfter}, podRemove, 0},
		"deleted on a dead node":               {podState{pod: deleted(silent, 30), node: dead, terminating: time.Hour}, podWait, 3 * time.Second},
		"node came back":                       {podState{pod: silent, node: alive}, podServe, 0},
		"just deleted, still serving":          {podState{pod: deleted(running, 30), node: alive}, podWait, time.Second},
		"deleted 400 ms ago":                   {podState{pod: deleted(running, 30), node: alive, terminating: 400 * time.Millisecond}, podWait, 600 * time.Millisecond},
		"drained":                              {podState{pod: deleted(running, 30), node: alive, terminating: time.Second}, podRemove, 0},
		"deleted without grace":                {podState{pod: deleted(running, 0), node: alive}, podRemove, 0},
		"of a Job, running":                    {podState{pod: ofJob(running, "fetch"), node: alive}, podWait, 0},
		"of a Job, has an end":                 {podState{pod: ofJob(running, exitImage+"3"), node: alive}, podTerminate, 0},
		"of a Job, not begun":                  {podState{pod: ofJob(bound, exitImage+"3"), node: alive}, podServe, 0},
		"of a Job, drained":                    {podState{pod: deleted(ofJob(running, "fetch"), 30), node: alive, terminating: time.Second}, podTerminate, 0},
		"of a Job, drained and ended":          {podState{pod: deleted(ofJob(done, "fetch"), 30), node: alive, terminating: time.Second}, podRemove, 0},
		"finished":                             {podState{pod: done, node: alive}, podWait, 0},
		"finished, deleted":                    {podState{pod: deleted(done, 30), node: alive}, podRemove, 0},
		"deleted before it ran is not started": {podState{pod: deleted(bound, 30), node: alive}, podWait, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			step, second := nextPodStep(test.situation)
			if step != test.step || second != test.retry {
				t.Errorf("got %s, again in %v; want %s, %v", step, second, test.step, test.retry)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	of := func(image string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
	}
	evicted := of(exitImage + "0")
	evicted.DeletionTimestamp = new(metav1.Now())
	for want, pod := range map[int32]*corev1.Pod{0: of(exitImage + "0"), 3: of(exitImage + "3"), exitKilled: evicted} {
		if got := exitCodeOf(pod); got != want {
			t.Errorf("%s ends by %d, want %d", pod.Spec.Containers[0].Image, got, want)
		}
	}
}

func readyNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func TestNodesTakePodsInTurn(t *testing.T) {
	nodes := []*corev1.Node{readyNode("c"), readyNode("a"), readyNode("b")}
	last, got := "", ""
	for range 7 {
		node, ok := pickNode(nodes, last, &corev1.Pod{})
		if !ok {
			t.Fatal("no node takes the pod")
		}
		last = node.Name
		got += last
	}
	if got != "abcabca" {
		t.Errorf("pods went to %s in turn, want abcabca", got)
	}
	if nodes[0].Name != "c" {
		t.Error("picking a node reordered the list it was given")
	}
}

func TestNodesThatTakeNoPod(t *testing.T) {
	plain := corev1.PodSpec{}
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		pod    corev1.PodSpec
		want   bool
	}{
		"ready":              {func(*corev1.Node) {}, plain, true},
		"cordoned":           {func(n *corev1.Node) { n.Spec.Unschedulable = true }, plain, false},
		"being deleted":      {func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.Now()) }, plain, false},
		"dead by label":      {func(n *corev1.Node) { n.Labels = map[string]string{deadKey: "true"} }, plain, false},
		"dead by annotation": {func(n *corev1.Node) { n.Annotations = map[string]string{deadKey: "true"} }, plain, false},
		"marked not dead":    {func(n *corev1.Node) { n.Labels = map[string]string{deadKey: "false"} }, plain, true},
		"unknown":            {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, plain, false},
		"never reported":     {func(n *corev1.Node) { n.Status.Conditions = nil }, plain, false},
		"tainted":            {taint(corev1.TaintEffectNoSchedule), plain, false},
		"tainted, preferred": {taint(corev1.TaintEffectPreferNoSchedule), plain, true},
		"tainted, tolerated": {taint(corev1.TaintEffectNoSchedule), corev1.PodSpec{
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		}, true},
		"not selected": {func(*corev1.Node) {}, corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}, false},
		"selected": {func(n *corev1.Node) { n.Labels = map[string]string{"disk": "ssd"} },
			corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			node := readyNode("n")
			test.change(node)
			if _, got := pickNode([]*corev1.Node{node}, "", &corev1.Pod{Spec: test.pod}); got != test.want {
				t.Errorf("takes the pod: %v, want %v", got, test.want)
			}
		})
	}
}

func taint(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: effect}} }
}

func TestWantedNodeKeepsForeignTaints(t *testing.T) {
	foreign := corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule}
	node := readyNode("n")
	node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}, foreign}
	ready, taints := desiredNode(node)
	if ready != corev1.ConditionTrue || !sameTaints(taints, []corev1.Taint{foreign}) {
		t.Errorf("a live node: Ready %s, taints %v", ready, taints)
	}
	node.Labels = map[string]string{deadKey: "true"}
	ready, node.Spec.Taints = desiredNode(node)
	if ready != corev1.ConditionUnknown || len(node.Spec.Taints) != 3 {
		t.Errorf("a dead node: Ready %s, taints %v", ready, node.Spec.Taints)
	}
	if _, second := desiredNode(node); !sameTaints(second, node.Spec.Taints) {
		t.Errorf("a dead node is not left alone: %v after %v", second, node.Spec.Taints)
	}
	node.Labels = nil
	if _, taints := desiredNode(node); !sameTaints(taints, []corev1.Taint{foreign}) {
		t.Errorf("a node that came back: taints %v", taints)
	}
}

func TestPodAddressesAreUnique(t *testing.T) {
	a := newPodAddresses()
	a.reserve("old", "10.244.0.2")
	a.reserve("host", "10.224.0.4") // host address, ignored
	got := map[types.UID]uint16{}
	for _, pod := range []types.UID{"p", "q", "p", "old"} {
		n, ok := a.take(pod)
		if !ok {
			t.Fatalf("no address for %s", pod)
		}
		got[pod] = n
	}
	if want := (map[types.UID]uint16{"p": 3, "q": 4, "old": 2}); got["p"] != want["p"] || got["q"] != want["q"] || got["old"] != want["old"] {
		t.Errorf("got %v, want %v", got, want)
	}
	a.release("p")
	if n, _ := a.take("r"); n != 5 {
		t.Errorf("a freed address was used again at once: r has number %d", n)
	}
	if ips := podIPs(258, true); ips[0].IP != "10.244.1.2" || ips[1].IP != "fd00:10:244::102" {
		t.Errorf("number 258 is %v", ips)
	}
}

func TestPodAddressesRunOutAndComeBack(t *testing.T) {
	a := newPodAddresses()
	for n := range uint16(65535) {
		a.holder[n+1] = "x"
	}
	a.held["y"] = 7
	if n, ok := a.take("z"); ok {
		t.Fatalf("took %d though all are in use", n)
	}
	a.release("y")
	if n, ok := a.take("z"); !ok || n != 7 {
		t.Errorf("took %d, %v; want the freed 7", n, ok)
	}
}
