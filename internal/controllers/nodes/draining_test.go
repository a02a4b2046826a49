// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/lb"
)

// newTaintedNode returns node n1 with these taints, key=value.
func newTaintedNode(uid string, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID(uid)}}
	for _, text := range taints {
		key, value, _ := strings.Cut(text, "=")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// A node drains while a taint requires it, and counts once per reason.
func TestDrainReasons(t *testing.T) {
	const spot, out = lb.KeyDraining + "=" + lb.ValueSpotEviction, lb.KeyOutOfService
	snap := &cache.Snapshot{}
	snap.InMemory()
	var log bytes.Buffer
	d := Draining{Nodes: snap, Log: slog.New(slog.NewTextHandler(&log, nil)), Signals: &lb.DrainSignals{ExtraPatterns: []lb.ConditionPattern{{Key: "leaves", AnyValue: true}}}}
	var before any
	for _, tt := range []struct {
		node     *corev1.Node // nil: deleted
		want     string
		wantText string // the log
	}{
		{newTaintedNode("a"), "[]", ""},
		{newTaintedNode("a", spot), "[spot-eviction]", "drains"},
		{newTaintedNode("a", spot), "[spot-eviction]", ""},
		{newTaintedNode("a", spot, out), "[out-of-service spot-eviction]", "drains"},
		{newTaintedNode("a", "leaves=x", out), "[out-of-service leaves]", "drains"},
		{newTaintedNode("a"), "[]", "drains no more"},
		{newTaintedNode("a", out), "[out-of-service]", "drains"},
		{newTaintedNode("b", out), "[out-of-service]", ""},
		{nil, "[]", "drains no more"},
		{newTaintedNode("b", out), "[out-of-service]", "drains"},
		{newTaintedNode("c"), "[]", "drains no more"},
	} {
		var after any
		if tt.node == nil {
			if err := snap.Nodes.Delete(newTaintedNode("")); err != nil {
				t.Fatal(err)
			}
		} else if err := snap.Nodes.Add(tt.node); err != nil {
			t.Fatal(err)
		} else {
			after = tt.node
		}
		reasons := d.Reasons("n1")
		if got := fmt.Sprint(reasons); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.node, got, tt.want)
		}
		counted := len(reasons)
		for _, n := range d.CountByReason() {
			counted -= n
		}
		if counted != 0 || len(d.CountByReason()) != 5 {
			t.Errorf("%v: counted %v", tt.node, d.CountByReason())
		}
		log.Reset()
		d.logChange(before, after)
		if got := log.String(); (got != "") != (tt.wantText != "") || !strings.Contains(got, tt.wantText) {
			t.Errorf("%v: the log says %q, want %q", tt.node, got, tt.wantText)
		}
		before = after
	}
}

// Event times and counts come in either format or both.
func TestEventFields(t *testing.T) {
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
		e := evictionEvent(&tt.event)
		if got := fmt.Sprint(e.First.Unix(), e.Last.Unix(), e.Count); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.event, got, tt.want)
		}
	}
}
