// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

func newWorkerNode(n int, label string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", n), UID: types.UID(fmt.Sprint("u", n)), Labels: map[string]string{}}}
	if label != "" {
		node.Labels[metadata.PlaceLabel] = label
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("10.0.0.", n)}}
	return node
}

func newTestPlacements() *placementStore {
	several := []service.Configuration{{Name: "One", PrimaryVMSet: "set-1"}, {Name: "two"}}
	return &placementStore{configurations: several, names: cache.PlaceNames(several)}
}

// A choice applies before the cache shows it; a later label by the user takes precedence.
func TestAChoiceCountsAtOnce(t *testing.T) {
	p := newTestPlacements()
	nodes := []*corev1.Node{newWorkerNode(1, ""), newWorkerNode(2, ""), newWorkerNode(3, "")}
	for _, n := range nodes {
		p.recordSet(n, "")
	}
	var got []string
	for _, n := range []*corev1.Node{nodes[2], nodes[0], nodes[1]} { // in arbitrary order
		got = append(got, p.assignBest(n, nodes, nil))
	}
	if s := fmt.Sprint(got); s != "[One One two]" && s != "[One two One]" {
		t.Errorf("placed on %s", s)
	}
	on := p.configurationOf(newWorkerNode(1, ""))
	if on == "" {
		t.Fatal("the choice is forgotten before it shows")
	}
	if got := p.assignFixed(newWorkerNode(1, cache.PlaceValue(on)), nil); got != on {
		t.Errorf("it shows on %s, and is on %q", on, got)
	}
	other := map[string]string{"One": "two", "two": "One"}[on]
	if got := p.assignFixed(newWorkerNode(1, cache.PlaceValue(other)), nil); got != other {
		t.Errorf("a person moved it to %s, and it is on %q", other, got)
	}
	second := newWorkerNode(1, "")
	second.UID = "another"
	if on := p.configurationOf(second); on != "" || p.isSetKnown(second) {
		t.Errorf("another node of the name is on %q", on)
	}
}

func TestPlacementFollowsAzure(t *testing.T) {
	p := newTestPlacements()
	shown := observedPlaces{"10.0.0.1": "two", "10.0.0.2": "two"}
	n1, n2, n3 := newWorkerNode(1, ""), newWorkerNode(2, ""), newWorkerNode(3, "one")
	p.recordSet(n1, "")
	p.recordSet(n2, "SET-1")
	if on := p.assignFixed(n1, shown); on != "two" {
		t.Errorf("on %q, and Azure shows it on two", on)
	}
	if on := p.assignFixed(n2, shown); on != "One" {
		t.Errorf("on %q, and its set says One", on)
	}
	inPool := newWorkerNode(1, "")
	inPool.Name, inPool.UID, inPool.Spec.ProviderID, inPool.Status.Addresses = "n4", "n4", "azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/n4", nil
	p.recordSet(inPool, "")
	if on := p.assignFixed(inPool, observedPlaces{"/subscriptions/s/resourcegroups/rg/providers/microsoft.compute/virtualmachines/n4": "two"}); on != "two" {
		t.Errorf("on %q, and Azure shows its interface on two", on)
	}
	p.recordSet(n3, "")
	if on := p.assignFixed(n3, observedPlaces{"10.0.0.3": "two"}); on != "One" {
		t.Errorf("on %q, and its label says One", on)
	}
}

// Nodes of an earlier process count by label, unknown nodes do not count.
func TestUnknownNodesDoNotCountTwice(t *testing.T) {
	p := newTestPlacements()
	fresh := newWorkerNode(9, "")
	p.recordSet(fresh, "")
	nodes := []*corev1.Node{fresh, newWorkerNode(1, "one"), newWorkerNode(2, ""), newWorkerNode(3, ""), newWorkerNode(4, "gone-since")}
	if on := p.assignBest(fresh, nodes, nil); on != "two" {
		t.Errorf("on %q, where there is one more than on two", on)
	}
	// A node assigned by its set does not count for unrestricted configurations.
	p.configurations = []service.Configuration{
		{Name: "One"}, {Name: "two", PrimaryVMSet: "set-2", Nodes: func(map[string]string) bool { return false }}, {Name: "three"},
	}
	p.names = cache.PlaceNames(p.configurations)
	nodes = []*corev1.Node{fresh, newWorkerNode(1, "one"), newWorkerNode(5, "two")}
	if on := p.assignBest(fresh, nodes, nil); on != "three" {
		t.Errorf("on %q, and three has no node", on)
	}
}

// newPlacer returns a controller with these nodes and two load balancers.
func newPlacer(t *testing.T, reported Recorder, nodes ...client.Object) *Placer {
	t.Helper()
	p := &Placer{Nodes: &cache.Snapshot{}, Events: reported}
	p.Nodes.InMemory()
	if err := p.Nodes.Add(nodes...); err != nil {
		t.Fatal(err)
	}
	p.SetConfigurations(newTestPlacements().configurations, nil, nil)
	return p
}

func TestAllPlaced(t *testing.T) {
	p := newPlacer(t, nil, newWorkerNode(3, ""), newWorkerNode(1, "one"), newWorkerNode(2, "other"))
	message := func(want ...string) {
		t.Helper()
		if name, reason := p.FirstUnplaced(p.Nodes.EligibleNodes()); !slices.Equal([]string{name, reason}, want) {
			t.Errorf("%s is missing: %q, want %q", name, reason, want)
		}
	}
	message("n2", "")
	p.places.setReason(newWorkerNode(2, "other"), "Throttled", "Azure wants patience")
	message("n2", "Azure wants patience")
	p.places.updateNode(newWorkerNode(2, "other"), func(place *nodePlace) { place.isUnplaceable = true })
	message("n3", "")
	excluded := newWorkerNode(3, "")
	excluded.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
	_ = p.Nodes.Nodes.Update(excluded)
	message("", "")
}

func TestPatienceWithAzure(t *testing.T) {
	p, now := newTestPlacements(), time.Unix(1000, 0)
	p.setRetryAfter(now.Add(time.Minute))
	p.setRetryAfter(now.Add(time.Second)) // never earlier
	f, ok := errors.AsType[*armerror.Fault](p.checkRetryAfter(now.Add(time.Minute - 1)))
	if !ok || !f.RetryAt.Equal(now.Add(time.Minute)) || f.Class != armerror.Retriable {
		t.Errorf("open before its time: %v", f)
	}
	if err := p.checkRetryAfter(now.Add(time.Minute)); err != nil {
		t.Error(err)
	}
}

// A new node has time to get a providerID; after that nothing waits for it.
func TestWithoutAProviderID(t *testing.T) {
	var events eventTexts
	p := newPlacer(t, &events)
	n, now := newWorkerNode(1, ""), time.Unix(1000, 0)
	n.CreationTimestamp = metav1.NewTime(now)
	for _, tt := range []struct {
		after, wait time.Duration
		events      int
	}{{0, time.Minute, 0}, {50 * time.Second, 10 * time.Second, 0}, {time.Minute, time.Minute, 1}, {2 * time.Minute, time.Minute, 1}} {
		wait, err := p.placeNode(t.Context(), n, now.Add(tt.after))
		if err != nil || wait != tt.wait || len(events) != tt.events {
			t.Errorf("after %s: waits %s, %d events, %v", tt.after, wait, len(events), err)
		}
		if name, _ := p.FirstUnplaced([]*corev1.Node{n}); (name == "") != (tt.events > 0) {
			t.Errorf("after %s: %q is waited for", tt.after, name)
		}
	}
	if !strings.HasPrefix(events[0], "Node n1 "+EventNotPlaced+": ") {
		t.Error(events[0])
	}
}
