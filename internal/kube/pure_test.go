// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/servicelb"
)

// stored is a snapshot of these objects. Pools count as taken, and as made by Weir, by their
// status, and every namespace may bind every pool.
func stored(t *testing.T, objects ...client.Object) *Cluster {
	t.Helper()
	place := placement{subscriptionID: "s0", resourceGroup: "rg0"}
	keyed := func(indexers toolscache.Indexers) toolscache.Indexer {
		return toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
	}
	s := &snapshot{
		slices: keyed(sliceIndexers()), services: keyed(nil), nodes: keyed(nodeIndexers()), pools: keyed(poolIndexers(place)), namespaces: keyed(nil),
		place: place, taken: func(p *v1alpha1.BackendPool) bool { return p.Status.PoolID != "" },
		made: func(p *v1alpha1.BackendPool) bool { return p.Status.MadeFor != "" },
		right: func(p *v1alpha1.BackendPool, _ lb.PoolID) (right, refusal) {
			if p.Status.MadeFor != "" {
				return rightOwn, refusal{}
			}
			return rightGranted, refusal{}
		},
	}
	for _, obj := range objects {
		store := s.pools
		switch obj.(type) {
		case *discoveryv1.EndpointSlice:
			store = s.slices
		case *corev1.Service:
			store = s.services
		case *corev1.Node:
			store = s.nodes
		}
		if err := store.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	return &Cluster{snap: s, serviceLBs: servicelb.New(servicelb.Config{})}
}

// bp is a BackendPool of the Service web, made at minute n.
func bp(name string, minute int, edit ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Finalizers: []string{v1alpha1.Finalizer},
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)),
	}, Spec: v1alpha1.BackendPoolSpec{
		ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, IPFamily: "IPv4",
		LoadBalancer: v1alpha1.LoadBalancerReference{Name: "lb"}, PoolName: "web",
	}}
	for _, f := range edit {
		f(p)
	}
	return p
}

func serviceOfType(kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "svc"}, Spec: corev1.ServiceSpec{Type: kind}}
}

func took(p *v1alpha1.BackendPool) {
	p.Status.PoolID = "/subscriptions/s0/resourceGroups/rg0/providers/Microsoft.Network/loadBalancers/lb/backendAddressPools/web"
}
func deleting(p *v1alpha1.BackendPool) { p.DeletionTimestamp = new(metav1.Now()) }
func paused(p *v1alpha1.BackendPool)   { p.Spec.Paused = true }

func TestStanding(t *testing.T) {
	lbService := serviceOfType(corev1.ServiceTypeLoadBalancer)
	badSelector := func(p *v1alpha1.BackendPool) {
		p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}
	}
	for _, tt := range []struct {
		name           string
		pool           *v1alpha1.BackendPool
		others         []client.Object
		want           state
		removes, works bool
	}{
		{"its Service is there", bp("a", 0), []client.Object{lbService}, stateActive, false, true},
		{"NodePort will do", bp("a", 0), []client.Object{serviceOfType(corev1.ServiceTypeNodePort)}, stateActive, false, true},
		{"paused", bp("a", 0, paused, took), []client.Object{lbService}, statePaused, false, false},
		{"no Service, never taken", bp("a", 0), nil, stateServiceGone, false, false},
		{"no Service, taken", bp("a", 0, took), nil, stateServiceGone, true, true},
		{"unfit Service, taken", bp("a", 0, took), []client.Object{serviceOfType(corev1.ServiceTypeExternalName)}, stateServiceGone, true, true},
		{"being deleted, never taken", bp("a", 0, deleting), []client.Object{lbService}, stateActive, false, false},
		{"being deleted, taken", bp("a", 0, deleting, took), []client.Object{lbService}, stateActive, true, true},
		{"being deleted while paused", bp("a", 0, deleting, took, paused), []client.Object{lbService}, statePaused, false, false},
		{"an older one holds the pool", bp("b", 1), []client.Object{lbService, bp("a", 0)}, stateDuplicate, false, false},
		{"the older one", bp("b", 0), []client.Object{lbService, bp("a", 1)}, stateActive, false, true},
		{"as old, later by name", bp("b", 0), []client.Object{lbService, bp("a", 0)}, stateDuplicate, false, false},
		{"younger, but it took the pool", bp("b", 1, took), []client.Object{lbService, bp("a", 0)}, stateActive, false, true},
		{"the older one goes and never took it", bp("b", 1), []client.Object{lbService, bp("a", 0, deleting)}, stateActive, false, true},
		{"the older one goes and has to clear it", bp("b", 1), []client.Object{lbService, bp("a", 0, deleting, took)}, stateDuplicate, false, false},
		{"a selector that nobody can read", bp("a", 0, badSelector, took), nil, stateInvalid, false, false},
		{"the same, being deleted", bp("a", 0, badSelector, took, deleting), nil, stateActive, true, true},
		{"a name that leaves the path", bp("a", 0, func(p *v1alpha1.BackendPool) { p.Spec.PoolName = "../x" }), []client.Object{lbService}, stateInvalid, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := stored(t, append(tt.others, tt.pool)...)
			st := c.snap.standingOf(tt.pool)
			if st.state != tt.want || st.removes() != tt.removes || st.works() != tt.works {
				t.Errorf("%s (removes %v, works %v, %q), want %s (%v, %v)", st.state, st.removes(), st.works(), st.why, tt.want, tt.removes, tt.works)
			}
		})
	}
}

func TestRelevant(t *testing.T) {
	web := poolupdate.ServiceName{Namespace: "shop", Name: "web"}
	none := poolupdate.ServiceName{}
	lbService, leaving := serviceOfType(corev1.ServiceTypeLoadBalancer), serviceOfType(corev1.ServiceTypeLoadBalancer)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"example.com/keeper"}
	for _, tt := range []struct {
		name    string
		pool    *v1alpha1.BackendPool
		service *corev1.Service
		op      func(*poolupdate.Operation)
		want    bool
	}{
		{"as it was queued", bp("a", 0), lbService, nil, true},
		{"another BackendPool of the name", bp("a", 0), lbService, func(o *poolupdate.Operation) { o.Ref.UID = "old" }, false},
		{"another pool", bp("a", 0), lbService, func(o *poolupdate.Operation) { o.Pool.Name = "old" }, false},
		{"the pool in other letters", bp("a", 0), lbService, func(o *poolupdate.Operation) { o.Pool.Name = "WEB" }, true},
		{"bound to another Service by now", bp("a", 0), lbService, func(o *poolupdate.Operation) { o.Service.Name = "old" }, false},
		{"its Service is gone", bp("a", 0, took), nil, nil, false},
		{"its Service is being deleted", bp("a", 0, took), leaving, nil, false},
		{"the removal after that", bp("a", 0, took), leaving, func(o *poolupdate.Operation) { o.Service = none }, true},
		{"the removal after it has gone", bp("a", 0, took), nil, func(o *poolupdate.Operation) { o.Service = none }, true},
		{"its Service was never there", bp("a", 0), nil, func(o *poolupdate.Operation) { o.Service = none }, false},
		{"being deleted", bp("a", 0, took, deleting), lbService, nil, false},
		{"the removal after that", bp("a", 0, took, deleting), lbService, func(o *poolupdate.Operation) { o.Service = none }, true},
		{"paused", bp("a", 0, took, paused), lbService, nil, false},
		{"no finalizer", bp("a", 0, func(p *v1alpha1.BackendPool) { p.Finalizers = nil }), lbService, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			objects := []client.Object{tt.pool}
			if tt.service != nil {
				objects = append(objects, tt.service)
			}
			op := poolupdate.Operation{Ref: refOf(tt.pool), Service: web,
				Pool: lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: "lb"}, Name: "web"}}
			if tt.op != nil {
				tt.op(&op)
			}
			if got := stored(t, objects...).Relevant(op); got != tt.want {
				t.Errorf("relevant %v, want %v", got, tt.want)
			}
		})
	}
}

// A BackendPool that took a pool keeps it when the defaults change under it.
func TestPlacement(t *testing.T) {
	moved := placement{subscriptionID: "s9", resourceGroup: "rg9"}
	elsewhere := func(p *v1alpha1.BackendPool) { took(p); p.Spec.PoolName = "other" }
	for _, tt := range []struct {
		name string
		pool *v1alpha1.BackendPool
		want string
	}{
		{"defaults", bp("a", 0), "s9/rg9/lb/web"},
		{"named", bp("a", 0, func(p *v1alpha1.BackendPool) {
			p.Spec.LoadBalancer.SubscriptionID, p.Spec.LoadBalancer.ResourceGroup = "s1", "rg1"
		}), "s1/rg1/lb/web"},
		{"taken under other defaults", bp("a", 0, took), "s0/rg0/lb/web"},
		{"a status that speaks of another pool", bp("a", 0, elsewhere), "s9/rg9/lb/other"},
		{"a status that is no id", bp("a", 0, func(p *v1alpha1.BackendPool) { p.Status.PoolID = "/a/../b" }), "s9/rg9/lb/web"},
	} {
		id, err := moved.of(tt.pool)
		got := fmt.Sprintf("%s/%s/%s/%s", id.LoadBalancer.SubscriptionID, id.LoadBalancer.ResourceGroup, id.LoadBalancer.Name, id.Name)
		if err != nil || got != tt.want {
			t.Errorf("%s: %s %v, want %s", tt.name, got, err, tt.want)
		}
	}
	if _, err := (placement{subscriptionID: "s"}).of(bp("a", 0)); err == nil || !strings.Contains(err.Error(), "resource group") {
		t.Errorf("no resource group anywhere: %v", err)
	}
}

func TestNilConditions(t *testing.T) {
	yes, no := new(true), new(false)
	es := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{
		{NodeName: new("n"), Conditions: discoveryv1.EndpointConditions{}},
		{Conditions: discoveryv1.EndpointConditions{Ready: no}},
		{Conditions: discoveryv1.EndpointConditions{Ready: no, Serving: yes, Terminating: yes}},
	}}
	want := []membership.Endpoint{{Node: "n", Ready: true, Serving: true}, {}, {Serving: true, Terminating: true}}
	if got := sliceOf(es); got.Family != lb.IPv4 || !slices.Equal(got.Endpoints, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := sliceOf(&discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeFQDN}).Family; got != "" {
		t.Errorf("FQDN has family %q", got)
	}
	node := &corev1.Node{Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeExternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeInternalIP, Address: "10.0.0.1 "},
		{Type: corev1.NodeInternalIP, Address: "fe80::1%eth0"}, {Type: corev1.NodeInternalIP, Address: "0.0.0.0"},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.2"}, {Type: corev1.NodeInternalIP, Address: "fd00::2"},
	}}}
	if got := internalIPs(node); !slices.Equal(got, []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("fd00::2")}) {
		t.Errorf("internal addresses %v", got)
	}
}

// What changes nothing that is read starts nothing: heartbeats and our own status
// writes are most of what a cluster sends.
func TestUpdatesThatStartNothing(t *testing.T) {
	c := stored(t)
	node := func(edit func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "1"}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}}}
		edit(n)
		return n
	}
	slice := func(edit func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		es := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			Endpoints: []discoveryv1.Endpoint{{NodeName: new("n")}}}
		edit(es)
		return es
	}
	as := func(n *corev1.Node) {}
	is := func(es *discoveryv1.EndpointSlice) {}
	for _, tt := range []struct {
		name          string
		check         func(event.UpdateEvent) bool
		before, after client.Object
		want          bool
	}{
		{"heartbeat", c.nodeChanged().Update, node(as), node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
		}), false},
		{"heartbeat, for pools of nodes", c.nodeOrLabelsChanged().Update, node(as), node(func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
		}), false},
		{"label", c.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["zone"] = "2" }), false},
		{"label, for pools of nodes", c.nodeOrLabelsChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["zone"] = "2" }), true},
		{"exclusion", c.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Labels["kubernetes.azure.com/managed"] = "false" }), true},
		{"address", c.nodeChanged().Update, node(as), node(func(n *corev1.Node) { n.Status.Addresses[0].Address = "10.0.0.2" }), true},
		{"endpoint's own address", sliceChanged().Update, slice(is), slice(func(es *discoveryv1.EndpointSlice) { es.Endpoints[0].Addresses = []string{"192.0.2.1"} }), true},
		{"readiness", sliceChanged().Update, slice(is), slice(func(es *discoveryv1.EndpointSlice) { es.Endpoints[0].Conditions.Ready = new(false) }), true},
		{"moved", sliceChanged().Update, slice(is), slice(func(es *discoveryv1.EndpointSlice) { es.Labels[discoveryv1.LabelServiceName] = "api" }), true},
		{"status of a BackendPool", poolChanged().Update, bp("a", 0), bp("a", 0, took), false},
		{"its deletion", poolChanged().Update, bp("a", 0), bp("a", 0, deleting), true},
		{"its finalizer", poolChanged().Update, bp("a", 0), bp("a", 0, func(p *v1alpha1.BackendPool) { p.Finalizers = nil }), true},
		{"its spec", poolChanged().Update, bp("a", 0), bp("a", 0, func(p *v1alpha1.BackendPool) { p.Generation++ }), true},
		{"a Service's ports", serviceChanged().Update, serviceOfType("NodePort"), serviceOfType("NodePort"), false},
		{"a Service's type", serviceChanged().Update, serviceOfType("NodePort"), serviceOfType("ClusterIP"), true},
	} {
		if got := tt.check(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A live change goes first, however long the initial list is.
func TestLiveChangesComeBeforeTheInitialList(t *testing.T) {
	objects := []client.Object{}
	for i := range 200 {
		name := fmt.Sprintf("svc-%d", i)
		objects = append(objects, bp(name, 0, func(p *v1alpha1.BackendPool) { p.Spec.ServiceRef.Name, p.Spec.PoolName = name, name }))
	}
	c := stored(t, objects...)
	slice := func(i int) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s", ResourceVersion: "1",
			Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprintf("svc-%d", i)}}}
	}
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	handler := mapped(c.servicesOfSlice)
	for i := range 200 {
		handler.Create(t.Context(), event.CreateEvent{Object: slice(i), IsInInitialList: true}, queue)
	}
	changed := slice(150)
	changed.ResourceVersion = "2"
	handler.Update(t.Context(), event.UpdateEvent{ObjectOld: slice(150), ObjectNew: changed}, queue)
	if first, _ := queue.Get(); first.Name != "svc-150" {
		t.Errorf("%s comes first, want the Service that changed", first.Name)
	}
}

func TestJudge(t *testing.T) {
	active := standing{state: stateActive, taken: true}
	gone := standing{state: stateServiceGone, taken: true, reason: v1alpha1.ReasonServiceNotFound, why: "Service shop/web does not exist"}
	broken := &fault.Fault{Class: fault.Terminal, Code: "Bad", Err: fmt.Errorf("no\nway")}
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		st   standing
		r    poolupdate.Report
		want string
	}{
		{"level", active, poolupdate.Report{Outcome: poolupdate.Unchanged, Settled: true}, "True Level level with no nodes"},
		{"failed, and another attempt follows", active, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken, Requeued: true, RetriesUsed: 2, Budget: 3, RetryAt: at},
			"False Retrying the last attempt failed: Bad: no way; retry 2 of 3 follows at 2026-11-21T03:00:00Z"},
		{"what Azure asked for is over", active, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken, Requeued: true, RetriesUsed: 2, Budget: 3, RetryAt: at, NextEligibleAt: at.Add(-time.Hour), At: at.Add(-time.Hour)},
			"False Retrying the last attempt failed: Bad: no way; retry 2 of 3 follows at 2026-11-21T03:00:00Z"},
		{"when Azure asked for patience", active, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken, Requeued: true, RetriesUsed: 2, Budget: 3, RetryAt: at, NextEligibleAt: at},
			"False Retrying the last attempt failed: Bad: no way; retry 2 of 3 follows at 2026-11-21T03:00:00Z, as Azure asked"},
		{"the budget is spent", active, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken, RetriesUsed: 3, Budget: 3},
			"False Failed the last attempt failed: Bad: no way; the next change of the members starts another"},
		{"the budget is spent, and drift repair is on", active, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken, RetriesUsed: 3, Budget: 3, LookAt: at},
			"False Failed the last attempt failed: Bad: no way; the next change of the members starts another, and Weir tries again at 2026-11-21T03:00:00Z"},
		{"the budget is spent, and Azure asked for patience", active, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken, RetriesUsed: 3, Budget: 3, NextEligibleAt: at},
			"False Failed the last attempt failed: Bad: no way; the next change of the members starts another, though not before 2026-11-21T03:00:00Z, as Azure asked"},
		{"admin states alone failed", active, poolupdate.Report{Outcome: poolupdate.Terminal, Fault: broken, Admin: true, AdminRetryAt: at, Requeued: true},
			"False Retrying the last attempt failed: Bad: no way; another to set the admin states follows at 2026-11-21T03:00:00Z"},
		{"the budget is spent, and admin states are tried on", active, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken, AdminRetryAt: at, NextEligibleAt: at},
			"False Retrying the last attempt failed: Bad: no way; another to set the admin states follows at 2026-11-21T03:00:00Z, as Azure asked"},
		{"a removal failed", gone, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken},
			"False Failed the last attempt to take its addresses out of the pool failed: Bad: no way; another follows within a minute"},
		{"a removal failed, and Azure asked for patience", gone, poolupdate.Report{Outcome: poolupdate.Retriable, Fault: broken, NextEligibleAt: at},
			"False Failed the last attempt to take its addresses out of the pool failed: Bad: no way; another follows after 2026-11-21T03:00:00Z, as Azure asked"},
		{"the Service is gone, and so are its addresses", gone, poolupdate.Report{Outcome: poolupdate.Written, Settled: true},
			"False ServiceNotFound Service shop/web does not exist; its addresses were removed from the pool"},
		{"an attempt from before that", gone, poolupdate.Report{Outcome: poolupdate.Written, Settled: true, Written: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
			"False ServiceNotFound Service shop/web does not exist; its addresses are being removed from the pool"},
		{"paused meanwhile", standing{state: statePaused, taken: true}, poolupdate.Report{Outcome: poolupdate.Written, Settled: true}, "Unknown Paused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s v1alpha1.BackendPoolStatus
			setCondition(&s, 1, v1alpha1.ConditionSynced, metav1.ConditionUnknown, v1alpha1.ReasonPaused, "")
			note(&s, membership.Set{}, tt.r)
			judge(&s, tt.st, membership.Set{}, tt.r, 1)
			i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSynced })
			got := s.Conditions[i]
			if text := strings.TrimSpace(fmt.Sprintf("%s %s %s", got.Status, got.Reason, got.Message)); text != tt.want {
				t.Errorf("got  %s\nwant %s", text, tt.want)
			}
		})
	}
}

// Of admin states other events speak; a pool of nodes hears only that a bad word is over.
func TestNoWordIsSaidOfAdminStates(t *testing.T) {
	e := &entry{}
	written := poolupdate.Report{Outcome: poolupdate.Written, Settled: true, Admin: true}
	for _, outcome := range []poolupdate.Outcome{poolupdate.Retriable, poolupdate.Terminal} {
		if word, _ := wordOf(poolupdate.Report{Outcome: outcome, Admin: true, Requeued: true}); word != "" {
			t.Errorf("%s: %s", outcome, word)
		}
	}
	if word := e.says(wordOf(written)); word != "" {
		t.Errorf("a change of admin states says %s", word)
	}
	e.word = EventFailed
	if word := e.says(wordOf(written)); word != EventUpdated {
		t.Errorf("after a failure: %q", word)
	}
}

func TestBusyPoolSaysThatItIsKeptToItsPace(t *testing.T) {
	var s v1alpha1.BackendPoolStatus
	until := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	wait(&s, 1, poolupdate.Waiting{Cause: poolupdate.CausePace, Until: until}, 7, until.Add(-time.Minute))
	if c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced); c.Reason != v1alpha1.ReasonUpdating || !strings.HasSuffix(c.Message, "kept to a pace; it is due at 2026-11-21T03:00:00Z") || len(s.Conditions) != 2 || *s.Desired != 7 {
		t.Errorf("%+v", s)
	}
	s.LastOutcome = &v1alpha1.AttemptOutcome{Class: "Retriable", Code: "Conflict"}
	s.RetriesUsed, s.RetryBudget = new(int32(2)), new(int32(3))
	setCondition(&s, 1, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonRetrying, "")
	wait(&s, 1, poolupdate.Waiting{Cause: poolupdate.CauseGate, Until: until, Why: "reads are closed"}, 7, until.Add(-time.Minute))
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionSynced)
	if c.Reason != v1alpha1.ReasonRetrying || c.Message != "the last attempt failed: Conflict; retry 2 of 3 waits: reads are closed" {
		t.Errorf("%+v", c)
	}
}

func TestLongListsOfLeftOutNodesAreCut(t *testing.T) {
	set := membership.Set{Addresses: make([]lb.Address, 1)}
	for i := range 17 {
		set.Absent = append(set.Absent, membership.Absence{Node: fmt.Sprintf("n%d", i), Why: "it is gone"})
	}
	if got := levelMessage(set); !strings.HasSuffix(got, "node n4: it is gone and 12 more") || strings.Contains(got, "n5") {
		t.Error(got)
	}
}

// Whatever Azure sends, an event holds one line, the code and the advice.
func FuzzFailedEvent(f *testing.F) {
	f.Add("Code", "message")
	f.Add("InvalidRequestFormat", strings.Repeat("ä", 2000))
	f.Add("", "a\x00b\r\n\u202ec\xff")
	f.Fuzz(func(t *testing.T, code, text string) {
		got := failedEvent(poolupdate.Report{Fault: &fault.Fault{Code: code, Err: fmt.Errorf("%s", text)}})
		if len(got) > maxMessage || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%d bytes: %q", len(got), got)
		}
		if !strings.HasSuffix(got, failedAdvice) || !strings.Contains(got, sentence(code, maxCode)) {
			t.Errorf("advice or code is missing: %q", got)
		}
	})
}

// Whoever may edit a Service may edit its record: it costs no more than some reads, and names
// nothing but resource groups.
func TestARecordOfResourceGroupsIsBelievedInBounds(t *testing.T) {
	s := serviceOfType(corev1.ServiceTypeLoadBalancer)
	s.Annotations = map[string]string{GroupsAnnotation: "a, ../b, c/d, e,1,2,3,4,5,6,7,8,9"}
	if got := strings.Join(viewOf(s).Record.Groups, " "); got != "a e 1 2 3 4 5 6" {
		t.Errorf("believed: %s", got)
	}
}
