// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterOptions configure a Cluster.
type ClusterOptions struct {
	// IsDead reports whether a node's machine has stopped; nil means never.
	IsDead func(*corev1.Node) bool
	// PreStop is how long a pod serves after its deletion, if it has no preStop hook with sleep.
	PreStop time.Duration
	// Server returns what a pod runs; nil is the default for all.
	Server func(*corev1.Pod) Server
}

// Cluster is the nodes of a cluster, with kube-proxy, and its pods.
type Cluster struct {
	network *Network
	opts    ClusterOptions

	applying sync.Mutex // serializes Apply
	nodes    map[string]*machine
	pods     map[types.UID]*runningPod
}

type runningPod struct {
	*Pod
	terminating bool
}

// machine is a node.
type machine struct {
	network *Network
	ports   map[Destination]closer
	retired []*tcpServer // closed listeners with the flows that they accepted

	mu   sync.Mutex // guards plan only
	plan map[Destination]nodePort
}

// StartCluster returns a cluster without nodes. Call Close.
func StartCluster(network *Network, opts ClusterOptions) *Cluster {
	return &Cluster{network: network, opts: opts, nodes: map[string]*machine{}, pods: map[types.UID]*runningPod{}}
}

// Close stops all machines.
func (c *Cluster) Close() { _ = c.Apply(&ClusterState{}) } // nothing is opened that could fail

// Apply makes the nodes and pods those of a state. A new flow that begins after it returns follows it.
func (c *Cluster) Apply(state *ClusterState) error {
	c.applying.Lock()
	defer c.applying.Unlock()
	alive := map[string]bool{}
	for _, n := range state.Nodes {
		alive[n.Name] = c.opts.IsDead == nil || !c.opts.IsDead(n)
	}
	errs := c.applyPods(state, alive)
	for name, m := range c.nodes {
		if !alive[name] {
			m.close()
			delete(c.nodes, name)
		}
	}
	for _, n := range state.Nodes {
		if !alive[n.Name] {
			continue
		}
		if c.nodes[n.Name] == nil {
			c.nodes[n.Name] = &machine{network: c.network, ports: map[Destination]closer{}}
		}
		errs = append(errs, c.nodes[n.Name].apply(planNode(state, n)))
	}
	return errors.Join(errs...)
}

func (c *Cluster) applyPods(state *ClusterState, alive map[string]bool) (errs []error) {
	desired := map[types.UID]bool{}
	for _, pod := range state.Pods {
		ip, err := netip.ParseAddr(pod.Status.PodIP)
		running := pod.Status.Phase == corev1.PodRunning && err == nil && alive[pod.Spec.NodeName]
		if !running {
			continue
		}
		desired[pod.UID] = true
		p := c.pods[pod.UID]
		if p == nil {
			opts := PodOptions{Name: pod.Name, Node: pod.Spec.NodeName, IP: ip, Ports: podPorts(state, pod)}
			if c.opts.Server != nil {
				opts.Server = c.opts.Server(pod)
			}
			p = &runningPod{Pod: StartPod(c.network, opts)}
			c.pods[pod.UID] = p
			errs = append(errs, p.WaitReady(context.Background())) // without startup time it does not wait
		}
		if pod.DeletionTimestamp != nil && !p.terminating {
			p.terminating = true
			p.Terminate(c.preStop(pod))
		}
	}
	for uid, p := range c.pods {
		if !desired[uid] {
			p.Close()
			delete(c.pods, uid)
		}
	}
	return errs
}

// preStop returns how long a deleted pod serves.
func (c *Cluster) preStop(pod *corev1.Pod) time.Duration {
	for _, container := range pod.Spec.Containers {
		if l := container.Lifecycle; l != nil && l.PreStop != nil && l.PreStop.Sleep != nil {
			return time.Duration(l.PreStop.Sleep.Seconds) * time.Second
		}
	}
	return c.opts.PreStop
}

// apply changes what the node does, then its listeners. Established flows of a closed port remain, as with conntrack.
func (m *machine) apply(plan map[Destination]nodePort) error {
	m.mu.Lock()
	m.plan = plan
	m.mu.Unlock()
	for at, port := range m.ports {
		if _, stays := plan[at]; !stays {
			m.retire(port)
			delete(m.ports, at)
		}
	}
	var errs []error
	for at := range plan {
		if m.ports[at] != nil {
			continue
		}
		port, err := m.listen(at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		m.ports[at] = port
	}
	return errors.Join(errs...)
}

func (m *machine) retire(port closer) {
	tcp, ok := port.(*tcpServer)
	if !ok {
		port.close()
		return
	}
	tcp.stopAccepting()
	m.retired = append(slices.DeleteFunc(m.retired, func(s *tcpServer) bool {
		idle := s.isIdle()
		if idle {
			s.close()
		}
		return idle
	}), tcp)
}

func (m *machine) listen(at Destination) (closer, error) {
	if at.Protocol == UDP {
		return m.network.relayUDP(at, time.Minute, func(_ netip.AddrPort, before Destination) (Destination, bool) {
			return m.choose(at, before)
		})
	}
	return m.network.listenTCP(at, func(ctx context.Context, conn net.Conn) { m.serveTCP(ctx, at, conn) })
}

func (m *machine) close() {
	for _, port := range m.ports {
		port.close()
	}
	for _, port := range m.retired {
		port.close()
	}
}

func (m *machine) portAt(at Destination) nodePort {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.plan[at]
}

// choose returns the pod of a flow: at random, as iptables do. A UDP flow remains at its pod while that serves.
func (m *machine) choose(at, before Destination) (Destination, bool) {
	endpoints := m.portAt(at).endpoints
	for _, e := range endpoints {
		if DestinationOf(at.Protocol, e.at) == before {
			return before, true
		}
	}
	if len(endpoints) == 0 {
		return Destination{}, false
	}
	return DestinationOf(at.Protocol, endpoints[rand.IntN(len(endpoints))].at), true //nolint:gosec // not a secret
}

func (m *machine) serveTCP(ctx context.Context, at Destination, conn net.Conn) {
	if health := m.portAt(at).health; health != nil {
		answerHealth(conn, *health)
		return
	}
	to, ok := m.choose(at, Destination{})
	if !ok {
		reset(conn)
		return
	}
	pod, err := m.network.dial(ctx, to)
	if err != nil {
		reset(conn)
		return
	}
	relay(ctx, conn, pod)
}

// answerHealth answers one health check as kube-proxy does.
func answerHealth(conn net.Conn, health nodeHealth) {
	_ = conn.SetDeadline(time.Now().Add(probeTimeout))
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	status := http.StatusServiceUnavailable
	if health.healthy {
		status = http.StatusOK
	}
	body := fmt.Sprintf(`{"localEndpoints":%d,"serviceProxyHealthy":true}`+"\n", health.localEndpoints)
	answer := http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: request, Close: true,
		Header:        http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(body)),
	}
	_ = answer.Write(conn)
}
