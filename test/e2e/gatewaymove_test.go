// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/lab/dataplane"
	"weir.dev/weir/test/shipped"
)

// gatewayMove moves a Service to a Gateway by the commands of the guide, while clients connect.
type gatewayMove struct {
	*traffic
	guide       quickStart
	annotations map[string]string // of the Service
	load        *dataplane.Load
	lastCall    uint64
}

func startGatewayMove(t *testing.T, annotations map[string]string) *gatewayMove {
	t.Helper()
	l := newLab(t, armemu.Options{LatencyScale: 0.1, Role: shipped.AzureRoles()})
	l.installGatewayAPI()
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","subnetName":"nodes","location":"eastus",
		"loadBalancerBackendPoolConfigurationType":"nodeIP","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	l.must(l.cluster.Create(t.Context(), &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"},
	}))
	t.Cleanup(func() { l.deleteGateway("edge") })
	m := &gatewayMove{traffic: newTraffic(l), guide: quickStart{lab: l, page: "gateway-api.md"}, annotations: annotations}
	l.must(os.Mkdir(filepath.Join(l.dir, "path"), 0o700))
	l.must(os.Symlink(filepath.Join(bin, "kubectl"), filepath.Join(l.dir, "path/kubectl")))
	const n1, n2 = "10.0.0.1", "10.0.0.2"
	for _, ip := range []string{n1, n2} {
		m.nodes[ip] = l.node("n"+ip[len(ip)-1:], ip)
		m.startPod(ip)
	}
	m.createService("")
	m.setEndpoints([]string{n1, n2}, nil)
	var backend discoveryv1.EndpointSlice
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "web-1"), &backend))
	backend.ObjectMeta = metav1.ObjectMeta{Name: "web-backend-1", Namespace: l.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: "web-backend"}}
	l.must(l.cluster.Create(t.Context(), &backend))
	l.controller("--leader-elect=false", "--cluster-name", l.namespace, "--gateway-api")
	m.front = netip.AddrPortFrom(netip.MustParseAddr(l.ingress("web", 1)[0]), 80)
	m.takers(n1, n2)
	held := m.target(dataplane.TCP)
	held.Hold = 200 * time.Millisecond
	m.load = dataplane.StartLoad(held)
	t.Cleanup(func() { m.load.Stop() })
	m.writes()
	return m
}

// createService creates the Service web; address is what it requests.
func (m *gatewayMove) createService(address string) {
	m.t.Helper()
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: m.namespace, Annotations: maps.Clone(m.annotations)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new(class), Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
	if address != "" {
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, service.IPv4, address)
		metav1.SetMetaDataAnnotation(&s.ObjectMeta, service.DisableFloatingIP, "true")
		m.must(m.cluster.Create(m.t.Context(), s))
		return
	}
	m.createLoadBalancerService("web", func(svc *corev1.Service) { svc.Annotations, svc.Spec = s.Annotations, s.Spec })
}

// run runs the commands of a block of the guide, with the names of this test.
func (m *gatewayMove) run(block int, replace ...string) {
	m.t.Helper()
	const class = "gatewayClassName: weir\n"
	replace = append(replace, "shop", m.namespace, "198.18.0.1", m.front.Addr().String(), class, strings.Replace(class, "weir", m.namespace, 1))
	m.guide.run(strings.NewReplacer(replace...).Replace(m.guide.readBlocks("bash")[block]))
}

// writes returns the writes to Azure since the last call.
func (m *gatewayMove) writes() (names []string) {
	m.t.Helper()
	for _, c := range m.emulator.Calls() {
		if c.Seq > m.lastCall && (c.Method == http.MethodPut || c.Method == http.MethodDelete) {
			m.lastCall = c.Seq
			_, resource, _ := strings.Cut(c.Path, "/Microsoft.Network/")
			if names = append(names, c.Method+" "+resource); c.Method == http.MethodDelete && strings.HasPrefix(resource, "publicIPAddresses/") {
				m.t.Errorf("a public IP was deleted: %q", names)
			}
		}
	}
	return names
}

// waitsForPort waits until the condition Programmed of the Gateway names the Service that has its port.
func (m *gatewayMove) waitsForPort() {
	m.t.Helper()
	m.eventually("the Gateway waits", func() error {
		var gw gatewayv1.Gateway
		m.must(m.cluster.Get(m.t.Context(), key(m.namespace, "edge"), &gw))
		c := meta.FindStatusCondition(gw.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "of Service "+m.namespace+"/web, Tcp port 80 of "+m.front.Addr().String()) || !strings.Contains(c.Message, "delete that Service") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
}

// tookOver checks a change of the owner of the address. The load balancer is written once, without a cut connection,
// unless this machine is so busy that the other one's request comes later.
func (m *gatewayMove) tookOver(about, loadBalancer string, before dataplane.LoadCount) {
	m.t.Helper()
	m.takers("10.0.0.1", "10.0.0.2")
	m.expectConnections(about)
	after, writes := m.load.Count(), m.writes()
	m.t.Logf("%s: writes %q; %d of %d connections lost, %d cut", about, writes, after.Lost-before.Lost, after.Attempted-before.Attempted, after.Cut-before.Cut)
	ofLoadBalancer := 0
	for _, w := range writes {
		if strings.HasSuffix(w, " loadBalancers/"+loadBalancer) {
			ofLoadBalancer++
		}
	}
	if ofLoadBalancer == 0 || ofLoadBalancer > 2 || len(writes) > 4 {
		m.t.Errorf("%s: writes %q", about, writes)
	}
	if ofLoadBalancer == 1 && after.Cut > before.Cut {
		m.t.Errorf("%s: %s, before %s: %q", about, after, before, after.Failures)
	}
}

func (m *gatewayMove) expectConnections(about string) {
	m.t.Helper()
	if count := dataplane.SendFlows(m.target(dataplane.TCP), 20); count.Lost > 0 {
		m.t.Errorf("%s: %s: %q", about, count, count.Failures)
	}
}

// moveAndReturn moves the Service to the Gateway and back.
func (m *gatewayMove) moveAndReturn(loadBalancer string, replace ...string) {
	m.t.Helper()
	m.run(0, replace...)
	m.waitsForPort()
	m.t.Logf("waiting: writes %q\n%s", m.writes(), m.show("get", "gateway,service"))
	before := m.load.Count()
	if before.Lost > 0 || before.Cut > 0 {
		m.t.Errorf("%s: %q", before, before.Failures)
	}
	m.run(1)
	if now := m.programmed("edge"); now != m.front.Addr().String() {
		m.t.Errorf("the Gateway has %s", now)
	}
	m.tookOver("to the Gateway", loadBalancer, before)
	m.t.Logf("%s", m.show("get", "gateway,service"))

	m.createService(m.front.Addr().String())
	m.eventually("the Service waits", func() error {
		var s corev1.Service
		m.must(m.cluster.Get(m.t.Context(), key(m.namespace, "web"), &s))
		if c := meta.FindStatusCondition(s.Status.Conditions, "weir.dev/Programmed"); c == nil || !strings.Contains(c.Message, "the port is taken") {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	m.writes()
	before = m.load.Count()
	m.must(m.cluster.Delete(m.t.Context(), m.newGateway("edge")))
	m.gone("Gateway", m.newGateway("edge"))
	if now := m.ingress("web", 1)[0]; now != m.front.Addr().String() {
		m.t.Errorf("the Service has %s", now)
	}
	m.tookOver("back", loadBalancer, before)
}

func (m *gatewayMove) show(args ...string) string {
	m.t.Helper()
	out, err := m.cluster.kubectl(m.t.Context(), append([]string{"-n", m.namespace}, args...)...)
	if err != nil {
		m.t.Fatal(errors.New(out))
	}
	return out
}

// A Service moves to a Gateway by the guide, and back: the public IP is kept.
func TestAServiceMovesToAGatewayWithItsPublicIP(t *testing.T) {
	runParallel(t)
	m := startGatewayMove(t, nil)
	before := m.publicIPs()
	m.moveAndReturn(m.namespace)
	if now := m.publicIPs(); !maps.Equal(now, before) {
		t.Errorf("public IPs were %v, are %v", before, now)
	}
}

// The same with a private address that Azure has chosen.
func TestAServiceMovesToAGatewayWithItsPrivateAddress(t *testing.T) {
	runParallel(t)
	m := startGatewayMove(t, map[string]string{service.Internal: "true"})
	m.moveAndReturn(m.namespace+"-internal", "name: edge}\nspec", `name: edge, annotations: {`+service.Internal+`: "true"}}`+"\nspec")
	if frontends := slices.Collect(maps.Keys(m.publicIPs())); len(frontends) > 0 {
		t.Errorf("public IPs %v", frontends)
	}
}
