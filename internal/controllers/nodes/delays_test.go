// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/lb"
)

// annotator applies the annotations of patches to the snapshot.
type annotator struct {
	client.Writer
	t      *testing.T
	nodes  *cache.Snapshot
	writes []string
}

func (a *annotator) Patch(_ context.Context, obj client.Object, p client.Patch, _ ...client.PatchOption) error {
	data, err := p.Data(obj)
	if err != nil {
		return err
	}
	var patch struct {
		Metadata struct {
			UID         string
			Annotations map[string]*string
		}
	}
	if err := json.Unmarshal(data, &patch); err != nil {
		return err
	}
	n := cache.Get[corev1.Node](a.nodes.Nodes, obj.GetName()).DeepCopy()
	value := patch.Metadata.Annotations[lb.DelayAnnotation]
	if string(n.UID) != patch.Metadata.UID {
		a.t.Errorf("the patch is for UID %q", patch.Metadata.UID)
	}
	if n.Annotations = nil; value != nil {
		n.Annotations = map[string]string{lb.DelayAnnotation: *value}
	}
	a.writes = append(a.writes, fmt.Sprintf("%s %v", n.Name, value != nil))
	return a.nodes.Nodes.Update(n)
}

// A node has the annotation while it is a member, and after the taint of the autoscaler until it has been Down for ten
// seconds in every pool.
func TestDeletionDelays(t *testing.T) {
	snap := &cache.Snapshot{}
	snap.InMemory()
	writer := &annotator{t: t, nodes: snap}
	add := func(obj client.Object) {
		t.Helper()
		if err := snap.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	node := func(number int) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", number), UID: types.UID(fmt.Sprint(number))}}
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.0.%d", number)}}
		return n
	}
	for number := 1; number <= 3; number++ {
		add(node(number))
	}
	now := time.Unix(1700000000, 0)
	members, loaded := map[string]map[string]time.Time{"a": {"10.0.0.1": {}, "10.0.0.2": {}}, "b": {"10.0.0.1": {}}}, true
	for name := range members {
		add(&v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	d := DeletionDelays{Nodes: snap, Writer: writer, Log: slog.New(slog.DiscardHandler), ListMembers: func(p *v1alpha1.BackendPool, add func(netip.Addr, time.Time)) bool {
		for ip, down := range members[p.Name] {
			add(netip.MustParseAddr(ip), down)
		}
		return loaded || p.Name == "b"
	}}
	expect := func(when, want string) {
		t.Helper()
		writer.writes = nil
		if err := d.updateNodes(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		slices.Sort(writer.writes)
		if got := strings.Join(writer.writes, ", "); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	expect("two are members", "n1 true, n2 true")
	expect("nothing changed", "")
	loaded = false
	delete(members["a"], "10.0.0.2")
	expect("a record is not loaded", "")
	members["b"]["10.0.0.3"] = time.Time{}
	expect("a record is not loaded, and a node joins another pool", "n3 true")
	delete(members["b"], "10.0.0.3")
	expect("it left, and the record is still not loaded", "")
	loaded = true
	expect("two have left", "n2 false, n3 false")
	n1 := cache.Get[corev1.Node](snap.Nodes, "n1").DeepCopy()
	n1.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Value: fmt.Sprint(now.Unix()), Effect: corev1.TaintEffectNoSchedule}}
	if err := snap.Nodes.Update(n1); err != nil {
		t.Fatal(err)
	}
	members["a"]["10.0.0.1"] = now
	now = now.Add(time.Minute)
	expect("Down in one pool", "")
	members["b"]["10.0.0.1"] = now.Add(-9 * time.Second)
	expect("Down in the other for nine seconds", "")
	now = now.Add(time.Second)
	expect("Down for ten seconds", "n1 false")

	for number := 1; number <= 3; number++ {
		if err := snap.Nodes.Delete(node(number)); err != nil {
			t.Fatal(err)
		}
	}
	for number := 1; number <= 25; number++ {
		add(node(number))
		members["a"][fmt.Sprintf("10.0.0.%d", number)] = time.Time{}
	}
	for _, want := range []int{20, 5, 0} {
		writer.writes = nil
		if err := d.updateNodes(t.Context(), now); err != nil || len(writer.writes) != want {
			t.Errorf("%d writes, want %d: %v", len(writer.writes), want, err)
		}
	}
}
