// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/backendpools"
	"weir.dev/weir/internal/controllers/nodes"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

const (
	spotKey   = "cloudprovider.azure.microsoft.com/draining"
	spotTaint = spotKey + "=spot-eviction:NoSchedule"
	outTaint  = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
)

// createEviction creates an event as an agent does: with the node's name as UID.
func (env *testEnv) createEviction(n int, name string, edit ...func(*corev1.Event)) {
	env.Helper()
	now := metav1.Now()
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: env.ns + "." + name},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: env.node(n), UID: types.UID(env.node(n))},
		Reason:         "PreemptScheduled", Message: "soon", Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: "agent"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	for _, f := range edit {
		f(e)
	}
	env.create(e)
	env.Cleanup(func() { _ = api.Delete(context.Background(), e) })
}

func (env *testEnv) repeatEviction(name string) {
	env.Helper()
	change(env, "default", env.ns+"."+name, func(e *corev1.Event) { e.Count, e.LastTimestamp = e.Count+1, metav1.Now() })
}

func (env *testEnv) touchEvent(name string) {
	env.Helper()
	change(env, "default", env.ns+"."+name, func(e *corev1.Event) { e.Message += "." })
}

// setTaints takes key=value:effect.
func (env *testEnv) setTaints(n int, taints ...string) {
	env.Helper()
	change(env, "", env.node(n), func(node *corev1.Node) {
		node.Spec.Taints = nil
		for _, text := range taints {
			key, rest, _ := strings.Cut(text, "=")
			value, effect, _ := strings.Cut(rest, ":")
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
		}
	})
}

func (env *testEnv) taints(n int) string {
	env.Helper()
	var taints []string
	for _, t := range get[corev1.Node](env, "", env.node(n)).Spec.Taints {
		if t.Key != corev1.TaintNodeNotReady { // set by the API server on each new node
			taints = append(taints, t.ToString())
		}
	}
	return strings.Join(taints, " ")
}

func (env *testEnv) waitForTaints(n int, want string) {
	env.Helper()
	env.waitUntil(func() string {
		if got := env.taints(n); got != want {
			return fmt.Sprintf("node %d is tainted %q, want %q", n, got, want)
		}
		return ""
	})
}

func (env *testEnv) waitForDraining(n int, reason string) {
	env.Helper()
	env.waitUntil(func() string {
		if got := strings.Join(controller.kube.Draining.Reasons(env.node(n)), " "); got != reason {
			return fmt.Sprintf("node %d drains for %q, want %q", n, got, reason)
		}
		return ""
	})
}

func (env *testEnv) waitForEvents() {
	env.Helper()
	env.last++
	n := 100 + env.last
	env.createNode(n)
	env.createEviction(n, fmt.Sprintf("last-%d", n))
	env.waitForTaints(n, spotTaint)
}

func (env *testEnv) evictionRecord(n int) string {
	env.Helper()
	return get[corev1.Node](env, "", env.node(n)).Annotations[metadata.PreemptionAnnotation]
}

func (env *testEnv) waitForRecord(n int, part string) {
	env.Helper()
	env.waitUntil(func() string {
		if note := env.evictionRecord(n); !strings.Contains(note, part) {
			return fmt.Sprintf("node %d: noted %q, want %s", n, note, part)
		}
		return ""
	})
}

// A spot machine: announced, tainted, cleared by an operator, announced again.
func TestAnAnnouncedEvictionTaintsItsNode(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.setTaints(1, "example.com/gpu=a100:NoSchedule")
	change(s, "", s.node(1), func(n *corev1.Node) { n.Annotations = map[string]string{"example.com/theirs": "kept"} })
	s.createEviction(1, "evicts")
	s.waitForTaints(1, "example.com/gpu=a100:NoSchedule "+spotTaint)
	n := get[corev1.Node](s, "", s.node(1))
	if n.Annotations["example.com/theirs"] != "kept" {
		t.Errorf("annotations %v", n.Annotations)
	}
	s.waitForRecord(1, `"count":1`)
	s.waitForDraining(1, "spot-eviction")
	s.waitForNodeEvent(1, nodes.EventTainted, 1)

	// While the taint exists, more events cause no write.
	before := get[corev1.Node](s, "", s.node(1)).ResourceVersion
	for range 5 {
		s.repeatEviction("evicts")
	}
	s.createEviction(1, "evicts-too")
	s.waitForEvents()
	if after := get[corev1.Node](s, "", s.node(1)).ResourceVersion; after != before {
		t.Errorf("the node was written for what it says already: %s", s.evictionRecord(1))
	}
	s.waitForTaints(1, "example.com/gpu=a100:NoSchedule "+spotTaint)

	// An operator removes it. Only later events restore it.
	s.setTaints(1)
	s.waitForDraining(1, "")
	s.touchEvent("evicts")
	s.touchEvent("evicts-too")
	s.waitForEvents()
	s.waitForTaints(1, "")
	s.repeatEviction("evicts")
	s.waitForTaints(1, spotTaint)
	s.waitForNodeEvent(1, nodes.EventTainted, 2)
}

// A taint has the same meaning from any source and with any effect.
func TestTaintCountsWhateverItsSource(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.setTaints(1, spotKey+"=spot-eviction:NoExecute")
	s.waitForDraining(1, "spot-eviction")
	s.createEviction(1, "evicts")
	s.waitForRecord(1, `"count":1`)
	s.waitForTaints(1, spotKey+"=spot-eviction:NoExecute")

	s.createNode(2)
	s.setTaints(2, spotKey+"=upgrade:NoSchedule") // a node cannot have two taints of the same key and effect
	s.waitForDraining(2, "")
	s.createEviction(2, "evicts-2")
	s.waitForTaints(2, spotTaint)
}

func TestTaintsDecideWhichNodesDrain(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.setTaints(1, "node.kubernetes.io/unschedulable=:NoSchedule", "example.com/leaves=soon:NoSchedule")
	s.waitForDraining(1, "")
	s.setTaints(1, "example.com/leaves=now:PreferNoSchedule")
	s.waitForDraining(1, "example.com/leaves=now")
	s.setTaints(1, outTaint, "example.com/leaves=now:PreferNoSchedule")
	s.waitForDraining(1, "out-of-service example.com/leaves=now")
	s.setTaints(1, outTaint)
	s.waitForDraining(1, "out-of-service")
	s.delete(&corev1.Node{}, s.node(1))
	s.waitForDraining(1, "")
	s.createNode(1) // another one of that name
	s.waitForDraining(1, "")
	s.setTaints(1, outTaint)
	s.waitForDraining(1, "out-of-service")
}

// An event applies to the node that existed when it occurred.
func TestTheNextNodeOfANameIsNotEvicted(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.createEviction(1, "evicts")
	s.waitForTaints(1, spotTaint)
	s.delete(&corev1.Node{}, s.node(1))
	time.Sleep(1100 * time.Millisecond) // events have whole seconds
	s.createNode(1)
	s.touchEvent("evicts")
	s.waitForEvents()
	s.waitForTaints(1, "")
	s.createEviction(1, "evicts-again")
	s.waitForTaints(1, spotTaint)
}

// Events of events.k8s.io are read, too.
func TestAnEventOfTheNewKind(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	events, err := typedeventsv1.NewForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	e, err := events.Events("default").Create(t.Context(), &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: s.ns + ".new"},
		Regarding:  corev1.ObjectReference{Kind: "Node", Name: s.node(1)},
		Reason:     "PreemptScheduled", Action: "Preempt", Type: corev1.EventTypeWarning, Note: "soon",
		EventTime: metav1.NowMicro(), ReportingController: "example.com/agent", ReportingInstance: "agent-1",
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = events.Events("default").Delete(context.Background(), e.Name, metav1.DeleteOptions{}) })
	s.waitForTaints(1, spotTaint)
	s.setTaints(1)
	e.Series = &eventsv1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(time.Now())}
	if _, err := events.Events("default").Update(t.Context(), e, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.waitForTaints(1, spotTaint)
	s.waitForRecord(1, `"count":2`)
}

// Only these events are cached, and only the fields that are read.
func TestCachedEvents(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.createEviction(1, "reboot", func(e *corev1.Event) { e.Reason = "RebootScheduled" })
	s.createEviction(1, "pod", func(e *corev1.Event) { e.InvolvedObject.Kind, e.InvolvedObject.Namespace = "Pod", "default" })
	s.createEviction(9, "nobody") // no such node
	s.createEviction(1, "evicts", func(e *corev1.Event) {
		e.Annotations, e.Message = map[string]string{"a": "b"}, strings.Repeat("soon ", 200)
	})
	s.waitForTaints(1, spotTaint)
	var names []string
	for _, e := range controller.kube.Preemptions() {
		if name, own := strings.CutPrefix(e.Name, s.ns+"."); own {
			names = append(names, name)
			if len(e.Message) > 64 || len(e.ManagedFields) > 0 || len(e.Annotations) > 0 || e.Source.Component != "" {
				t.Errorf("kept: %+v", e)
			}
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "evicts nobody" {
		t.Errorf("held: %s", got)
	}
}

// A tenant's events never concern a node. In the namespace of node events, only known reporters and
// reasons are accepted.
func TestReporterOfEvictionIsChecked(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.createEviction(1, "tenant", func(e *corev1.Event) { e.Namespace, e.InvolvedObject.Namespace = s.ns, s.ns })
	s.createEviction(1, "stranger", func(e *corev1.Event) { e.Source.Component = "kubectl" })
	s.createEviction(1, "nobody", func(e *corev1.Event) { e.Source.Component = "" })
	s.createEviction(1, "unknown", func(e *corev1.Event) {
		e.Message = "IMDS query failed, exit code: 28\nConnection timed out after 24 seconds."
	})
	s.waitForEvents()
	if note := s.evictionRecord(1); s.taints(1) != "" || note != "" {
		t.Fatalf("tainted %q, noted %s", s.taints(1), note)
	}
	s.createEviction(1, "evicts")
	s.waitForTaints(1, spotTaint)
}

// Half of a pool's members remain up despite announced evictions, unless a user requests otherwise.
func TestAnnouncedEvictionsAreHeldBack(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, "web", "one")
	for n := 1; n <= 4; n++ {
		s.createNode(n)
	}
	s.createService("web", corev1.ServiceTypeLoadBalancer)
	s.createSlice("web", "web", s.endpointOn(1), s.endpointOn(2), s.endpointOn(3), s.endpointOn(4))
	s.createBackendPool("web", "web")
	s.createService("one", corev1.ServiceTypeLoadBalancer)
	s.createSlice("one", "one", s.endpointOn(4))
	s.createBackendPool("one", "one")
	s.waitForMembers("web", s.ip(1), s.ip(2), s.ip(3), s.ip(4))
	s.waitForMembers("one", s.ip(4))
	for _, n := range []int{4, 3, 2, 1} {
		s.createEviction(n, fmt.Sprintf("evicts-%d", n))
		s.waitForTaints(n, spotTaint)
	}
	s.waitForEvent("Service", "web", backendpools.EventMembersRetained, 1)
	s.waitForEvent("Service", "one", backendpools.EventMembersRetained, 1)
	s.waitUntil(func() string {
		text := kubectl(t, "get", "bp", "-n", s.ns, "web", "-o", "jsonpath={.status.downCount} {.status.conditions[?(@.type=='Synced')].message}")
		if !strings.HasPrefix(text, "2 in sync with 4 nodes, 2 of them Down; kept in the pool: 4 of 4 members are about to be evicted at once, so these remain Up: ") {
			return text
		}
		return ""
	})
	s.setTaints(4, spotTaint, outTaint)
	s.waitUntil(func() string {
		if text := kubectl(t, "get", "bp", "-n", s.ns, "one", "-o", "jsonpath={.status.down[*].address}"); text != s.ip(4) {
			return "Down is " + text
		}
		return ""
	})
	s.waitForEvent("Service", "web", backendpools.EventMembersRetained, 1)
}

// racingReader is a reader that triggers a concurrent write after each Get.
type racingReader struct {
	client.Client
	writes int
}

func (r *racingReader) Get(ctx context.Context, at client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := r.Client.Get(ctx, at, obj, opts...); err != nil || r.writes == 0 {
		return err
	}
	r.writes--
	n := &corev1.Node{}
	if err := r.Client.Get(ctx, at, n); err != nil {
		return err
	}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: fmt.Sprintf("example.com/other-%d", r.writes), Effect: corev1.TaintEffectNoSchedule})
	return r.Update(ctx, n)
}

// A concurrent taint is never lost: the patch is rebuilt from a fresh copy.
func TestATaintThatComesInBetweenStays(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.createNode(1)
	s.setTaints(1)
	e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: "e", CreationTimestamp: metav1.Now()}, InvolvedObject: corev1.ObjectReference{Name: s.node(1)}}
	if err := processEvent(t.Context(), &racingReader{api, 2}, api, e); err != nil {
		t.Fatal(err)
	}
	if got, want := s.taints(1), "example.com/other-1:NoSchedule example.com/other-0:NoSchedule "+spotTaint; got != want {
		t.Errorf("tainted %q, want %q", got, want)
	}
	s.setTaints(1)
	e.UID, e.CreationTimestamp = "f", metav1.NewTime(time.Now().Add(time.Minute))
	if err := processEvent(t.Context(), &racingReader{api, 1000}, api, e); !apierrors.IsConflict(errors.Unwrap(err)) {
		t.Errorf("without end: %v", err)
	}
	e.InvolvedObject.Name = "nobody"
	if err := processEvent(t.Context(), api, api, e); err != nil {
		t.Errorf("a node that is gone: %v", err)
	}
}

func (env *testEnv) waitForNodeEvent(n int, reason string, times int) {
	env.Helper()
	env.waitUntil(func() string {
		var list corev1.EventList
		if err := api.List(env.Context(), &list, client.InNamespace("default")); err != nil {
			env.Fatal(err)
		}
		got := 0
		for _, e := range list.Items {
			if e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == env.node(n) && e.Reason == reason {
				got += int(max(e.Count, 1))
			}
		}
		if got != times {
			return fmt.Sprintf("%s was said %d times about node %d, want %d", reason, got, n, times)
		}
		return ""
	})
}

func processEvent(ctx context.Context, reader client.Reader, writer client.Writer, e *corev1.Event) error {
	log := slog.New(slog.DiscardHandler)
	evictions := &nodes.Evictions{Reader: reader, Writer: writer, Events: k8s.NewEventQueue(metadata.Scheme(), nil, log), Log: log}
	return evictions.TaintNode(ctx, e)
}
