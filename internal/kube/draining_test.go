// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/adminstate"
)

// tainted is the node n1 with these taints, key=value.
func tainted(uid string, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID(uid)}}
	for _, text := range taints {
		key, value, _ := strings.Cut(text, "=")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// A node drains as long as its taints say so, and is counted once for each reason.
func TestWhyANodeDrains(t *testing.T) {
	const spot, out = adminstate.KeyDraining + "=" + adminstate.ValueSpotEviction, adminstate.KeyOutOfService
	c := stored(t)
	var log bytes.Buffer
	c.opts = Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Draining: &adminstate.Signals{Further: []adminstate.Pattern{{Key: "leaves", AnyValue: true}}}}
	var before any
	for _, tt := range []struct {
		node *corev1.Node // nil: it is gone
		want string
		says string // the log
	}{
		{tainted("a"), "[]", ""},
		{tainted("a", spot), "[spot-eviction]", "drains"},
		{tainted("a", spot), "[spot-eviction]", ""},
		{tainted("a", spot, out), "[out-of-service spot-eviction]", "drains"},
		{tainted("a", "leaves=x", out), "[out-of-service leaves]", "drains"},
		{tainted("a"), "[]", "drains no more"},
		{tainted("a", out), "[out-of-service]", "drains"},
		{tainted("b", out), "[out-of-service]", ""},
		{nil, "[]", "drains no more"},
		{tainted("b", out), "[out-of-service]", "drains"},
		{tainted("c"), "[]", "drains no more"},
	} {
		var after any
		if tt.node == nil {
			if err := c.snap.nodes.Delete(tainted("")); err != nil {
				t.Fatal(err)
			}
		} else if err := c.snap.nodes.Add(tt.node); err != nil {
			t.Fatal(err)
		} else {
			after = tt.node
		}
		reasons := c.Draining("n1")
		if got := fmt.Sprint(reasons); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.node, got, tt.want)
		}
		counted := len(reasons)
		for _, n := range c.NodesDraining() {
			counted -= n
		}
		if counted != 0 || len(c.NodesDraining()) != 3 {
			t.Errorf("%v: counted %v", tt.node, c.NodesDraining())
		}
		log.Reset()
		c.logDraining(before, after)
		if got := log.String(); (got != "") != (tt.says != "") || !strings.Contains(got, tt.says) {
			t.Errorf("%v: the log says %q, want %q", tt.node, got, tt.says)
		}
		before = after
	}
}

// What nobody reads of a node is not kept, and nothing of its taints if they are left alone.
func TestWhatIsKeptOfANode(t *testing.T) {
	node := func() *corev1.Node {
		n := tainted("a", adminstate.KeyOutOfService, "leaves=x", "gpu=a100")
		n.Labels = map[string]string{"zone": "1"}
		n.Annotations = map[string]string{PreemptionAnnotation: "{}", "theirs": "x"}
		n.Spec.Taints[0].TimeAdded = new(metav1.Now())
		n.Spec.ProviderID, n.Spec.Unschedulable = "azure:///x", true
		return n
	}
	want := tainted("a", adminstate.KeyOutOfService, "leaves=x")
	want.Spec.ProviderID = "azure:///x"
	want.Labels, want.Annotations = map[string]string{"zone": "1"}, map[string]string{PreemptionAnnotation: "{}"}
	want.Spec.ProviderID = "azure:///x" // which machine it is
	got := node()
	stripNode(got, &adminstate.Signals{Further: []adminstate.Pattern{{Key: "leaves", AnyValue: true}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = node()
	stripNode(got, nil)
	want.Annotations, want.Spec.Taints = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("off: %s", diff)
	}
}

// Emitters write times and counts in one of two ways, or in both.
func TestWhatIsReadOfAnEvent(t *testing.T) {
	second := func(s int64) metav1.Time { return metav1.Unix(s, 0) }
	micro := func(s int64) metav1.MicroTime { return metav1.NewMicroTime(time.Unix(s, 0)) }
	for _, tt := range []struct {
		event corev1.Event
		want  string // first, last, count
	}{
		{corev1.Event{FirstTimestamp: second(1), LastTimestamp: second(5), Count: 3}, "1 5 3"},
		{corev1.Event{EventTime: micro(2)}, "2 2 0"},
		{corev1.Event{EventTime: micro(2), Series: &corev1.EventSeries{Count: 4, LastObservedTime: micro(9)}}, "2 9 4"},
		{corev1.Event{EventTime: micro(2), FirstTimestamp: second(1), LastTimestamp: second(5), Count: 3}, "2 5 3"},
		{corev1.Event{LastTimestamp: second(9), Count: 7, FirstTimestamp: second(1), Series: &corev1.EventSeries{Count: 4, LastObservedTime: micro(5)}}, "1 9 7"},
	} {
		e := announced(&tt.event)
		if got := fmt.Sprint(e.First.Unix(), e.Last.Unix(), e.Count); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.event, got, tt.want)
		}
	}
}
