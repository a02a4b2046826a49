// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bufio"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KEP-1669: packets go to what terminates and serves only if nothing is ready.
func TestServingEndpoints(t *testing.T) {
	at := func(n string) netip.AddrPort { return netip.AddrPortFrom(podIP(n), 8080) }
	ready := func(n, node string) endpoint { return endpoint{at(n), node, true, true, false} }
	leaving := func(n, node string) endpoint { return endpoint{at(n), node, false, true, true} }
	starting := endpoint{at("n7"), "n1", false, false, false}
	stopped := endpoint{at("n8"), "n1", false, false, true}
	for name, c := range map[string]struct {
		endpoints []endpoint
		local     bool
		want      []endpoint
	}{
		"ready":                            {[]endpoint{ready("n1", "n1"), leaving("n2", "n1")}, true, []endpoint{ready("n1", "n1")}},
		"only terminating ones here":       {[]endpoint{leaving("n2", "n1"), ready("n3", "n2")}, true, []endpoint{leaving("n2", "n1")}},
		"Cluster: ready ones of all nodes": {[]endpoint{leaving("n2", "n1"), ready("n3", "n2")}, false, []endpoint{ready("n3", "n2")}},
		"Cluster: only terminating ones":   {[]endpoint{leaving("n2", "n2")}, false, []endpoint{leaving("n2", "n2")}},
		"starting or stopped":              {[]endpoint{starting, stopped}, true, nil},
		"elsewhere":                        {[]endpoint{ready("n3", "n2")}, true, nil},
	} {
		if got := servingEndpoints(c.endpoints, c.local, "n1"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// health returns the status of an HTTP GET at a node's port; 0 if nothing listens there.
func (l *lab) health(node string, port uint16) int {
	l.Helper()
	conn, err := l.network.dial(l.Context(), DestinationOf(TCP, netip.AddrPortFrom(nodeIP(node), port)))
	if errors.Is(err, errRefused) {
		return 0
	}
	l.must(err)
	defer conn.Close()
	request, err := http.NewRequestWithContext(l.Context(), http.MethodGet, "http://node/healthz", nil)
	l.must(err)
	l.must(request.Write(conn))
	answer, err := http.ReadResponse(bufio.NewReader(conn), request)
	l.must(err)
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestHealthChecksOfANode(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	expect := func(about string, service, proxy int) {
		t.Helper()
		if a, b := l.health("n1", healthPort), l.health("n1", healthzPort); a != service || b != proxy {
			t.Errorf("%s: healthCheckNodePort %d, kube-proxy %d; want %d, %d", about, a, b, service, proxy)
		}
	}
	expect("ready", 200, 200)
	l.setEndpoints("n1=terminating", "n2")
	expect("terminating", 503, 200)
	l.setEndpoints("n1=starting", "n2")
	expect("starting", 503, 200)
	l.setEndpoints("n2")
	expect("none", 503, 200)
	l.setEndpoints("n1")

	tainted := l.state.Nodes[0].DeepCopy()
	tainted.Spec.Taints = []corev1.Taint{{Key: deletedByAutoscaler, Effect: corev1.TaintEffectNoSchedule}}
	deleted := l.state.Nodes[0].DeepCopy()
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for _, n := range []*corev1.Node{tainted, deleted} { // KEP-3836
		l.state.Nodes[0] = n
		l.apply()
		expect("the node leaves", 200, 503)
	}
	l.state.Nodes = l.state.Nodes[1:]
	l.apply()
	expect("the node is gone", 0, 0)
}

// A closed node port leaves established flows alone; a stopped machine cuts them.
func TestEstablishedFlowsOfANode(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	established := l.openTo("n1")
	flows := l.state.Services
	for range 2 { // the second time the first one's listener is retired already
		l.state.Services = nil
		l.apply()
		established.expectAlive("the Service is gone")
		l.state.Services = flows
		l.apply()
	}
	l.state.Nodes[0].Labels["dead"] = "true"
	l.apply()
	if at, err := established.send(); err == nil {
		t.Errorf("the machine is gone, and %s answers", at)
	}
}

// A Cluster Service is served by every node.
func TestTrafficPolicyCluster(t *testing.T) {
	l := newLab(t, "", BalancerOptions{})
	l.setEndpoints("n3")
	if count := SendFlows(l.options(TCP), 40); count.Lost == 0 {
		t.Error("Local: no flow met a node without a pod")
	}
	l.state.Services[0].Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	l.apply()
	count := SendFlows(l.options(TCP), 40)
	if count.Lost > 0 || len(l.balancer.NewFlows(front)) != 3 || nodesOf(count) != "n3" {
		t.Errorf("Cluster: %s, by nodes %v, to pods on %v", count, l.balancer.NewFlows(front), count.Nodes)
	}
}
