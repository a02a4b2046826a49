// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
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

// A node drains since the first of the taints that have been there ever since; another of its
// name begins anew.
func TestSinceWhenANodeDrains(t *testing.T) {
	const spot, out = adminstate.KeyDraining + "=" + adminstate.ValueSpotEviction, adminstate.KeyOutOfService
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := stored(t)
		c.opts = Options{Log: slog.New(slog.DiscardHandler), Draining: &adminstate.Signals{Further: []adminstate.Pattern{{Key: "leaves", AnyValue: true}}}}
		c.draining.nodes = map[string]Drain{}
		for _, tt := range []struct {
			node *corev1.Node // nil: it is gone
			want string       // UID, reasons, seconds
		}{
			{tainted("a"), ""},
			{tainted("a", spot), "a [spot-eviction] 1"},
			{tainted("a", spot), "a [spot-eviction] 1"},
			{tainted("a", spot, out), "a [out-of-service spot-eviction] 1"},
			{tainted("a", "leaves=x", out), "a [out-of-service leaves] 1"},
			{tainted("a"), ""},
			{tainted("a", out), "a [out-of-service] 6"},
			{tainted("b", out), "b [out-of-service] 7"},
			{nil, ""},
			{tainted("b", out), "b [out-of-service] 9"},
			{tainted("c"), ""},
		} {
			if tt.node == nil {
				if err := c.snap.nodes.Delete(tainted("")); err != nil {
					t.Fatal(err)
				}
			} else if err := c.snap.nodes.Add(tt.node); err != nil {
				t.Fatal(err)
			}
			got, counted := "", 0
			if d, ok := c.Draining("n1"); ok {
				got, counted = fmt.Sprint(d.UID, " ", d.Reasons, " ", time.Since(began).Seconds()-time.Since(d.Since).Seconds()), len(d.Reasons)
			}
			if got != tt.want {
				t.Errorf("%v: %q, want %q", tt.node, got, tt.want)
			}
			for _, n := range c.NodesDraining() {
				counted -= n
			}
			if counted != 0 || len(c.NodesDraining()) != 3 {
				t.Errorf("%v: counted %v", tt.node, c.NodesDraining())
			}
			time.Sleep(time.Second)
		}
	})
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
