// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/nodes"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/test/objects"
)

// adminFixture is a cluster in which the test makes the attempts.
type adminFixture struct {
	*testing.T
	*controllers.Controllers
	events *k8s.EventQueue
	seen   int // number of events read
}

// newAdminFixture returns a desk with Service web with two pools, Service api with one, and a pool of all nodes;
// each contains the nodes.
func newAdminFixture(t *testing.T, size int) *adminFixture {
	t.Helper()
	named := func(pool, service string) *v1alpha1.BackendPool {
		return objects.NewBackendPool(pool, 0, func(p *v1alpha1.BackendPool) {
			p.Spec.PoolName = pool
			if p.Spec.ServiceRef.Name = service; service == "" {
				p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{}
			}
		})
	}
	pools := []*v1alpha1.BackendPool{named("web", "web"), named("web-2", "web"), named("api", "api"), named("all", "")}
	items := []client.Object{pools[0], pools[1], pools[2], pools[3]}
	for _, name := range []string{"web", "api"} {
		s := objects.NewService(corev1.ServiceTypeLoadBalancer)
		s.Name = name
		es := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: "IPv4"}
		for n := range size {
			es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{NodeName: new(fmt.Sprintf("n%d", n+1))})
		}
		items = append(items, s, es)
	}
	d := &adminFixture{T: t}
	d.startProcess(items...)
	for n := range size {
		d.setTaints(n + 1)
	}
	for _, p := range pools {
		d.Ownership.Statuses.AdoptPool(p)
		d.reportInSync(p.Name)
	}
	return d
}

// startProcess starts a process with these objects. Every namespace may use every pool.
func (a *adminFixture) startProcess(objects ...client.Object) {
	a.Helper()
	log := slog.New(slog.DiscardHandler)
	a.events, a.seen = k8s.NewEventQueue(metadata.Scheme(), nil, log), 0
	a.Controllers = controllers.NewControllers(controllers.Options{SubscriptionID: "s0", ResourceGroup: "rg0", Draining: &lb.DrainSignals{}, Log: log}, a.events, noAPI{}, services.API{})
	a.Ownership.AllowUnknown = true
	a.View.InMemory()
	if err := a.View.Add(objects...); err != nil {
		a.Fatal(err)
	}
}

// restartProcess starts another process, with this address Down in all pools.
func (a *adminFixture) restartProcess(down v1alpha1.DownAddress) {
	a.Helper()
	var objects []client.Object
	for _, store := range []toolscache.Indexer{a.View.Nodes, a.View.Services, a.View.Slices, a.View.Pools} {
		for _, obj := range store.List() {
			current := obj.(client.Object).DeepCopyObject().(client.Object)
			if p, ok := current.(*v1alpha1.BackendPool); ok {
				p.Status.Down = []v1alpha1.DownAddress{down}
			}
			objects = append(objects, current)
		}
	}
	a.startProcess(objects...)
	for _, p := range cache.All[v1alpha1.BackendPool](a.View.Pools) {
		a.Ownership.Statuses.AdoptPool(p)
	}
}

type noAPI struct{ backendpool.API }

func (noAPI) Apply(_ context.Context, _ schedule.Ref, version string, _ *v1alpha1.BackendPoolStatus) (string, error) {
	return version, nil
}

func (a *adminFixture) setTaints(n int, taints ...string) {
	a.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", n), UID: "uid"}}
	for _, text := range taints {
		key, value, _ := strings.Cut(text, "=")
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute})
	}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP(n).String()}}
	if err := a.View.Nodes.Update(node); err != nil {
		a.Fatal(err)
	}
}

func nodeIP(n int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(n / 250), byte(n % 250)}) }

func (a *adminFixture) runAttempt(pool string, edit func(*updater.Report)) {
	a.Helper()
	p := a.View.Pool("shop", pool)
	if _, err := a.Pools.DesiredPool(backendpool.RefOf(p)); err != nil {
		a.Fatal(err)
	}
	r := updater.Report{Ref: backendpool.RefOf(p), Pool: a.Pools.ResolveBinding(p, time.Now()).Pool, AdminAttempted: true, At: time.Unix(1000, 0)}
	edit(&r)
	a.Pools.Report(a.Context(), r)
}

// reportInSync ends an attempt that brought the pool in sync; positive nodes became Down, negative ones came back.
func (a *adminFixture) reportInSync(pool string, nodes ...int) {
	a.Helper()
	a.runAttempt(pool, func(r *updater.Report) {
		r.Outcome, r.InSync = diff.Written, true
		for _, n := range nodes {
			if n > 0 {
				r.MarkedDown = append(r.MarkedDown, nodeIP(n))
			} else {
				r.MarkedUp = append(r.MarkedUp, nodeIP(-n))
			}
		}
	})
}

func (a *adminFixture) reportFailure(pool string) {
	a.Helper()
	a.runAttempt(pool, func(r *updater.Report) {
		r.Outcome, r.Fault = diff.Terminal, &armerror.Fault{Class: armerror.Terminal, Code: "Bad", Err: errors.New("no way")}
	})
}

func (a *adminFixture) takeEvents() []*corev1.Event {
	events := a.events.QueuedEvents()
	since := events[a.seen:]
	a.seen = len(events)
	return since
}

// assertEvents records the pending events and compares them.
func (a *adminFixture) assertEvents(want ...string) {
	a.Helper()
	a.AdminStates.RecordEvents()
	var got []string
	for _, e := range a.takeEvents() {
		if word, admin := strings.CutPrefix(e.Reason, "LoadBalancerAdminState"); admin {
			got = append(got, e.InvolvedObject.Kind+" "+e.InvolvedObject.Name+" "+word+": "+e.Message)
		}
	}
	if !slices.Equal(got, want) {
		a.Errorf("heard\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const (
	spot = lb.KeyDraining + "=" + lb.ValueSpotEviction
	out  = lb.KeyOutOfService
)

// Each Service and node gets one event once a change applies to all its pools.
func TestAdminStatesAreReportedWhenComplete(t *testing.T) {
	d := newAdminFixture(t, 3)
	d.assertEvents()
	d.setTaints(1, spot)
	d.setTaints(2, spot, out)
	d.reportInSync("api", 1, 2)
	d.assertEvents("Service api Down: 1 node drains (out-of-service, spot-eviction): n2; 1 node drains (spot-eviction): n1: Down, so no new flows go there")
	d.reportInSync("web", 1, 2)
	d.reportInSync("all", 1, 2)
	d.assertEvents("BackendPool all Down: 1 node drains (out-of-service, spot-eviction): n2; 1 node drains (spot-eviction): n1: Down, so no new flows go there")
	d.reportInSync("web-2", 1, 2)
	d.assertEvents(
		"Node n1 Down: Drains (spot-eviction): Down in 4 backend pools, so no new flows come here",
		"Node n2 Down: Drains (out-of-service, spot-eviction): Down in 4 backend pools, so no new flows come here",
		"Service web Down: 1 node drains (out-of-service, spot-eviction): n2; 1 node drains (spot-eviction): n1: Down, so no new flows go there")
	d.assertEvents()
	d.reportInSync("api", 1) // a pool that it joins, and that it left before
	d.assertEvents("Service api Down: 1 node drains (spot-eviction): n1: Down, so no new flows go there")

	d.setTaints(1)
	d.setTaints(2)
	for _, pool := range []string{"web", "web-2", "api"} {
		d.reportInSync(pool, -1, -2)
	}
	d.assertEvents("Service api Restored: 2 nodes drain no more: n1, n2: new flows may go there again",
		"Service web Restored: 2 nodes drain no more: n1, n2: new flows may go there again")
	d.reportInSync("all", -1, -2)
	d.assertEvents("BackendPool all Restored: 2 nodes drain no more: n1, n2: new flows may go there again",
		"Node n1 Restored: Drains no more: new flows may come here again",
		"Node n2 Restored: Drains no more: new flows may come here again")
	if d.AdminStates.CountNotices() != 0 {
		t.Errorf("%d bulletins are kept", d.AdminStates.CountNotices())
	}
}

// No event follows for a change that was reverted, or of a deleted node.
func TestPastAdminStatesAreNotReported(t *testing.T) {
	d := newAdminFixture(t, 2)
	everywhere := func(n ...int) {
		for _, pool := range []string{"web", "web-2", "api", "all"} {
			d.reportInSync(pool, n...)
		}
	}
	d.setTaints(1, out)
	everywhere(1)
	d.setTaints(1)
	everywhere(-1)
	d.setTaints(1, out) // its write is in progress
	d.assertEvents()
	everywhere(1)
	d.assertEvents("BackendPool all Down: 1 node drains (out-of-service): n1: Down, so no new flows go there",
		"Node n1 Down: Drains (out-of-service): Down in 4 backend pools, so no new flows come here",
		"Service api Down: 1 node drains (out-of-service): n1: Down, so no new flows go there",
		"Service web Down: 1 node drains (out-of-service): n1: Down, so no new flows go there")
	d.setTaints(2, out)
	everywhere(2)
	if err := d.View.Nodes.Delete(cache.Get[corev1.Node](d.View.Nodes, "n2")); err != nil {
		t.Fatal(err)
	}
	d.takeEvents()
	d.assertEvents()
	if d.AdminStates.CountNotices() != 1 {
		t.Errorf("%d bulletins are kept, want that of the node that is Down", d.AdminStates.CountNotices())
	}
	if err := d.View.Nodes.Delete(cache.Get[corev1.Node](d.View.Nodes, "n1")); err != nil {
		t.Fatal(err)
	}
	d.assertEvents()
	if d.AdminStates.CountNotices() != 0 {
		t.Errorf("%d bulletins are kept", d.AdminStates.CountNotices())
	}
}

// Pools that are paused, deleted or missing in Azure do not delay events.
func TestIdlePoolDelaysNoReport(t *testing.T) {
	for name, goes := range map[string]func(d *adminFixture){
		"paused": func(d *adminFixture) {
			p := d.View.Pool("shop", "web-2").DeepCopy()
			p.Spec.Paused = true
			if err := d.View.Pools.Update(p); err != nil {
				d.Fatal(err)
			}
		},
		"deleted": func(d *adminFixture) {
			if err := d.View.Pools.Delete(d.View.Pool("shop", "web-2")); err != nil {
				d.Fatal(err)
			}
		},
		"not there": func(d *adminFixture) {
			d.runAttempt("web-2", func(r *updater.Report) {
				r.Outcome, r.Fault = diff.Stale, &armerror.Fault{Class: armerror.Stale, Code: "NotFound", Err: errors.New("no pool")}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newAdminFixture(t, 1)
			d.setTaints(1, out)
			for _, pool := range []string{"web", "api", "all"} {
				d.reportInSync(pool, 1)
			}
			d.reportFailure("web-2")
			goes(d)
			d.AdminStates.RecordEvents()
			output := map[string]int{}
			for _, e := range d.takeEvents() {
				output[e.InvolvedObject.Name+" "+strings.TrimPrefix(e.Reason, "LoadBalancerAdminState")]++
			}
			if output["n1 Down"] != 1 || output["web Down"] != 1 || output["web UpdateFailed"]+output["web Updated"]+output["n1 Updated"] != 0 {
				t.Errorf("heard %v", output)
			}
		})
	}
}

// A failure gets one event, and so does its end: on the Services and the affected nodes, including later
// ones.
func TestFailedAdminStatesAreReportedOnce(t *testing.T) {
	d := newAdminFixture(t, 3)
	d.setTaints(1, out)
	d.reportFailure("web")
	d.reportFailure("web-2")
	d.reportFailure("api")
	d.reportInSync("all", 1)
	const bad, advice = "Bad: no way", ". Weir tries again until it is done or the node needs it no more."
	d.assertEvents("BackendPool all Down: 1 node drains (out-of-service): n1: Down, so no new flows go there",
		"Node n1 UpdateFailed: Admin states could not be set in 3 backend pools, the first of them: "+bad+advice,
		"Service api UpdateFailed: Admin states could not be set: "+bad+advice,
		"Service web UpdateFailed: Admin states could not be set in 2 backend pools, the first of them: "+bad+advice)
	d.reportFailure("web")
	d.assertEvents()
	d.setTaints(2, out)
	d.reportFailure("web")
	d.assertEvents("Node n2 UpdateFailed: Admin states could not be set: " + bad + advice)
	for _, pool := range []string{"web", "api", "all"} {
		d.reportInSync(pool, 1, 2)
	}
	d.assertEvents("BackendPool all Down: 2 nodes drain (out-of-service): n1, n2: Down, so no new flows go there",
		"Node n2 Updated: Load balancer admin states updated after all",
		"Service api Down: 2 nodes drain (out-of-service): n1, n2: Down, so no new flows go there",
		"Service api Updated: Load balancer admin states updated after all")
	d.setTaints(1)
	d.setTaints(2)
	d.reportInSync("web-2") // nothing to do
	d.assertEvents("Node n1 Updated: Load balancer admin states updated after all",
		"Service web Updated: Load balancer admin states updated after all")
}

// A new process does not know the pools' contents: a revert is reported once all pools were read.
func TestAfterRestartAdminStatesAreReportedOnceAllPoolsWereRead(t *testing.T) {
	d := newAdminFixture(t, 1)
	d.restartProcess(v1alpha1.DownAddress{Address: nodeIP(1).String(), Node: "n1", Reason: "out-of-service"})
	d.reportInSync("web", -1)
	d.assertEvents()
	d.reportInSync("web-2", -1)
	d.assertEvents("Service web Restored: 1 node drains no more: n1: new flows may go there again")
	d.reportInSync("api", -1)
	d.reportInSync("all", -1)
	d.assertEvents("BackendPool all Restored: 1 node drains no more: n1: new flows may go there again",
		"Node n1 Restored: Drains no more: new flows may come here again",
		"Service api Restored: 1 node drains no more: n1: new flows may go there again")
}

// Many nodes give one event of bounded length per Service.
func TestAWaveIsOneEventAService(t *testing.T) {
	d := newAdminFixture(t, 200)
	var items []int
	for n := range 200 {
		d.setTaints(n+1, spot)
		items = append(items, n+1)
	}
	for _, pool := range []string{"web", "web-2", "api"} {
		d.reportInSync(pool, items...)
	}
	const names = "200 nodes drain (spot-eviction): n1, n10, n100, n101, n102, n103, n104, n105, n106, n107, n108, n109 and 188 more: Down, so no new flows go there"
	d.assertEvents("Service api Down: "+names, "Service web Down: "+names)
	d.reportInSync("all", items...)
	d.AdminStates.RecordEvents()
	if events := len(d.takeEvents()); events != 201 {
		t.Errorf("%d events, want one on each node and one on the pool of nodes", events)
	}
}

// Changes within a second are combined; changes during shutdown are recorded at the end.
func TestAdminStateEventsAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newAdminFixture(t, 2)
		output := func() (n int) {
			for _, e := range d.takeEvents() {
				if strings.HasPrefix(e.Reason, "LoadBalancerAdminState") {
					n++
				}
			}
			return n
		}
		ctx, stop := context.WithCancel(t.Context())
		go d.AdminStates.Run(ctx)
		d.setTaints(1, out)
		d.reportInSync("api", 1)
		time.Sleep(nodes.GatherDelay / 2)
		d.setTaints(2, out)
		d.reportInSync("api", 2)
		if time.Sleep(nodes.GatherDelay/2 - time.Millisecond); output() != 0 {
			t.Error("told before others could come")
		}
		if time.Sleep(2 * time.Millisecond); output() != 1 {
			t.Error("not told, or not together")
		}
		d.reportFailure("web")
		time.Sleep(nodes.GatherDelay + time.Millisecond)
		if n := output(); n != 3 {
			t.Errorf("%d events of a failure, want one on the Service and on each node", n)
		}
		p := d.View.Pool("shop", "web").DeepCopy()
		d.reportInSync("web-2", 1, 2)
		time.Sleep(nodes.GatherDelay + time.Millisecond)
		if n := output(); n != 0 {
			t.Errorf("%d events while another pool of the Service is not done", n)
		}
		p.Spec.Paused = true
		if err := d.View.Pools.Update(p); err != nil {
			t.Fatal(err)
		}
		if time.Sleep(nodes.AdminRecheckInterval); output() != 1 {
			t.Error("a pool that was paused keeps its Service waiting")
		}
		stop()
	})
}
