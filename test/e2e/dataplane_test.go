// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/dataplane"
)

// traffic is the data plane of a lab with a Local Service. The test starts and stops its pods as kubelets do.
type traffic struct {
	*lab
	app      string // the name of the Service
	podNet   string // the first three bytes of its pods' addresses
	network  *dataplane.Network
	balancer *dataplane.Balancer
	front    netip.AddrPort
	nodes    map[string]string         // names by address
	pods     map[string]*dataplane.Pod // by the address of the node
}

// probeScale turns 5 s between two probes into 50 ms.
const probeScale = 0.01

func newTraffic(l *lab) *traffic {
	l.t.Helper()
	tr := &traffic{lab: l, app: "web", podNet: "10.244.0.", network: dataplane.NewNetwork(), nodes: map[string]string{}, pods: map[string]*dataplane.Pod{}}
	tr.startNodes()
	tr.balancer = dataplane.StartBalancer(tr.network, dataplane.BalancerOptions{Source: dataplane.EmulatorSource(l.emulator), TimeScale: probeScale})
	l.t.Cleanup(tr.balancer.Close)
	return tr
}

// startNodes starts the machines of the cluster's nodes.
func (tr *traffic) startNodes() {
	tr.t.Helper()
	nodes := dataplane.StartCluster(tr.network, dataplane.ClusterOptions{
		IsDead: func(n *corev1.Node) bool { return n.Annotations["machine"] == "dead" },
	})
	tr.t.Cleanup(nodes.Close)
	stop, err := dataplane.WatchCluster(tr.t.Context(), tr.cluster.rest, func(state *dataplane.ClusterState) {
		if err := nodes.Apply(state); err != nil {
			tr.t.Error(err)
		}
	})
	tr.must(err)
	tr.t.Cleanup(stop)
}

// startPod starts a pod on a node and waits until it listens.
func (tr *traffic) startPod(node string) {
	tr.t.Helper()
	ip := netip.MustParseAddr(tr.podNet + node[len("10.0.0."):])
	pod := dataplane.StartPod(tr.network, dataplane.PodOptions{
		Name: tr.app + "-" + node, Node: node, IP: ip, Startup: 10 * time.Millisecond,
		Ports: []dataplane.PodPort{{Protocol: dataplane.TCP, Port: 8080}, {Protocol: dataplane.UDP, Port: 5353}},
	})
	tr.t.Cleanup(pod.Close)
	tr.must(pod.WaitReady(tr.t.Context()))
	tr.pods[node] = pod
}

// setEndpoints writes the EndpointSlice: the pods on nodes that are ready, that terminate and serve, and that start.
func (tr *traffic) setEndpoints(ready, terminating []string, starting ...string) {
	tr.t.Helper()
	var slice discoveryv1.EndpointSlice
	tr.must(tr.cluster.Get(tr.t.Context(), key(tr.namespace, tr.app+"-1"), &slice))
	slice.Endpoints = []discoveryv1.Endpoint{}
	for _, node := range slices.Concat(ready, terminating, starting) {
		leaves, starts := slices.Contains(terminating, node), slices.Contains(starting, node)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{tr.podNet + node[len("10.0.0."):]}, NodeName: new(tr.nodes[node]),
			Conditions: discoveryv1.EndpointConditions{Ready: new(!leaves && !starts), Serving: new(!starts), Terminating: new(leaves)},
		})
	}
	slice.Ports = []discoveryv1.EndpointPort{
		{Name: new("http"), Port: new(int32(8080))}, {Name: new("dns"), Protocol: new(corev1.ProtocolUDP), Port: new(int32(5353))},
	}
	tr.must(tr.cluster.Update(tr.t.Context(), &slice))
}

// inSync waits until Azure has these members and the BackendPool reports so.
func (tr *traffic) inSync(members ...string) {
	tr.t.Helper()
	pool := tr.namespace + "-" + tr.app
	tr.becomes(pool, members...)
	tr.eventually("the BackendPool is in sync", func() error {
		var pools v1alpha1.BackendPoolList
		tr.must(tr.cluster.List(tr.t.Context(), &pools))
		for _, p := range pools.Items {
			if p.Spec.LoadBalancer.Name != tr.namespace || p.Spec.PoolName != pool {
				continue
			}
			n := int32(len(members))
			if s := p.Status; !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionSynced) || s.Observed == nil || *s.Observed != n || s.Desired == nil || *s.Desired != n {
				return fmt.Errorf("%+v", s)
			}
			return nil
		}
		return errors.New("there is none")
	})
}

// takers waits until new flows go to exactly these nodes.
func (tr *traffic) takers(want ...string) {
	tr.t.Helper()
	tr.eventually("new flows", func() error {
		got := []string{}
		for _, ip := range tr.balancer.Takers(dataplane.TCP, tr.front) {
			got = append(got, ip.String())
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("go to %v, want %v", got, want)
		}
		return nil
	})
}

func (tr *traffic) target(protocol dataplane.Protocol) dataplane.LoadOptions {
	at := tr.front
	if protocol == dataplane.UDP {
		at = netip.AddrPortFrom(at.Addr(), 53)
	}
	return dataplane.LoadOptions{Protocol: protocol, Every: 10 * time.Millisecond, Timeout: 5 * time.Minute, Target: func() (netip.AddrPort, bool) {
		return tr.network.Resolve(dataplane.DestinationOf(protocol, at))
	}}
}

// expectFlows sends new flows, none of which may be lost or go elsewhere.
func (tr *traffic) expectFlows(about string, nodes ...string) {
	tr.t.Helper()
	for _, protocol := range []dataplane.Protocol{dataplane.TCP, dataplane.UDP} {
		count := dataplane.SendFlows(tr.target(protocol), 60)
		if got := slices.Sorted(maps.Keys(count.Nodes)); count.Lost > 0 || !slices.Equal(got, nodes) {
			tr.t.Errorf("%s: %s to %v over %s; want none lost, to %v; %q", about, count, got, protocol, nodes, count.Failures)
		}
	}
}

// stopPod stops a pod in order: it terminates and serves until no new flow comes and the open ones ended.
func (tr *traffic) stopPod(node string, others ...string) {
	tr.t.Helper()
	tr.setEndpoints(others, []string{node})
	tr.takers(others...)
	tr.eventually("the open flows of "+node, func() error {
		if n := tr.balancer.OpenFlows(netip.MustParseAddr(node)); n > 0 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	if got := tr.members(tr.namespace + "-" + tr.app); !slices.Contains(got, node) {
		tr.t.Errorf("%s left the pool before its flows had ended: %v", node, got)
	}
	tr.pods[node].Close()
	tr.setEndpoints(others, nil)
}

func (tr *traffic) annotateMachine(node, state string) {
	tr.t.Helper()
	if out, err := tr.cluster.kubectl(tr.t.Context(), "annotate", "node", tr.nodes[node], "machine"+state); err != nil {
		tr.t.Fatal(out)
	}
}

// Real connections while pods move in order and a node drains: none is lost or cut, and once Weir reports that it is in
// sync, new ones go to members only. A machine that dies loses at most the flows that were sent to it.
func TestConnectionsSurviveWhatLeavesInOrder(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{LatencyScale: 0.1})
	tr := newTraffic(l)
	const n1, n2, n3 = "10.0.0.1", "10.0.0.2", "10.0.0.3"
	for _, ip := range []string{n1, n2, n3} {
		tr.nodes[ip] = l.node("n"+ip[len(ip)-1:], ip)
	}
	l.createLoadBalancerService("web", func(s *corev1.Service) {
		s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}}
	})
	tr.startPod(n1)
	tr.startPod(n2)
	tr.setEndpoints([]string{n1, n2}, nil)
	l.controller("--leader-elect=false", "--cluster-name", l.namespace)
	tr.front = netip.AddrPortFrom(netip.MustParseAddr(l.ingress("web", 1)[0]), 80)
	tr.inSync(n1, n2)
	tr.takers(n1, n2)
	tr.expectFlows("deployed", n1, n2)

	held := tr.target(dataplane.TCP)
	held.Hold = 200 * time.Millisecond
	load := dataplane.StartLoad(held)
	var stopped dataplane.LoadCount
	stop := func() { stopped = load.Stop() }
	t.Cleanup(func() { stop() })

	// The pods of n1 and n2 move to n3 and n1.
	tr.startPod(n3)
	tr.setEndpoints([]string{n1, n2, n3}, nil)
	tr.inSync(n1, n2, n3)
	tr.takers(n1, n2, n3)
	tr.stopPod(n1, n2, n3)
	tr.inSync(n2, n3)
	tr.expectFlows("n1 left", n2, n3)
	tr.startPod(n1)
	tr.setEndpoints([]string{n1, n2, n3}, nil)
	tr.inSync(n1, n2, n3)
	tr.takers(n1, n2, n3)
	tr.stopPod(n2, n1, n3)
	tr.inSync(n1, n3)
	tr.expectFlows("n2 left", n1, n3)

	// n1 drains: it remains a member that takes no new flows.
	taint := func(about string) {
		t.Helper()
		if out, err := l.cluster.kubectl(t.Context(), "taint", "node", tr.nodes[n1], corev1.TaintNodeOutOfService+about); err != nil {
			t.Fatal(out)
		}
	}
	taint("=nodeshutdown:NoExecute")
	l.expectDown(l.namespace+"-web", n1)
	tr.expectFlows("n1 is Down", n3)
	taint("-")
	l.expectDown(l.namespace + "-web")
	tr.takers(n1, n3)

	stop()
	stop = func() {}
	t.Logf("in order: %s", stopped)
	if stopped.Lost > 0 || stopped.Cut > 0 || stopped.Succeeded == 0 {
		t.Errorf("%s: %q", stopped, stopped.Failures)
	}
	tr.machineDies(n1, n3)
}

// machineDies stops the machine of a node without notice.
func (tr *traffic) machineDies(node, other string) {
	t := tr.t
	dead := netip.MustParseAddr(node)
	before := tr.balancer.NewFlows(tr.front)[dead]
	load := dataplane.StartLoad(tr.target(dataplane.TCP))
	stop := load.Stop
	t.Cleanup(func() { stop() })
	tr.annotateMachine(node, "=dead")
	tr.takers(other)
	tr.expectFlows("the probe has noticed", other)
	count := load.Stop()
	stop = func() dataplane.LoadCount { return count }
	if sent := tr.balancer.NewFlows(tr.front)[dead] - before; count.Lost > sent {
		t.Errorf("%s, but %d were sent to the dead machine: %q", count, sent, count.Failures)
	}
	t.Logf("a machine that dies: %s", count)
	tr.setEndpoints([]string{other}, nil)
	tr.inSync(other)
	tr.expectFlows("the dead node is removed", other)
}
