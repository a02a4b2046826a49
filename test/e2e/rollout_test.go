// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/dataplane"
)

// rollout is a Service with a pod on each of two nodes, which a Deployment with maxSurge 1 replaces while clients connect.
type rollout struct {
	*traffic
	ready []string // nodes with a ready pod
	loads []*dataplane.Load
}

// deploy creates the Service and its first pods, which have gates like the others.
func deploy(tr *traffic, nodes ...string) *rollout {
	tr.t.Helper()
	r := &rollout{traffic: tr, ready: nodes}
	tr.createLoadBalancerService(tr.app, func(s *corev1.Service) {
		s.Spec.Selector, s.Spec.Ports = map[string]string{"app": tr.app}, []corev1.ServicePort{{Name: "http", Port: 80}}
	})
	for _, ip := range nodes {
		tr.gatedPod(tr.app, tr.app+"-"+ip, tr.nodes[ip])
		tr.startPod(ip)
	}
	tr.setEndpoints(nodes, nil)
	return r
}

// longFlow is longer than Weir takes to write a pool, so that a member could leave before its flows have ended.
const longFlow = 5 * time.Second

// connect starts the clients: many short flows, and some long ones.
func (r *rollout) connect() {
	r.t.Helper()
	r.front = netip.AddrPortFrom(netip.MustParseAddr(r.ingress(r.app, 1)[0]), 80)
	r.inSync(r.ready...)
	r.takers(r.ready...)
	short, long := r.target(dataplane.TCP), r.target(dataplane.TCP)
	short.Hold, long.Hold, long.Every = 200*time.Millisecond, longFlow, 100*time.Millisecond
	for _, opts := range []dataplane.LoadOptions{short, long} {
		load := dataplane.StartLoad(opts)
		r.loads = append(r.loads, load)
		r.t.Cleanup(func() { load.Stop() })
	}
}

// start starts a pod, which is not ready.
func (r *rollout) start(node string) {
	r.t.Helper()
	r.gatedPod(r.app, r.app+"-"+node, r.nodes[node])
	r.startPod(node)
	r.setEndpoints(r.ready, nil, node)
}

// becomeReady waits for the gate, then for two answers of the probe, as minReadySeconds does.
func (r *rollout) becomeReady(node string) {
	r.t.Helper()
	reason := ""
	r.eventually("the gate of "+r.app+" on "+node, func() error {
		var p corev1.Pod
		r.must(r.cluster.Get(r.t.Context(), key(r.namespace, r.app+"-"+node), &p))
		for _, c := range p.Status.Conditions {
			if c.Type == metadata.GateInPool && c.Status == corev1.ConditionTrue {
				reason = c.Reason
				return nil
			}
		}
		return errors.New("is closed")
	})
	if reason != "InPool" && reason != "LeaderAway" { // the latter on a busy machine, where another process leads late
		r.t.Errorf("the gate of %s on %s opened with %s", r.app, node, reason)
	}
	if got := r.members(r.namespace + "-" + r.app); reason == "InPool" && !slices.Contains(got, node) {
		r.t.Errorf("the gate of %s on %s opened with members %v", r.app, node, got)
	}
	r.ready = slices.Sorted(slices.Values(append(slices.Clone(r.ready), node)))
	r.setEndpoints(r.ready, nil)
	r.takers(r.ready...)
}

// end ends a pod after its preStop: it serves until the probe has failed and its connections have ended.
func (r *rollout) end(node string) {
	r.t.Helper()
	r.ready = slices.DeleteFunc(slices.Clone(r.ready), func(ip string) bool { return ip == node })
	r.stopPod(node, r.ready...)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.app + "-" + node}}
	r.must(r.cluster.Delete(r.t.Context(), pod, client.GracePeriodSeconds(0)))
}

// expectNoLoss ends the clients.
func (r *rollout) expectNoLoss() {
	r.t.Helper()
	r.inSync(r.ready...)
	for _, load := range r.loads {
		count := load.Stop()
		r.t.Logf("%s: %s", r.app, count)
		if count.Lost > 0 || count.Cut > 0 || count.Succeeded == 0 {
			r.t.Errorf("%s: %s: %q", r.app, count, count.Failures)
		}
	}
}

// killLeader kills the leader when a request is held.
func killLeader(t *testing.T, leader *program, request *heldRequest) (killed time.Time) {
	t.Helper()
	select {
	case <-request.waits:
	case <-time.After(3 * time.Minute):
		t.Fatal("the leader does not write the pool")
	}
	leader.Kill()
	return time.Now()
}

// expectTakeover waits until another process leads, and logs what it took.
func (tr *traffic) expectTakeover(before string, killed time.Time) {
	tr.t.Helper()
	tr.eventually("another process leads", func() error {
		if now := tr.leader(); now == before || now == "" {
			return fmt.Errorf("%q leads", now)
		}
		return nil
	})
	tr.t.Logf("another process leads %s after the kill", time.Since(killed).Round(100*time.Millisecond))
}

// Two Services are restarted while clients connect, and the leader is killed twice: after Azure has accepted its write and
// before it has the response, and before a write reaches Azure. No connection is lost or cut, also when pods end before
// the next leader has written the pools and opened the gates.
func TestRolloutsGoOnWhenTheLeaderIsKilled(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{LatencyScale: 0.1})
	l.enableGates()
	tr := newTraffic(l)
	for n := range 8 {
		ip := fmt.Sprintf("10.0.0.%d", n+1)
		tr.nodes[ip] = l.node(fmt.Sprintf("n%d", n+1), ip)
	}
	ofAPI := *tr
	ofAPI.app, ofAPI.podNet, ofAPI.pods = "api", "10.244.1.", map[string]*dataplane.Pod{}
	web, api := deploy(tr, "10.0.0.1", "10.0.0.2"), deploy(&ofAPI, "10.0.0.5", "10.0.0.6")
	flags := []string{"--cluster-name", l.namespace, "--leader-elect-namespace", "weir-system", "--readiness-gates"}
	taps := []*tap{newTap(l), newTap(l), newTap(l)}
	first := taps[0].controller("first", flags...)
	web.connect()
	api.connect()
	second := taps[1].controller("second", flags...)
	l.waitStandby(second)

	// The first leader is killed while the write for the new pod of web is in progress. That of api starts afterward.
	leader, pool := l.leader(), l.namespace+"-web"
	request := taps[0].hold(heldRequest{method: http.MethodPut, pool: pool})
	web.start("10.0.0.3")
	killed := killLeader(t, first, request)
	if got := l.members(pool); !slices.Contains(got, "10.0.0.3") {
		t.Errorf("the write was not accepted: members %v", got)
	}
	api.start("10.0.0.7")
	web.expectTakeover(leader, killed)
	third := taps[2].controller("third", flags...) // in the place of the first
	web.becomeReady("10.0.0.3")
	api.becomeReady("10.0.0.7")
	t.Logf("both gates are open %s after the kill", time.Since(killed).Round(100*time.Millisecond))
	l.waitStandby(third)

	// The second one is killed before its write reaches Azure. Old pods of both end while no process leads.
	leader = l.leader()
	web.end("10.0.0.1")
	web.inSync(web.ready...)
	request = taps[1].hold(heldRequest{method: http.MethodPut, pool: pool, beforeAzure: true})
	web.start("10.0.0.4")
	killed = killLeader(t, second, request)
	if got := l.members(pool); slices.Contains(got, "10.0.0.4") {
		t.Errorf("the write was not held: members %v", got)
	}
	api.end("10.0.0.5")
	api.start("10.0.0.8")
	web.expectTakeover(leader, killed)
	web.becomeReady("10.0.0.4")
	api.becomeReady("10.0.0.8")
	t.Logf("both gates are open %s after the kill", time.Since(killed).Round(100*time.Millisecond))
	web.end("10.0.0.2")
	api.end("10.0.0.6")
	web.expectNoLoss()
	api.expectNoLoss()
}
