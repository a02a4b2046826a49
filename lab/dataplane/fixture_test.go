// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	provider = "/subscriptions/sub/resourceGroups/rg/providers/Microsoft.Network/"
	vnetID   = provider + "virtualNetworks/vnet"
	lbID     = provider + "loadBalancers/lb"

	nodePortTCP, nodePortUDP, healthPort = 30080, 30053, 31000
)

// front and dns are the frontend's TCP and UDP ports.
var (
	front = netip.MustParseAddrPort("198.18.7.1:80")
	dns   = netip.MustParseAddrPort("198.18.7.1:53")
)

// lab is a Local Service web with a TCP and a UDP port, and a pod on each of three nodes. Probes run only when
// the test requests them.
type lab struct {
	*testing.T
	emulator *armemu.Emulator
	network  *Network
	balancer *Balancer
	cluster  *Cluster
	pods     map[string]*Pod
	state    ClusterState
	probe    string // of the rules; empty is none
	floating bool
}

const httpProbe = `"protocol":"Http","port":31000,"requestPath":"/healthz","intervalInSeconds":5,"probeThreshold":2`

func newLab(t *testing.T, probe string, opts BalancerOptions) *lab {
	l := &lab{T: t, emulator: patient.Watch(t, armemu.New(armemu.Options{})), network: NewNetwork(), pods: map[string]*Pod{}, probe: probe}
	l.cluster = StartCluster(l.network, ClusterOptions{IsDead: func(n *corev1.Node) bool { return n.Labels["dead"] != "" }})
	t.Cleanup(l.cluster.Close)
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: healthPort,
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, NodePort: nodePortTCP}, {Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, NodePort: nodePortUDP},
			},
		},
	}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: front.Addr().String()}}
	l.state.Services = []*corev1.Service{service}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i+1)
		l.state.Nodes = append(l.state.Nodes, newNode(name))
		l.pods[name] = StartPod(l.network, PodOptions{
			Name: "web-" + name, Node: name, IP: podIP(name), Ports: []PodPort{{TCP, 8080}, {UDP, 5353}},
		})
		t.Cleanup(l.pods[name].Close)
		l.must(l.pods[name].WaitReady(t.Context()))
	}
	l.putBalancer("n1", "n2", "n3")
	l.setEndpoints("n1", "n2", "n3")
	opts.Source = EmulatorSource(l.emulator)
	opts.TimeScale = 1e6
	l.balancer = StartBalancer(l.network, opts)
	t.Cleanup(l.balancer.Close)
	l.probeRounds(2)
	return l
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func newNode(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeIP(name).String()}}
	return n
}

func nodeIP(name string) netip.Addr { return netip.MustParseAddr("10.77.0." + name[1:]) }
func podIP(name string) netip.Addr  { return netip.MustParseAddr("10.78.0." + name[1:]) }

// putBalancer writes the load balancer; a member is a node or node=adminState.
func (l *lab) putBalancer(members ...string) {
	l.Helper()
	l.must(l.emulator.Put(vnetID, []byte(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]}}}`)))
	l.must(l.emulator.Put(provider+"publicIPAddresses/ip", []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","ipAddress":"`+front.Addr().String()+`"}}`)))
	var entries []string
	for _, m := range members {
		name, state, _ := strings.Cut(m, "=")
		entry := fmt.Sprintf(`{"name":%q,"properties":{"ipAddress":"%s"`, name, nodeIP(name))
		if state != "" {
			entry += `,"adminState":"` + state + `"`
		}
		entries = append(entries, entry+"}}")
	}
	probes, probed := "", ""
	if l.probe != "" {
		probes = `"probes":[{"name":"p","properties":{` + l.probe + `}}],`
		probed = `"probe":{"id":"` + lbID + `/probes/p"},`
	}
	rule := func(name, protocol string, port, backend int) string {
		if l.floating {
			backend = port
		}
		return fmt.Sprintf(`{"name":%q,"properties":{%s"protocol":%q,"frontendPort":%d,"backendPort":%d,"enableFloatingIP":%t,
			"frontendIPConfiguration":{"id":"%s/frontendIPConfigurations/fe"},"backendAddressPool":{"id":"%[7]s/backendAddressPools/web"}}}`,
			name, probed, protocol, port, backend, l.floating, lbID)
	}
	l.must(l.emulator.Put(lbID, []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{
		"frontendIPConfigurations":[{"name":"fe","properties":{"publicIPAddress":{"id":"`+provider+`publicIPAddresses/ip"}}}],`+probes+`
		"backendAddressPools":[{"name":"web","properties":{"virtualNetwork":{"id":"`+vnetID+`"},"loadBalancerBackendAddresses":[`+strings.Join(entries, ",")+`]}}],
		"loadBalancingRules":[`+rule("http", "Tcp", 80, nodePortTCP)+`,`+rule("dns", "Udp", 53, nodePortUDP)+`]}}`)))
}

// setEndpoints writes the EndpointSlice; an endpoint is a node, node=terminating or node=starting.
func (l *lab) setEndpoints(endpoints ...string) {
	l.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		Ports: []discoveryv1.EndpointPort{
			{Name: new("http"), Port: new(int32(8080))}, {Name: new("dns"), Protocol: new(corev1.ProtocolUDP), Port: new(int32(5353))},
		},
	}
	for _, e := range endpoints {
		name, condition, _ := strings.Cut(e, "=")
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{podIP(name).String()}, NodeName: new(name),
			Conditions: discoveryv1.EndpointConditions{
				Ready: new(condition == ""), Serving: new(condition != "starting"), Terminating: new(condition == "terminating"),
			},
		})
	}
	l.state.Slices = []*discoveryv1.EndpointSlice{slice}
	l.apply()
}

func (l *lab) apply() {
	l.Helper()
	state := l.state
	l.must(l.cluster.Apply(&state))
}

// probeRounds probes every member n times.
func (l *lab) probeRounds(n int) {
	l.Helper()
	for range n {
		l.balancer.ProbeNow()
	}
	l.must(l.balancer.Err())
}

func (l *lab) options(protocol Protocol) LoadOptions {
	at := front
	if protocol == UDP {
		at = dns
	}
	return LoadOptions{Protocol: protocol, Timeout: 5 * time.Minute, Target: func() (netip.AddrPort, bool) { return l.network.Resolve(DestinationOf(protocol, at)) }}
}

// expectNodes sends new flows, of which none may be lost, and expects that these nodes answer.
func (l *lab) expectNodes(about, want string) {
	l.Helper()
	count := SendFlows(l.options(TCP), 40)
	if got := nodesOf(count); got != want || count.Lost > 0 {
		l.Errorf("%s: new flows to %q (%v), %s %q; want %q and none lost", about, got, count.Nodes, count, count.Failures, want)
	}
}

func nodesOf(count LoadCount) string {
	var names []string
	for _, n := range []string{"n1", "n2", "n3"} {
		if count.Nodes[n] > 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, " ")
}

// openFlow is an established TCP flow.
type openFlow struct {
	*Load
	lab  *lab
	node string
	send func() (node string, err error)
}

// openTo opens TCP flows until a node answers one, which remains open.
func (l *lab) openTo(node string) *openFlow {
	l.Helper()
	for range 200 {
		client := newLoad(l.options(TCP))
		conn, _, at, err := client.connect()
		l.must(err)
		if at == node {
			l.Cleanup(func() { _ = conn.Close() })
			return &openFlow{client, l, node, func() (string, error) {
				_, at, err := client.request(conn)
				return at, err
			}}
		}
		_ = conn.Close()
	}
	l.Fatalf("no flow goes to %s", node)
	return nil
}

func (f *openFlow) expectAlive(when string) {
	f.lab.Helper()
	if at, err := f.send(); err != nil || at != f.node {
		f.lab.Errorf("%s: the established flow to %s: %q, %v", when, f.node, at, err)
	}
}

// within bounds a wait that ends as soon as a check holds.
func (l *lab) within(about string, check func() bool) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), 5*time.Minute)
	defer cancel()
	for !check() {
		if !sleep(ctx, 5*time.Millisecond) {
			l.Fatalf("%s: not within 5 minutes", about)
		}
	}
}
