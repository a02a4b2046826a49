// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/controllers/pods"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

// standbySince is negative while the shared controller leads; otherwise for how long no Lease was renewed.
var standbySince atomic.Int64

func init() { standbySince.Store(-1) }

// enableGates has the shared controller patch pods with the rights of Weir's account.
func enableGates(c *testController, _ *azure.Client, log *slog.Logger) {
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Impersonate.UserName, cfg.Impersonate.Groups = "system:serviceaccount:weir-system:weir", []string{"system:authenticated"}
	account, err := client.New(cfg, client.Options{Scheme: metadata.Scheme()})
	if err != nil {
		panic(err)
	}
	gates, err := pods.Enable(c.mgr, account, pods.Config{
		View: c.kube.View, Pools: c.kube.Pools.Controller, Rules: c.kube.Ownership, Backoff: k8s.DefaultQueueBackoff(), Log: log,
		IsSynced: func() bool { return c.kube.Synced(nil) == nil }, CountOpened: func(pods.Reason) {},
		Leader: func() (bool, time.Duration) { since := standbySince.Load(); return since < 0, time.Duration(since) },
	})
	if err != nil {
		panic(err)
	}
	c.kube.Pools.MembersShown = gates.RequeueWaiting
}

func installGates(t *testing.T) {
	t.Helper()
	shipped, err := os.ReadFile("../../config/readiness-gates/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(shipped), "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &obj.Object); err != nil {
			t.Fatal(err)
		}
		if err := api.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// createPod creates a pod on a node, as its ReplicaSet and the scheduler would.
func (env *testEnv) createPod(name string, n int, edits ...func(*corev1.Pod)) *corev1.Pod {
	env.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: name, Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: env.node(n), Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	for _, edit := range edits {
		edit(pod)
	}
	env.create(pod)
	return pod
}

func (env *testEnv) setContainersReady(name string) {
	env.Helper()
	pod := get[corev1.Pod](env, env.ns, name)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	if err := api.Status().Update(env.Context(), pod); err != nil {
		env.Fatal(err)
	}
}

// gate returns the reason of an open gate; "" while it is closed.
func (env *testEnv) gate(name string) string {
	env.Helper()
	for _, c := range get[corev1.Pod](env, env.ns, name).Status.Conditions {
		if c.Type == metadata.GateInPool && c.Status == corev1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

func (env *testEnv) waitForGate(name string, reason pods.Reason) {
	env.Helper()
	env.waitUntil(func() string {
		if got := env.gate(name); got != string(reason) {
			return fmt.Sprintf("gate of pod %s: %q, want %s", name, got, reason)
		}
		return ""
	})
}

// checkGateStaysClosed checks that the controller has had time to open the gate.
func (env *testEnv) checkGateStaysClosed(name string) {
	env.Helper()
	time.Sleep(1500 * time.Millisecond)
	if reason := env.gate(name); reason != "" {
		env.Errorf("gate of pod %s is open: %s", name, reason)
	}
}

// The policy adds the gate, a read of Azure opens it, and what cannot be awaited does not close it. The role in
// config/readiness-gates is enough.
func TestReadinessGates(t *testing.T) {
	s := newTestEnv(t)
	change(s, "", s.ns, func(ns *corev1.Namespace) { ns.Labels = map[string]string{"weir.dev/readiness-gates": "enabled"} })
	s.applyRoles("../../config/readiness-gates/cluster-role.yaml")
	installGates(t)
	s.createLoadBalanced("web", func(svc *corev1.Service) { svc.Spec.Selector = map[string]string{"app": "web"} })
	s.waitForAddresses("web", 1)
	for n := range 4 {
		s.createNode(n + 1)
	}
	s.createSlice("web", "web", s.endpointOn(1))
	s.waitForReason("web.kubernetes", v1alpha1.ReasonInSync, "")
	s.waitForPolicy()
	s.checkPolicy(t)

	before := s.countWrites()
	pod := s.createPod("member", 1)
	if !hasInjectedGate(pod) || pod.Spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds != 15 || pod.Labels["app"] != "web" {
		t.Errorf("created: %v %+v", pod.Labels, pod.Spec)
	}
	s.waitForGate("member", pods.InPool)
	if after := s.countWrites(); after != before {
		t.Errorf("%d writes of Azure", after-before)
	}
	s.createPod("joins-when-ready", 3)
	s.waitForGate("joins-when-ready", pods.NodeNotMember)
	s.createPod("not-served", 4, func(p *corev1.Pod) { p.Labels["app"] = "other" })
	s.waitForGate("not-served", pods.NoService)
	other := newTestEnv(t) // its pods have the labels that the Service of the first namespace selects
	other.createPod("no-gate", 1, func(p *corev1.Pod) { p.Labels[metadata.GateLabel] = metadata.GateLabelValue })
	other.createPod("neighbor", 1, func(p *corev1.Pod) {
		p.Spec.NodeName, p.Labels[metadata.GateLabel] = s.node(1), metadata.GateLabelValue
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: metadata.GateInPool}}
	})
	other.waitForGate("neighbor", pods.NoService)
	if conditions := get[corev1.Pod](other, other.ns, "no-gate").Status.Conditions; len(conditions) > 0 {
		t.Errorf("a pod without a gate has %v", conditions)
	}

	// The second node belongs in the pool, and Azure rejects the write.
	id := strings.ToLower(network + "/loadBalancers/kubernetes/backendAddressPools/" + s.ns + "-web")
	injectedResults.Lock()
	injectedResults.of[http.MethodPut+id] = []injectedResult{refused}
	injectedResults.Unlock()
	s.changeSlice("web", s.endpointOn(1), s.endpointOn(2))
	s.waitForReason("web.kubernetes", v1alpha1.ReasonFailed, "")
	s.createPod("waits", 2)
	s.setContainersReady("waits")
	s.createPod("still-member", 1)
	s.waitForGate("still-member", pods.InPool)
	s.checkGateStaysClosed("waits")
	change(s, s.ns, "web.kubernetes", func(p *v1alpha1.BackendPool) {
		p.Annotations = map[string]string{v1alpha1.RetryNowAnnotation: time.Now().Format(time.RFC3339)}
	})
	s.waitForGate("waits", pods.InPool)
	s.checkStandbys(t)
}

// A standby opens gates only once the Lease is stale.
func (env *testEnv) checkStandbys(t *testing.T) {
	t.Helper()
	defer standbySince.Store(-1)
	standbySince.Store(int64(pods.LeaderTimeout - time.Minute))
	env.createPod("standby", 1)
	env.checkGateStaysClosed("standby")
	standbySince.Store(int64(pods.LeaderTimeout + time.Second))
	env.waitForGate("standby", pods.LeaderAway)
}

// waitForPolicy waits until the API server applies the policy.
func (env *testEnv) waitForPolicy() {
	env.Helper()
	env.waitUntil(func() string { // the API server loads policies in the background
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		}
		if err := api.Create(env.Context(), pod, client.DryRunAll); err != nil {
			return err.Error()
		}
		if !hasInjectedGate(pod) {
			return "no gate"
		}
		return ""
	})
}

func hasInjectedGate(pod *corev1.Pod) bool {
	return pod.Labels[metadata.GateLabel] == metadata.GateLabelValue && len(pod.Spec.ReadinessGates) > 0 &&
		pod.Spec.ReadinessGates[len(pod.Spec.ReadinessGates)-1].ConditionType == metadata.GateInPool
}

// checkPolicy checks what the policy adds to pods, and which it leaves unchanged.
func (env *testEnv) checkPolicy(t *testing.T) {
	t.Helper()
	command := &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"stop"}}}}
	started := &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"start"}}}}
	for name, tt := range map[string]struct {
		edit   func(*corev1.Pod)
		gates  int
		sleeps string // containers with the sleep
	}{
		"two containers": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy"})
		}, 1, "web proxy"},
		"a hook of its own": {func(p *corev1.Pod) { p.Spec.Containers[0].Lifecycle = command }, 1, ""},
		"one of two hooks": {func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy", Image: "proxy", Lifecycle: command})
		}, 1, "web"},
		"another hook":     {func(p *corev1.Pod) { p.Spec.Containers[0].Lifecycle = started }, 1, "web"},
		"a short time":     {func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(29)) }, 1, ""},
		"just enough time": {func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(30)) }, 1, "web"},
		"another gate": {func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/a"}}
		}, 2, "web"},
		"the gate": {func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: metadata.GateInPool}}
		}, 1, "web"},
		"a pod of a Job":     {func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }, 0, ""},
		"no namespace label": {func(p *corev1.Pod) { p.Namespace = "default" }, 0, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: env.ns, Name: "checked"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
		tt.edit(pod)
		if err := api.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var sleeps []string
		for _, c := range pod.Spec.Containers {
			if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep != nil && c.Lifecycle.PreStop.Sleep.Seconds == 15 {
				sleeps = append(sleeps, c.Name)
			}
		}
		if got := strings.Join(sleeps, " "); len(pod.Spec.ReadinessGates) != tt.gates || got != tt.sleeps || hasInjectedGate(pod) != (tt.gates > 0) {
			t.Errorf("%s: gates %v, sleeps %q, labels %v", name, pod.Spec.ReadinessGates, got, pod.Labels)
		}
	}
}
