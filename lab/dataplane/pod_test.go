// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A pod serves new flows until its preStop time has passed. Then it refuses them, and ends open ones between two
// requests, which is a cut to a client that has more to send.
func TestAPodTerminates(t *testing.T) {
	l := newLab(t, "", BalancerOptions{})
	l.setEndpoints("n1")
	l.state.Services[0].Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	l.apply()
	opts := l.options(TCP)
	opts.Every, opts.Hold = 20*time.Millisecond, time.Hour
	load := StartLoad(opts)
	l.within("a flow is open", func() bool { return load.Count().Succeeded > 0 })
	l.pods["n1"].Terminate(time.Hour)
	l.expectNodes("during preStop", "n1")
	if count := load.Count(); count.Lost+count.Cut > 0 {
		t.Errorf("during preStop: %s", count)
	}
	l.pods["n1"].Terminate(0)
	l.within("a flow is cut", func() bool { return load.Count().Cut > 0 })
	l.within("a flow is lost", func() bool { return load.Count().Lost > 0 })
	count := load.Stop()
	if count.Attempted != count.Succeeded+count.Lost || count.Cut > count.Succeeded || len(count.Failures) == 0 || len(count.Failures) > maxFailures {
		t.Errorf("%+v", count)
	}
}

// A connection without a running request ends when its pod stops, and the client sees an orderly end.
func TestAnIdleConnectionEnds(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	conn, _, node, err := newLoad(l.options(TCP)).connect()
	l.must(err)
	defer conn.Close()
	l.pods[node].Terminate(0)
	l.must(conn.SetReadDeadline(time.Now().Add(5 * time.Minute)))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// Without an end of its pod no flow is cut, however long it is held.
func TestAHeldFlow(t *testing.T) {
	l := newLab(t, httpProbe, BalancerOptions{})
	opts := l.options(TCP)
	opts.Every, opts.Hold = time.Millisecond, 20*time.Millisecond
	if count := SendFlows(opts, 3); count.Cut != 0 || count.Succeeded != 3 {
		t.Errorf("%s: %q", count, count.Failures)
	}
	opts.Target = func() (netip.AddrPort, bool) { return netip.AddrPort{}, false }
	if count := SendFlows(opts, 3); count.Lost != 3 || count.Succeeded != 0 || !strings.Contains(count.Failures[0], "no socket") {
		t.Errorf("no target: %+v", count)
	}
}

func TestAPodStartsUp(t *testing.T) {
	network := NewNetwork()
	at := DestinationOf(TCP, netip.AddrPortFrom(podIP("n8"), 8080))
	slow := StartPod(network, PodOptions{IP: podIP("n8"), Ports: []PodPort{{TCP, 8080}}, Startup: time.Hour})
	if _, ok := network.Resolve(at); ok {
		t.Error("it listens before it started")
	}
	slow.Close()
	if err := slow.WaitReady(t.Context()); err == nil {
		t.Error("a pod that was closed is ready")
	}
	fast := StartPod(network, PodOptions{IP: podIP("n8"), Ports: []PodPort{{TCP, 8080}}, Startup: time.Millisecond})
	defer fast.Close()
	if err := fast.WaitReady(t.Context()); err != nil {
		t.Error(err)
	}
	if _, ok := network.Resolve(at); !ok {
		t.Error("it does not listen")
	}
}

// Pod objects start, terminate and stop pods.
func TestPodObjects(t *testing.T) {
	network := NewNetwork()
	cluster := StartCluster(network, ClusterOptions{})
	defer cluster.Close()
	at := DestinationOf(TCP, netip.AddrPortFrom(podIP("n5"), 8080))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: types.UID("1"), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{NodeName: "n5", Containers: []corev1.Container{{Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 3600}},
		}}}},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{TargetPort: intstr.FromInt32(8080)}}},
	}
	node := newNode("n5")
	step := func(about string, wantListens bool, change func()) {
		t.Helper()
		change()
		state := &ClusterState{Services: []*corev1.Service{service}, Nodes: []*corev1.Node{node}, Pods: []*corev1.Pod{pod.DeepCopy()}}
		if err := cluster.Apply(state); err != nil {
			t.Fatal(err)
		}
		if _, ok := network.Resolve(at); ok != wantListens {
			t.Errorf("%s: listens %t", about, ok)
		}
	}
	step("pending", false, func() {})
	step("running", true, func() { pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, podIP("n5").String() })
	step("terminating, in preStop", true, func() { pod.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
	step("gone", false, func() { pod.Spec.NodeName = "other" })
	step("another pod without preStop", true, func() {
		pod.Spec.NodeName, pod.UID, pod.DeletionTimestamp = "n5", "2", nil
		pod.Spec.Containers[0].Lifecycle = nil
	})
	pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if err := cluster.Apply(&ClusterState{Services: []*corev1.Service{service}, Nodes: []*corev1.Node{node}, Pods: []*corev1.Pod{pod}}); err != nil {
		t.Fatal(err)
	}
	(&lab{T: t}).within("it stops at once", func() bool {
		_, ok := network.Resolve(at)
		return !ok
	})
}

// A pod with a Server runs it on its ports.
func TestAPodRunsItsServer(t *testing.T) {
	network := NewNetwork()
	cluster := StartCluster(network, ClusterOptions{Server: func(pod *corev1.Pod) Server {
		answer := func(port uint16) []byte { return fmt.Appendf(nil, "%s:%d", pod.Name, port) }
		return Server{
			TCP: func(_ context.Context, port uint16, conn net.Conn) { _, _ = conn.Write(answer(port)) },
			UDP: func(port uint16, datagram []byte, reply func([]byte)) { reply(append(answer(port), datagram...)) },
		}
	}})
	defer cluster.Close()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID("1")},
		Spec: corev1.PodSpec{NodeName: "n5", Containers: []corev1.Container{{Ports: []corev1.ContainerPort{
			{ContainerPort: 3000, Protocol: corev1.ProtocolTCP}, {ContainerPort: 8080, Protocol: corev1.ProtocolUDP},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: podIP("n5").String()},
	}
	if err := cluster.Apply(&ClusterState{Nodes: []*corev1.Node{newNode("n5")}, Pods: []*corev1.Pod{pod}}); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[Destination]string{
		DestinationOf(TCP, netip.AddrPortFrom(podIP("n5"), 3000)): "a:3000",
		DestinationOf(UDP, netip.AddrPortFrom(podIP("n5"), 8080)): "a:8080?",
	} {
		conn, err := network.dial(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if at.Protocol == UDP {
			if _, err := conn.Write([]byte("?")); err != nil {
				t.Fatal(err)
			}
		}
		if err := conn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 100)
		n, err := conn.Read(got)
		if err != nil || string(got[:n]) != want {
			t.Errorf("%s: %q, %v; want %q", at, got[:n], err, want)
		}
	}
}
