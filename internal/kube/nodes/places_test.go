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

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/service"
)

func worker(n int, label string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", n), UID: types.UID(fmt.Sprint("u", n)), Labels: map[string]string{}}}
	if label != "" {
		node.Labels[view.PlaceLabel] = label
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("10.0.0.", n)}}
	return node
}

func twoPlaces() *places {
	several := []service.Configuration{{Name: "One", PrimaryVMSet: "set-1"}, {Name: "two"}}
	return &places{several: several, names: view.PlaceNames(several)}
}

// A choice applies before the cache shows it; a later label by the user takes precedence.
func TestAChoiceCountsAtOnce(t *testing.T) {
	p := twoPlaces()
	nodes := []*corev1.Node{worker(1, ""), worker(2, ""), worker(3, "")}
	for _, n := range nodes {
		p.learn(n, "")
	}
	var got []string
	for _, n := range []*corev1.Node{nodes[2], nodes[0], nodes[1]} { // in arbitrary order
		got = append(got, p.choose(n, nodes, nil))
	}
	if s := fmt.Sprint(got); s != "[One One two]" && s != "[One two One]" {
		t.Errorf("placed on %s", s)
	}
	on := p.on(worker(1, ""))
	if on == "" {
		t.Fatal("the choice is forgotten before it shows")
	}
	if is := p.standing(worker(1, view.PlaceValue(on)), nil); is != on {
		t.Errorf("it shows on %s, and is on %q", on, is)
	}
	other := map[string]string{"One": "two", "two": "One"}[on]
	if is := p.standing(worker(1, view.PlaceValue(other)), nil); is != other {
		t.Errorf("a person moved it to %s, and it is on %q", other, is)
	}
	again := worker(1, "")
	again.UID = "another"
	if on := p.on(again); on != "" || p.knows(again) {
		t.Errorf("another node of the name is on %q", on)
	}
}

func TestWhereAzureShowsItItStays(t *testing.T) {
	p := twoPlaces()
	shown := shownPlaces{"10.0.0.1": "two", "10.0.0.2": "two"}
	n1, n2, n3 := worker(1, ""), worker(2, ""), worker(3, "one")
	p.learn(n1, "")
	p.learn(n2, "SET-1")
	if on := p.standing(n1, shown); on != "two" {
		t.Errorf("on %q, and Azure shows it on two", on)
	}
	if on := p.standing(n2, shown); on != "One" {
		t.Errorf("on %q, and its set says One", on)
	}
	inPool := worker(1, "")
	inPool.Name, inPool.UID, inPool.Spec.ProviderID, inPool.Status.Addresses = "n4", "n4", "azure:///subscriptions/S/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/n4", nil
	p.learn(inPool, "")
	if on := p.standing(inPool, shownPlaces{"/subscriptions/s/resourcegroups/rg/providers/microsoft.compute/virtualmachines/n4": "two"}); on != "two" {
		t.Errorf("on %q, and Azure shows its interface on two", on)
	}
	p.learn(n3, "")
	if on := p.standing(n3, shownPlaces{"10.0.0.3": "two"}); on != "One" {
		t.Errorf("on %q, and its label says One", on)
	}
}

// Nodes of an earlier process count by label, unknown nodes do not count.
func TestUnknownNodesDoNotCountTwice(t *testing.T) {
	p := twoPlaces()
	fresh := worker(9, "")
	p.learn(fresh, "")
	nodes := []*corev1.Node{fresh, worker(1, "one"), worker(2, ""), worker(3, ""), worker(4, "gone-since")}
	if on := p.choose(fresh, nodes, nil); on != "two" {
		t.Errorf("on %q, where there is one more than on two", on)
	}
	// A node assigned by its set does not count for unrestricted configurations.
	p.several = []service.Configuration{
		{Name: "One"}, {Name: "two", PrimaryVMSet: "set-2", Nodes: func(map[string]string) bool { return false }}, {Name: "three"},
	}
	p.names = view.PlaceNames(p.several)
	nodes = []*corev1.Node{fresh, worker(1, "one"), worker(5, "two")}
	if on := p.choose(fresh, nodes, nil); on != "three" {
		t.Errorf("on %q, and three has no node", on)
	}
}

// placing returns a controller with these nodes and two load balancers.
func placing(t *testing.T, told Recorder, nodes ...client.Object) *Placing {
	t.Helper()
	p := &Placing{Nodes: &view.Snapshot{}, Events: told}
	p.Nodes.InMemory()
	if err := p.Nodes.Add(nodes...); err != nil {
		t.Fatal(err)
	}
	p.Among(twoPlaces().several, nil, nil)
	return p
}

func TestAllPlaced(t *testing.T) {
	p := placing(t, nil, worker(3, ""), worker(1, "one"), worker(2, "other"))
	says := func(want ...string) {
		t.Helper()
		if name, why := p.Missing(p.Nodes.Eligible()); !slices.Equal([]string{name, why}, want) {
			t.Errorf("%s is missing: %q, want %q", name, why, want)
		}
	}
	says("n2", "")
	p.places.tell(worker(2, "other"), "Throttled", "Azure wants patience")
	says("n2", "Azure wants patience")
	p.places.note(worker(2, "other"), func(is *nodePlace) { is.nowhere = true })
	says("n3", "")
	excluded := worker(3, "")
	excluded.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
	_ = p.Nodes.Nodes.Update(excluded)
	says("", "")
}

func TestPatienceWithAzure(t *testing.T) {
	p, now := twoPlaces(), time.Unix(1000, 0)
	p.rest(now.Add(time.Minute))
	p.rest(now.Add(time.Second)) // never earlier
	f, ok := errors.AsType[*fault.Fault](p.open(now.Add(time.Minute - 1)))
	if !ok || !f.RetryAt.Equal(now.Add(time.Minute)) || f.Class != fault.Retriable {
		t.Errorf("open before its time: %v", f)
	}
	if err := p.open(now.Add(time.Minute)); err != nil {
		t.Error(err)
	}
}

// A new node has time to get a providerID; after that nothing waits for it.
func TestWithoutAProviderID(t *testing.T) {
	var events told
	p := placing(t, &events)
	n, now := worker(1, ""), time.Unix(1000, 0)
	n.CreationTimestamp = metav1.NewTime(now)
	for _, tt := range []struct {
		after, wait time.Duration
		events      int
	}{{0, time.Minute, 0}, {50 * time.Second, 10 * time.Second, 0}, {time.Minute, time.Minute, 1}, {2 * time.Minute, time.Minute, 1}} {
		wait, err := p.place(t.Context(), n, now.Add(tt.after))
		if err != nil || wait != tt.wait || len(events) != tt.events {
			t.Errorf("after %s: waits %s, %d events, %v", tt.after, wait, len(events), err)
		}
		if name, _ := p.Missing([]*corev1.Node{n}); (name == "") != (tt.events > 0) {
			t.Errorf("after %s: %q is waited for", tt.after, name)
		}
	}
	if !strings.HasPrefix(events[0], "Node n1 "+EventNotPlaced+": ") {
		t.Error(events[0])
	}
}
