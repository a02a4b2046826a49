// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
)

// loaded is a cluster whose status store knows the BackendPool.
func loaded(t *testing.T, p *v1alpha1.BackendPool, service *corev1.Service, nodes ...string) (*Cluster, *entry) {
	t.Helper()
	c := stored(t, p)
	if service != nil {
		if err := c.snap.services.Add(service); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range nodes {
		if err := c.snap.nodes.Add(nodeAt(name)); err != nil {
			t.Fatal(err)
		}
	}
	e := &entry{ref: refOf(p), status: p.Status}
	c.statuses = &statuses{byRef: map[poolupdate.Ref]*entry{e.ref: e}}
	return c, e
}

func nodeAt(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0." + name[1:]}}
	return n
}

// desired is what an attempt works with that looks at the cluster now.
func (c *Cluster) desired(t *testing.T, ref poolupdate.Ref) poolupdate.Desired {
	t.Helper()
	d, err := c.Desired(ref)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (c *Cluster) situationNow(t *testing.T, p *v1alpha1.BackendPool) situation {
	t.Helper()
	set, err := c.snap.members(p)
	if err != nil {
		t.Fatal(err)
	}
	return situationOf(p, c.snap.standingOf(p), set)
}

// A node goes, an attempt looks, and the node is back before anybody has reconciled:
// what was queued for before is what holds again, and still an operation has to follow.
func TestWhatAnAttemptSawIsWhatCounts(t *testing.T) {
	p := bp("a", 0, took, func(p *v1alpha1.BackendPool) {
		p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
	})
	c, e := loaded(t, p, nil, "n1", "n2")
	if !e.due(c.situationNow(t, p), time.Now()) {
		t.Fatal("the first situation is a new one")
	}
	if e.due(c.situationNow(t, p), time.Now()) {
		t.Error("the same situation queues twice")
	}
	if err := c.snap.nodes.Delete(nodeAt("n2")); err != nil {
		t.Fatal(err)
	}
	if got := len(c.desired(t, e.ref).Addresses); got != 1 {
		t.Fatalf("the attempt wants %d addresses", got)
	}
	if err := c.snap.nodes.Add(nodeAt("n2")); err != nil {
		t.Fatal(err)
	}
	if !e.due(c.situationNow(t, p), time.Now()) {
		t.Error("n2 is back, the attempt left it out, and nothing follows")
	}
}

// The same with a Service that goes, comes back and goes again.
func TestServiceThatGoesTwiceIsDrainedTwice(t *testing.T) {
	p := bp("a", 0, took)
	c, e := loaded(t, p, nil)
	if !e.due(c.situationNow(t, p), time.Now()) {
		t.Fatal("the first situation is a new one")
	}
	svc := serviceOfType(corev1.ServiceTypeLoadBalancer)
	if err := c.snap.services.Add(svc); err != nil {
		t.Fatal(err)
	}
	c.desired(t, e.ref) // an attempt for the Service
	if err := c.snap.services.Delete(svc); err != nil {
		t.Fatal(err)
	}
	if !e.due(c.situationNow(t, p), time.Now()) {
		t.Error("the Service is gone again, and nothing removes what the attempt wrote")
	}
}

func TestWhenToLookAgain(t *testing.T) {
	opts := Options{RecheckAfter: 5 * time.Minute, ReleaseAgainAfter: time.Minute}
	filling := standing{state: stateActive}
	draining := standing{state: stateServiceGone, taken: true}
	leaving := standing{state: stateActive, taken: true, deleting: true}
	ended := func(o poolupdate.Outcome) poolupdate.Report {
		return poolupdate.Report{Outcome: o, At: time.Unix(0, 0)}
	}
	level := poolupdate.Report{Outcome: poolupdate.Written, Settled: true, At: time.Unix(0, 0)}
	missing := func(code string) poolupdate.Report {
		return poolupdate.Report{Outcome: poolupdate.Stale, At: time.Unix(0, 0), Fault: &fault.Fault{Class: fault.Stale, Code: code}}
	}
	nameless, named := missing(fault.CodeNotFound), missing("ResourceNotFound")
	tests := []struct {
		name     string
		standing standing
		attempts []poolupdate.Report
		after    time.Duration // 0 for never
		released bool
	}{
		{"level", filling, []poolupdate.Report{level}, 0, false},
		{"failed", filling, []poolupdate.Report{ended(poolupdate.Terminal)}, 0, false},
		{"no pool", filling, []poolupdate.Report{ended(poolupdate.Stale)}, 5 * time.Minute, false},
		{"interfaces", filling, []poolupdate.Report{ended(poolupdate.Refused)}, 5 * time.Minute, false},
		{"no pool, then Azure fails", filling, []poolupdate.Report{ended(poolupdate.Stale), ended(poolupdate.Terminal), ended(poolupdate.Terminal)}, 5 * time.Minute, false},
		{"no pool, then level, then failed", filling, []poolupdate.Report{ended(poolupdate.Stale), level, ended(poolupdate.Terminal)}, 0, false},
		{"drained", draining, []poolupdate.Report{level}, 0, false},
		{"draining fails", draining, []poolupdate.Report{ended(poolupdate.Terminal)}, time.Minute, false},
		{"draining finds no pool", draining, []poolupdate.Report{ended(poolupdate.Stale)}, 5 * time.Minute, false},
		{"leaving", leaving, []poolupdate.Report{level}, 0, true},
		{"leaving fails", leaving, []poolupdate.Report{ended(poolupdate.Terminal)}, time.Minute, false},
		{"leaving a pool that is gone", leaving, []poolupdate.Report{ended(poolupdate.Stale)}, 0, true},
		{"leaving a pool that Azure names as gone", leaving, []poolupdate.Report{named}, 0, true},
		{"leaving, and a 404 names nothing", leaving, []poolupdate.Report{nameless}, time.Minute, false},
		{"leaving, and two in a row do", leaving, []poolupdate.Report{nameless, nameless}, 0, true},
		{"leaving, and two do that are not in a row", leaving, []poolupdate.Report{nameless, ended(poolupdate.Terminal), nameless}, time.Minute, false},
		{"filling, and a 404 names nothing", filling, []poolupdate.Report{nameless}, 5 * time.Minute, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := &entry{}
			for _, r := range tt.attempts {
				e.recheckAt = time.Time{} // the time had come
				e.schedule(tt.standing, r, opts)
			}
			var after time.Duration
			if !e.recheckAt.IsZero() {
				after = e.recheckAt.Sub(time.Unix(0, 0))
			}
			if after != tt.after || e.released != tt.released {
				t.Errorf("again after %s, released %v; want %s, %v", after, e.released, tt.after, tt.released)
			}
		})
	}
}

// After a lost watch, a slice that was made anew under its name comes as an update.
func TestSliceMadeAnewIsAChange(t *testing.T) {
	node := "n1"
	slice := func(uid types.UID, kind discoveryv1.AddressType) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "web-1", UID: uid},
			AddressType: kind, Endpoints: []discoveryv1.Endpoint{{NodeName: &node}},
		}
	}
	before, after := slice("a", discoveryv1.AddressTypeIPv4), slice("b", discoveryv1.AddressTypeIPv6)
	if !sliceChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("another slice of the name passes for the old one")
	}
	if sliceChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before.DeepCopy()}) {
		t.Error("an update that changes nothing passes for a change")
	}
}

func TestAddressesThatNoLoadBalancerReaches(t *testing.T) {
	n := &corev1.Node{}
	for _, ip := range []string{"127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "fe80::1", "fe80::1%eth0", "::1", "x", "", "10.0.0.4", "fd00::4"} {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	if got := fmt.Sprint(internalIPs(n)); got != "[10.0.0.4 fd00::4]" {
		t.Errorf("got %s", got)
	}
}

// queued is a Lanes that keeps what it is given.
type queued struct {
	ops     []poolupdate.Operation
	removed []poolupdate.ServiceName
}

func (q *queued) Run(context.Context)             {}
func (q *queued) Add(ops ...poolupdate.Operation) { q.ops = append(q.ops, ops...) }
func (q *queued) RemoveService(name poolupdate.ServiceName) int {
	q.removed = append(q.removed, name)
	return 0
}
func (q *queued) Forget(lb.PoolID)               {}
func (q *queued) Drop(poolupdate.Ref)            {}
func (q *queued) LevelAs(lb.PoolID, uint64) bool { return false }
func (q *queued) Resume()                        {}

// A pool that was read before says so while it waits to be read again, and one that
// is being deleted never says that it is level.
func TestWhatAQueuedPoolSays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(*v1alpha1.BackendPool)
		reason string
		says   string
	}{
		{"new", func(*v1alpha1.BackendPool) {}, v1alpha1.ReasonPending, "nothing has been read"},
		{"read before a pause", func(p *v1alpha1.BackendPool) { took(p); p.Status.LastOutcome = &v1alpha1.AttemptOutcome{} }, v1alpha1.ReasonUpdating, "read again"},
		{"being deleted", func(p *v1alpha1.BackendPool) { took(p); deleting(p) }, v1alpha1.ReasonUpdating, "being deleted; its addresses are being removed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, api, p := recorded(t)
			lanes := &queued{}
			c.lanes = lanes
			tt.before(p)
			c.statuses = &statuses{reader: api, writer: api, byRef: map[poolupdate.Ref]*entry{}}
			req := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)}
			if _, err := c.reconcilePool(t.Context(), req); err != nil {
				t.Fatal(err)
			}
			got := meta.FindStatusCondition(c.statuses.known(refOf(p)).status.Conditions, v1alpha1.ConditionSynced)
			if len(lanes.ops) != 1 || got == nil || got.Reason != tt.reason || !strings.Contains(got.Message, tt.says) {
				t.Errorf("%d operations, %+v; want one, %s and %q", len(lanes.ops), got, tt.reason, tt.says)
			}
		})
	}
}

// Nobody else writes the pools that Weir made.
func TestWhoElseWritesAPool(t *testing.T) {
	for _, made := range []bool{true, false} {
		p := bp("a", 0, took, func(p *v1alpha1.BackendPool) {
			p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
			if made {
				p.Status.MadeFor = v1alpha1.MadeForNodes
			}
		})
		c, e := loaded(t, p, nil, "n1")
		if want := c.desired(t, e.ref); want.Alone != made || len(want.Addresses) != 1 {
			t.Errorf("made by Weir: %v; %+v", made, want)
		}
	}
}

// A dry run keeps the members of its pool where they are, whatever becomes of the BackendPool.
func TestADryRunNeedsWhatItHas(t *testing.T) {
	for _, dry := range []string{"", "true"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", Finalizers: []string{ServiceFinalizer},
			Annotations: map[string]string{PlaceAnnotation: "lb", DryRunAnnotation: dry},
		}}
		s.Spec.Type = corev1.ServiceTypeClusterIP // it was a Local one with a load balancer
		p := bp("a", 0, took, func(p *v1alpha1.BackendPool) {
			p.Namespace, p.Status.MadeFor = "ns", "uid"
			p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: "web"}
		})
		c, _ := loaded(t, p, s)
		if got := c.needed(p); got != (dry != "") {
			t.Errorf("dry run %q: needed %v", dry, got)
		}
	}
}

// The attempt that set an interface Down reports when the BackendPool is already being deleted:
// it has taken nothing back, so the BackendPool has to wait for one that does.
func TestAnAttemptThatTookNothingBackReleasesNothing(t *testing.T) {
	st := standing{state: stateActive, deleting: true, taken: true}
	for wanted, released := range map[int]bool{1: false, 0: true} {
		e := &entry{}
		e.schedule(st, poolupdate.Report{Outcome: poolupdate.Refused, States: true, Desired: wanted}, Options{})
		if e.isReleased() != released {
			t.Errorf("%d members wanted: released %v", wanted, !released)
		}
	}
}
