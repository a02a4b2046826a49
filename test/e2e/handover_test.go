// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/badlink"
	"weir.dev/weir/lab/dataplane"
)

const retiredTaint = "example.com/retired"

// side is one of two clusters that share a pool.
type side struct {
	*traffic
	nodePort int32         // of the Service; the next port is its health check's
	link     *badlink.Link // to its API server
	weir     *program
}

// newSide connects the controller of a lab to its API server over a link that can fail.
func newSide(tr *traffic, nodePort int32) *side {
	tr.t.Helper()
	server, err := url.Parse(tr.cluster.rest.Host)
	tr.must(err)
	link, err := badlink.StartLink(tr.t.Context(), server.Host, badlink.Network{BytesPerSecond: 10 << 20}, 1)
	tr.must(err)
	tr.t.Cleanup(func() { _ = link.Close() })
	kubeconfig, err := clientcmd.LoadFromFile(tr.cluster.weir)
	tr.must(err)
	for _, c := range kubeconfig.Clusters {
		c.Server, c.TLSServerName = "https://"+link.Addr(), server.Hostname()
	}
	behind := *tr.cluster
	behind.weir = filepath.Join(tr.dir, "kubeconfig")
	tr.must(clientcmd.WriteToFile(*kubeconfig, behind.weir))
	tr.cluster = &behind
	tr.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","location":"eastus",
		"loadBalancerBackendPoolUpdateIntervalInSeconds":2,"nodeAdminStateTaints":["`+retiredTaint+`"]}`)
	return &side{traffic: tr, nodePort: nodePort, link: link}
}

// join returns a lab in another cluster with the same namespace, load balancer and data plane.
func (tr *traffic) join(c *cluster) *traffic {
	tr.t.Helper()
	l := &lab{t: tr.t, cluster: c, namespace: tr.namespace, dir: tr.t.TempDir(), emulator: tr.emulator, url: tr.url}
	tr.t.Cleanup(l.deleteServices)
	l.must(c.Create(tr.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace, Annotations: map[string]string{service.LoadBalancersAnnotation: "*"}}}))
	other := &traffic{lab: l, app: tr.app, podNet: tr.podNet, network: tr.network, balancer: tr.balancer, front: tr.front, nodes: map[string]string{}, pods: map[string]*dataplane.Pod{}}
	other.startNodes()
	return other
}

func (s *side) start() {
	s.t.Helper()
	s.weir = s.controller("--leader-elect=false", "--cluster-name", filepath.Base(s.dir))
}

func (s *side) restart() {
	s.t.Helper()
	s.weir.Kill()
	s.start()
}

func (s *side) setLink(isDown bool) {
	n := s.link.Network()
	n.Down = isDown
	s.link.SetNetwork(n)
}

// deploy creates the Service with a pod on each node, and a BackendPool of the shared pool.
func (s *side) deploy(nodes ...string) {
	s.t.Helper()
	s.must(s.cluster.Create(s.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: s.namespace},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, HealthCheckNodePort: s.nodePort + 1,
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: s.nodePort}},
		},
	}))
	s.must(s.cluster.Create(s.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Namespace: s.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
	}))
	for _, ip := range nodes {
		s.nodes[ip] = s.node("n"+netip.MustParseAddr(ip).String()[len("10.0.0."):], ip)
		s.startPod(ip)
	}
	s.setEndpoints(nodes, nil)
	s.must(s.cluster.Create(s.t.Context(), &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: s.namespace},
		Spec: v1alpha1.BackendPoolSpec{
			ServiceRef:   &v1alpha1.ServiceReference{Name: "web"},
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: s.namespace}, PoolName: "web",
		},
	}))
}

// createSharedLoadBalancer creates what Terraform would: an address, a probe, and a rule with an empty pool.
func (l *lab) createSharedLoadBalancer(nodePort int32) (front netip.AddrPort) {
	l.t.Helper()
	ip := network + "/publicIPAddresses/" + l.namespace
	l.must(l.emulator.Put(ip, []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static"}}`)))
	id := l.loadBalancer()
	l.must(l.emulator.Put(id, fmt.Appendf(nil, `{"location":"eastus","sku":{"name":"Standard"},"properties":{
		"frontendIPConfigurations":[{"name":"web","properties":{"publicIPAddress":{"id":%q}}}],
		"backendAddressPools":[{"name":"web","properties":{"virtualNetwork":{"id":%q}}}],
		"probes":[{"name":"web","properties":{"protocol":"Http","port":%d,"requestPath":"/healthz","intervalInSeconds":5}}],
		"loadBalancingRules":[{"name":"web","properties":{"protocol":"Tcp","frontendPort":80,"backendPort":%d,"disableOutboundSnat":true,
			"frontendIPConfiguration":{"id":"%[5]s/frontendIPConfigurations/web"},"backendAddressPool":{"id":"%[5]s/backendAddressPools/web"},"probe":{"id":"%[5]s/probes/web"}}}]}}`,
		ip, vnet, nodePort+1, nodePort, id)))
	rules := l.emulator.ForwardingRules()
	if len(rules) != 1 {
		l.t.Fatalf("rules %v", rules)
	}
	return netip.AddrPortFrom(rules[0].Frontend, 80)
}

// Two clusters share a pool, and the older one leaves. Either controller is killed and either API server is
// unreachable on the way: no flow is lost or cut.
func TestHandOverBetweenClusters(t *testing.T) {
	runParallel(t)
	controlPlanes.enterPair(t)
	l := newLab(t, armemu.Options{LatencyScale: 0.1})
	const nodePort = 30070 // Kubernetes allocates none below 30086 itself
	blue := newSide(newTraffic(l), nodePort)
	blue.front = l.createSharedLoadBalancer(nodePort)
	green := newSide(blue.join(controlPlanes.takeCluster(t)), nodePort)
	const b1, b2, g1, g2 = "10.0.0.1", "10.0.0.2", "10.0.0.11", "10.0.0.12"
	blue.deploy(b1, b2)
	blue.start()
	blue.becomes("web", b1, b2)
	blue.takers(b1, b2)
	held := blue.target(dataplane.TCP)
	held.Hold = 200 * time.Millisecond
	load := dataplane.StartLoad(held)
	var count dataplane.LoadCount
	stop := func() { count = load.Stop() }
	t.Cleanup(func() { stop() })

	// The new cluster joins. Its controller is killed once it has begun, and its API server is unreachable.
	green.deploy(g1, g2)
	green.start()
	green.eventually("the BackendPool has a finalizer", func() error {
		var p v1alpha1.BackendPool
		green.must(green.cluster.Get(t.Context(), key(green.namespace, "web"), &p))
		if len(p.Finalizers) == 0 {
			return fmt.Errorf("none")
		}
		return nil
	})
	green.restart()
	green.becomes("web", b1, g1, g2, b2)
	green.takers(b1, b2, g1, g2)
	green.setLink(true)
	blue.restart()
	green.takers(b1, b2, g1, g2)

	// The old cluster's nodes go Down. Its controller is killed, and its API server is unreachable.
	for _, ip := range []string{b1, b2} {
		if out, err := blue.cluster.kubectl(t.Context(), "taint", "node", blue.nodes[ip], retiredTaint+"=:PreferNoSchedule"); err != nil {
			t.Fatal(out)
		}
	}
	blue.expectDown("web", b1, b2)
	green.takers(g1, g2)
	blue.setLink(true)
	green.setLink(false)
	green.restart()
	green.eventually("the flows of the old cluster end", func() error {
		if n := blue.balancer.OpenFlows(netip.MustParseAddr(b1)) + blue.balancer.OpenFlows(netip.MustParseAddr(b2)); n > 0 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	green.expectDown("web", b1, b2)

	// It leaves.
	blue.setLink(false)
	var p v1alpha1.BackendPool
	blue.must(blue.cluster.Get(t.Context(), key(blue.namespace, "web"), &p))
	blue.must(blue.cluster.Delete(t.Context(), &p))
	blue.restart()
	blue.becomes("web", g1, g2)
	stop()
	stop = func() {}
	t.Logf("hand-over: %s", count)
	if count.Lost > 0 || count.Cut > 0 || count.Succeeded == 0 {
		t.Errorf("%s: %q", count, count.Failures)
	}
}

// A cluster changes nothing in a pool where another cluster has written addresses of its nodes.
func TestClustersWithOverlappingNodesShareNoPool(t *testing.T) {
	runParallel(t)
	controlPlanes.enterPair(t)
	l := newLab(t, armemu.Options{LatencyScale: 0.1})
	const nodePort = 30072
	blue := newSide(newTraffic(l), nodePort)
	blue.front = l.createSharedLoadBalancer(nodePort)
	blue.deploy("10.0.0.1", "10.0.0.2")
	blue.start()
	blue.becomes("web", "10.0.0.1", "10.0.0.2")
	other := &lab{t: t, cluster: controlPlanes.takeCluster(t), namespace: l.namespace, dir: t.TempDir(), emulator: l.emulator, url: l.url}
	t.Cleanup(other.deleteServices)
	other.must(other.cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.namespace, Annotations: map[string]string{service.LoadBalancersAnnotation: "*"}}}))
	other.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	other.node("idle", "10.0.0.2")
	other.service("web", other.node("n1", "10.0.0.11"))
	other.controller("--leader-elect=false", "--cluster-name", "other")
	other.expectStatusText("web", `OverlappingNodes`)
	other.expectStatusText("web", `holds addresses of this cluster's nodes that another cluster has written: 10.0.0.2. Nothing was written: `)
	if got := l.members("web"); !slices.Equal(got, []string{"10.0.0.1", "10.0.0.2"}) {
		t.Errorf("members %v", got)
	}
}

// A Service is deleted, and created in another cluster with the same address, and back. The other cluster gets it only
// after the claim.
func TestAServiceMovesToAnotherClusterWithItsAddress(t *testing.T) {
	runParallel(t)
	controlPlanes.enterPair(t)
	blue := newLab(t, armemu.Options{})
	green := &lab{t: t, cluster: controlPlanes.takeCluster(t), namespace: blue.namespace, dir: t.TempDir(), emulator: blue.emulator, url: blue.url}
	t.Cleanup(green.deleteServices)
	green.must(green.cluster.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: green.namespace}}))
	green.must(client.IgnoreNotFound(green.cluster.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}})))
	for _, l := range []*lab{blue, green} {
		l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","location":"eastus","localServicePools":"own","retainAddresses":true}`)
	}
	names := map[*lab]string{blue: blue.namespace, green: blue.namespace + "-green"}
	claim := func(l *lab, name string, flags ...string) (int, string) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "weir"), append([]string{"address", "claim", "--config", filepath.Join(l.dir, "azure.json"),
			"--azure-endpoint", l.url, "--cluster-name", names[l], name}, flags...)...)
		out, err := cmd.CombinedOutput()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	for _, l := range []*lab{blue, green} {
		l.node(names[l], "10.0.0.1")
		l.controller("--leader-elect=false", "--cluster-name", names[l])
	}
	blue.createLoadBalancerService("web", nil)
	ip, name := blue.ingress("web", 1)[0], blue.namespace+"-"+blue.owner("web")
	if code, out := claim(green, name); code != 1 || !strings.Contains(out, "is not retained") {
		t.Errorf("in use: %d %s", code, out)
	}
	for i, to := range []*lab{green, blue} {
		from := []*lab{blue, green}[i]
		from.must(from.cluster.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: from.namespace, Name: "web"}}))
		from.must(from.cluster.Delete(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: from.namespace, Name: "web-1"}}))
		to.eventually("the claim", func() error {
			if code, out := claim(to, name); code != 0 {
				return errors.New(out)
			}
			return nil
		})
		if code, out := claim(to, name); code != 0 || !strings.Contains(out, "is claimed already for Service "+to.namespace+"/web of cluster "+names[to]) {
			t.Errorf("again: %d %s", code, out)
		}
		to.createLoadBalancerService("web", nil)
		if got := to.ingress("web", 1)[0]; got != ip {
			t.Errorf("address %s, want %s", got, ip)
		}
		if code, out := claim(from, name); code != 1 || !strings.Contains(out, "is in use by") {
			t.Errorf("back while it is in use: %d %s", code, out)
		}
	}
}
