// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// gatewayTypes are the types that Weir needs.
var gatewayTypes = []string{"gatewayclasses", "gateways", "tcproutes", "udproutes", "referencegrants"}

// installGatewayAPI installs the standard CRDs of the module.
func (l *lab) installGatewayAPI() {
	l.t.Helper()
	l.installCRDs(gatewayTypes...)
	l.kubectl("apply", "--server-side", "-k", "../../config/gateway-api")
	l.must(gatewayv1.Install(l.cluster.Scheme()))
}

func (l *lab) installCRDs(names ...string) {
	l.t.Helper()
	dir, err := exec.CommandContext(l.t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	l.must(err)
	crds := filepath.Join(strings.TrimSpace(string(dir)), "config/crd/standard")
	for _, name := range names {
		l.kubectl("apply", "--server-side", "-f", filepath.Join(crds, "gateway.networking.k8s.io_"+name+".yaml"))
		l.kubectl("wait", "--for=condition=Established", "crd/"+name+".gateway.networking.k8s.io")
	}
}

// removeGatewayAPI removes the CRDs and with them all Gateways.
func (l *lab) removeGatewayAPI() {
	l.t.Helper()
	for _, name := range append([]string{"tlsroutes"}, gatewayTypes...) {
		l.kubectl("delete", "--timeout=10m", "--ignore-not-found", "crd/"+name+".gateway.networking.k8s.io")
	}
}

// backend creates a NodePort Service.
func (l *lab) backend(namespace, name string, protocol corev1.Protocol, edit func(*corev1.Service)) (nodePort int32) {
	l.t.Helper()
	s := l.backendObject(namespace, name, protocol)
	if edit != nil {
		edit(s)
	}
	l.must(l.cluster.Create(l.t.Context(), s))
	return s.Spec.Ports[0].NodePort
}

func (l *lab) backendObject(namespace, name string, protocol corev1.Protocol) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, Protocol: protocol}}},
	}
}

func (l *lab) newGateway(name string, listeners ...gatewayv1.Listener) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: gatewayv1.ObjectName(l.namespace), Listeners: listeners},
	}
}

func (l *lab) tcpRoute(name, gateway string, backends ...gatewayv1.BackendRef) {
	l.t.Helper()
	l.must(l.cluster.Create(l.t.Context(), &gatewayv1.TCPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
		Spec: gatewayv1.TCPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(gateway)}}},
			Rules:           []gatewayv1.TCPRouteRule{{BackendRefs: backends}},
		},
	}))
}

func backendRef(namespace, name string) gatewayv1.BackendRef {
	return gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
		Name: gatewayv1.ObjectName(name), Namespace: new(gatewayv1.Namespace(namespace)), Port: new(gatewayv1.PortNumber(80)),
	}}
}

// deleteGateway deletes a Gateway at the end of a test, also without a controller.
func (l *lab) deleteGateway(name string) {
	ctx, gw := context.WithoutCancel(l.t.Context()), l.newGateway(name)
	_ = l.cluster.Delete(ctx, gw) // first: a running controller would add the finalizer again
	_ = l.cluster.Patch(ctx, gw, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
}

// programmed waits until a Gateway is in sync, and returns its address.
func (l *lab) programmed(name string) (address string) {
	l.t.Helper()
	l.eventually("Gateway "+name, func() error {
		var gw gatewayv1.Gateway
		if err := l.cluster.Get(l.t.Context(), key(l.namespace, name), &gw); err != nil {
			return err
		}
		for _, kind := range []string{"Accepted", "Programmed"} {
			if c := meta.FindStatusCondition(gw.Status.Conditions, kind); c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != gw.Generation {
				return fmt.Errorf("conditions %+v", gw.Status.Conditions)
			}
		}
		if len(gw.Status.Addresses) != 1 {
			return fmt.Errorf("addresses %v", gw.Status.Addresses)
		}
		address = gw.Status.Addresses[0].Value
		return nil
	})
	return address
}

// expectRoute waits for a condition of a route with one parent.
func (l *lab) expectRoute(name, kind, reason string) {
	l.t.Helper()
	l.eventually("route "+name, func() error {
		var route gatewayv1.TCPRoute
		if err := l.cluster.Get(l.t.Context(), key(l.namespace, name), &route); err != nil {
			return err
		}
		if len(route.Status.Parents) != 1 {
			return fmt.Errorf("parents %+v", route.Status.Parents)
		}
		if c := meta.FindStatusCondition(route.Status.Parents[0].Conditions, kind); c == nil || c.Reason != reason {
			return fmt.Errorf("conditions %+v, want %s", route.Status.Parents[0].Conditions, reason)
		}
		return nil
	})
}

// ports returns the rules of the load balancer, as "protocol port node port", sorted.
func (l *lab) ports() []string {
	l.t.Helper()
	body, ok := l.emulator.Get(l.loadBalancer())
	if !ok {
		return nil
	}
	var got struct {
		Properties struct {
			LoadBalancingRules []struct {
				Properties struct {
					Protocol                  string
					FrontendPort, BackendPort int
				}
			}
		}
	}
	l.must(json.Unmarshal(body, &got))
	ports := []string{}
	for _, r := range got.Properties.LoadBalancingRules {
		ports = append(ports, fmt.Sprintf("%s %d %d", strings.ToLower(r.Properties.Protocol), r.Properties.FrontendPort, r.Properties.BackendPort))
	}
	slices.Sort(ports)
	return ports
}

func (l *lab) expectPorts(want ...string) {
	l.t.Helper()
	l.eventually("rules", func() error {
		if got := l.ports(); !slices.Equal(got, want) {
			return fmt.Errorf("has %v, want %v", got, want)
		}
		return nil
	})
}

// A Gateway has its address before it has a route. A route of its namespace is served; a backend of another one needs a
// grant; a deleted Gateway leaves nothing.
func TestGateway(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.installGatewayAPI()
	controller := gatewayv1.GatewayController("weir.dev/gateway-controller")
	gatewayClass := &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controller}}
	l.must(l.cluster.Create(t.Context(), gatewayClass))
	l.controller("--cluster-name", l.namespace, "--gateway-api")
	l.node("n1", "10.0.0.1")
	gw := l.newGateway("edge", gatewayv1.Listener{Name: "web", Port: 443, Protocol: gatewayv1.TCPProtocolType})
	l.must(l.cluster.Create(t.Context(), gw))
	t.Cleanup(func() { l.deleteGateway("edge") })
	address := l.programmed("edge")

	port := l.backend(l.namespace, "web", corev1.ProtocolTCP, nil)
	l.tcpRoute("web", "edge", backendRef(l.namespace, "web"))
	l.expectRoute("web", "ResolvedRefs", "ResolvedRefs")
	l.expectPorts(fmt.Sprintf("tcp 443 %d", port))
	l.becomes(l.namespace, "10.0.0.1")
	l.eventually("plan of a served Gateway", func() error {
		if out, code := l.runPlan(); code != 0 || !strings.Contains(out, "No changes (1 Gateway).") {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})

	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-other-"}}
	l.must(l.cluster.Create(t.Context(), other))
	shared := l.backend(other.Name, "shared", corev1.ProtocolTCP, nil)
	var route gatewayv1.TCPRoute
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "web"), &route))
	l.must(l.cluster.Delete(t.Context(), &route))
	l.tcpRoute("shared", "edge", backendRef(other.Name, "shared"))
	l.expectRoute("shared", "ResolvedRefs", "RefNotPermitted")
	l.expectPorts()
	l.must(l.cluster.Create(t.Context(), &gatewayv1.ReferenceGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: other.Name, Name: "edge"},
		Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "TCPRoute", Namespace: gatewayv1.Namespace(l.namespace)}},
			To:   []gatewayv1.ReferenceGrantTo{{Kind: "Service"}},
		},
	}))
	l.expectRoute("shared", "ResolvedRefs", "ResolvedRefs")
	l.expectPorts(fmt.Sprintf("tcp 443 %d", shared))
	if now := l.programmed("edge"); now != address {
		t.Errorf("address %s became %s", address, now)
	}
	l.expectExit(3, []string{"status", "-n", l.namespace}, "Something is wrong with 1 of 1 Gateway", "set securityGroupName\n  gateway "+l.namespace+"/edge   NotManaged")
	l.expectOutput([]string{"explain", "gateway", "edge", "-n", l.namespace}, "Gateway "+l.namespace+"/edge\n", ", which Weir serves", "Addresses: "+address+"\n", "443/TCP   1 ",
		fmt.Sprintf("Service %s/shared:80 on node port %d", other.Name, shared), "BackendPool weir-system/")

	l.must(l.cluster.Delete(t.Context(), gw))
	l.eventually("Gateway is deleted", func() error {
		if err := l.cluster.Get(t.Context(), key(l.namespace, "edge"), &gatewayv1.Gateway{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("exists: %w", err)
		}
		return nil
	})
	if _, exists := l.emulator.Get(l.loadBalancer()); exists {
		t.Error("the load balancer is left")
	}
}

// A node port serves one frontend: that of the oldest Gateway, across restarts. When that is deleted, the next one gets
// it. A Service shares the load balancer, and statuses of other controllers remain.
func TestGatewaysThatShareABackend(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	first := l.controller("--cluster-name", l.namespace, "--gateway-api") // the CRDs come later
	l.installGatewayAPI()
	first.Kill() // the next process need not wait for the next look at the types
	l.deleteLease()
	l.must(l.cluster.Create(t.Context(), &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"},
	}))
	node := l.node("n1", "10.0.0.1")
	udp := gatewayv1.Listener{Name: "dns", Port: 53, Protocol: gatewayv1.UDPProtocolType}
	port := l.backend(l.namespace, "dns", corev1.ProtocolUDP, func(s *corev1.Service) {
		s.Spec.Type, s.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, ptr.To("example.com/none") // a NodePort Service has no healthCheckNodePort
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	for _, name := range []string{"a-old", "b-new"} {
		gw := l.newGateway(name, udp)
		l.must(l.cluster.Create(t.Context(), gw))
		t.Cleanup(func() { l.deleteGateway(name) })
	}
	route := &gatewayv1.UDPRoute{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "dns"},
		Spec: gatewayv1.UDPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "a-old"}, {Name: "b-new"}, {Name: "theirs"}}},
			Rules:           []gatewayv1.UDPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backendRef(l.namespace, "dns")}}},
		},
	}
	l.must(l.cluster.Create(t.Context(), route))
	foreign := gatewayv1.RouteParentStatus{
		ParentRef: gatewayv1.ParentReference{Name: "theirs"}, ControllerName: "example.com/controller",
		Conditions: []metav1.Condition{{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", LastTransitionTime: metav1.Now()}},
	}
	route.Status.Parents = []gatewayv1.RouteParentStatus{foreign}
	l.must(l.cluster.Status().Update(t.Context(), route))
	l.createLoadBalancerService("web", func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}, node)

	second := l.controller("--cluster-name", l.namespace, "--gateway-api")
	old := l.programmed("a-old")
	if address := l.programmed("b-new"); address == old {
		t.Errorf("both Gateways have address %s", address)
	}
	l.ingress("web", 1)
	l.expectPorts("tcp 80 80", fmt.Sprintf("udp 53 %d", port))
	l.expectListener("a-old", "Programmed")
	l.expectListener("b-new", "Invalid")
	l.eventually("statuses of the route", func() error {
		var got gatewayv1.UDPRoute
		if err := l.cluster.Get(t.Context(), key(l.namespace, "dns"), &got); err != nil {
			return err
		}
		if len(got.Status.Parents) != 3 || got.Status.Parents[0].ControllerName != foreign.ControllerName {
			return fmt.Errorf("parents %+v", got.Status.Parents)
		}
		return nil
	})

	second.Kill()
	l.deleteLease()
	l.must(l.cluster.Delete(t.Context(), l.newGateway("a-old")))
	l.env = []string{noStreams}
	l.controller("--cluster-name", l.namespace, "--gateway-api")
	l.expectListener("b-new", "Programmed")
	l.expectPorts("tcp 80 80", fmt.Sprintf("udp 53 %d", port))
	l.eventually("Gateway is deleted", func() error {
		if err := l.cluster.Get(t.Context(), key(l.namespace, "a-old"), &gatewayv1.Gateway{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("exists: %w", err)
		}
		return nil
	})
}

// A backend of several listeners and Gateways: each further one gets a copy of the Service with a node port of its own. A
// copy follows its Service in place, and is deleted when the Gateway no longer uses it, also if Weir was down. Weir leaves a
// changed copy alone.
func TestGatewaysWithCopies(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.installGatewayAPI()
	l.must(l.cluster.Create(t.Context(), &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"},
	}))
	l.node("n1", "10.0.0.1")
	backends := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-backends-"}}
	l.must(l.cluster.Create(t.Context(), backends))
	l.must(l.cluster.Create(t.Context(), &gatewayv1.ReferenceGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: backends.Name, Name: "edge"},
		Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: "TCPRoute", Namespace: gatewayv1.Namespace(l.namespace)}},
			To:   []gatewayv1.ReferenceGrantTo{{Kind: "Service"}},
		},
	}))
	port := l.backend(backends.Name, "web", corev1.ProtocolTCP, func(s *corev1.Service) {
		s.Spec.Selector = map[string]string{"app": "blue"}
		s.Spec.Type, s.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, ptr.To("example.com/none")
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	listeners := []gatewayv1.Listener{{Name: "web", Port: 443, Protocol: gatewayv1.TCPProtocolType}, {Name: "alt", Port: 444, Protocol: gatewayv1.TCPProtocolType}}
	for i, name := range []string{"first", "second"} {
		gw := l.newGateway(name, listeners[:2-i]...)
		l.must(l.cluster.Create(t.Context(), gw))
		t.Cleanup(func() { l.deleteGateway(name) })
		l.tcpRoute(name, name, backendRef(backends.Name, "web"))
	}
	weir := l.controller("--cluster-name", l.namespace, "--gateway-api")
	l.programmed("first")
	l.programmed("second")
	copies := func(want int) (services []corev1.Service) {
		t.Helper()
		l.eventually("copies", func() error {
			var list corev1.ServiceList
			if err := l.cluster.List(t.Context(), &list, client.InNamespace(backends.Name), client.MatchingLabels{"app.kubernetes.io/managed-by": "weir"}); err != nil {
				return err
			}
			if services = list.Items; len(services) != want {
				return fmt.Errorf("%d, want %d", len(services), want)
			}
			return nil
		})
		return services
	}
	expectCopies := func(services []corev1.Service) {
		t.Helper()
		want := []string{fmt.Sprintf("tcp 443 %d", port)}
		for _, c := range services {
			front := 444
			if c.Annotations["gateway.weir.dev/listener"] == l.namespace+"/second/web" {
				front = 443
			}
			want = append(want, fmt.Sprintf("tcp %d %d", front, c.Spec.Ports[0].NodePort))
		}
		slices.Sort(want)
		l.expectPorts(want...)
	}
	gateways := copies(2)
	expectCopies(gateways)
	if gateways[0].Spec.HealthCheckNodePort == 0 || gateways[0].Spec.HealthCheckNodePort == gateways[1].Spec.HealthCheckNodePort {
		t.Errorf("health checks %d and %d", gateways[0].Spec.HealthCheckNodePort, gateways[1].Spec.HealthCheckNodePort)
	}

	var web corev1.Service
	l.editObject(key(backends.Name, "web"), &web, func() { web.Spec.Selector["app"] = "green" })
	l.eventually("copies follow", func() error {
		for _, c := range copies(2) {
			if c.Spec.Selector["app"] != "green" {
				return fmt.Errorf("selector %v", c.Spec.Selector)
			}
		}
		return nil
	})
	expectCopies(gateways)

	weir.Kill() // a Gateway is deleted while it is down
	l.deleteLease()
	l.must(l.cluster.Delete(t.Context(), l.newGateway("second")))
	precious := l.backendObject(backends.Name, "precious", corev1.ProtocolTCP)
	precious.Labels, precious.Annotations = gateways[0].Labels, gateways[0].Annotations // it looks like a copy
	l.must(l.cluster.Create(t.Context(), precious))
	l.controller("--cluster-name", l.namespace, "--gateway-api")
	remaining := copies(2)
	remaining = slices.DeleteFunc(remaining, func(s corev1.Service) bool { return s.Name == "precious" })
	if len(remaining) != 1 || remaining[0].Annotations["gateway.weir.dev/listener"] != l.namespace+"/first/alt" {
		t.Fatalf("left are %v", remaining)
	}
	expectCopies(remaining)

	var changed corev1.Service
	l.editObject(client.ObjectKeyFromObject(&remaining[0]), &changed, func() { changed.Spec.Selector["app"] = "mine" })
	l.expectPorts(fmt.Sprintf("tcp 443 %d", port))
	l.must(l.cluster.Delete(t.Context(), &changed))
	l.eventually("a deleted copy comes back", func() error {
		for _, c := range copies(2) {
			if c.Name == changed.Name && c.Spec.Selector["app"] == "green" {
				remaining[0] = c
				return nil
			}
		}
		return fmt.Errorf("no Service %s", changed.Name)
	})
	expectCopies(remaining)

	l.must(l.cluster.Patch(t.Context(), l.newGateway("first"), client.RawPatch("application/json-patch+json", []byte(`[{"op":"remove","path":"/spec/listeners/1"}]`))))
	l.expectPorts(fmt.Sprintf("tcp 443 %d", port))
	if kept := copies(1); kept[0].Name != "precious" {
		t.Errorf("left is %s", kept[0].Name)
	}
}

// With the flag, Weir serves Services in a cluster without the CRDs and without their role, and reports no error. It serves Gateways
// once the CRDs exist, and again after they were removed, and reports a missing type once.
func TestGatewayAPIIsInstalledLater(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.removeGatewayAPI()
	l.kubectl("delete", "--ignore-not-found", "-k", "../../config/gateway-api")
	node := l.node("n1", "10.0.0.1")
	weir := l.controller("--cluster-name", l.namespace, "--gateway-api")
	l.createLoadBalancerService("web", func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}, node)
	l.ingress("web", 1)
	if out := weir.ReadOutput(); strings.Contains(out, `"level":"ERROR"`) || strings.Contains(out, "forbidden") {
		t.Errorf("without Gateway API:\n%s", out)
	}

	l.installGatewayAPI()
	create := func(name string) {
		t.Helper()
		l.must(client.IgnoreAlreadyExists(l.cluster.Create(t.Context(), &gatewayv1.GatewayClass{
			ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"},
		})))
		l.must(l.cluster.Create(t.Context(), l.newGateway(name, gatewayv1.Listener{
			Name: "tls", Port: 443, Protocol: gatewayv1.TLSProtocolType, TLS: &gatewayv1.ListenerTLSConfig{Mode: ptr.To(gatewayv1.TLSModePassthrough)},
		})))
		l.programmed(name)
	}
	create("edge")
	l.installCRDs("tlsroutes")
	tls := &gatewayv1.TLSRoute{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "tls"}, Spec: gatewayv1.TLSRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}}, Hostnames: []gatewayv1.Hostname{"example.com"},
		Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{backendRef(l.namespace, "web")}}},
	}}
	l.must(l.cluster.Create(t.Context(), tls))
	l.eventually("TLSRoute", func() error {
		if err := l.cluster.Get(t.Context(), client.ObjectKeyFromObject(tls), tls); err != nil {
			return err
		}
		if len(tls.Status.Parents) != 1 {
			return fmt.Errorf("parents %+v", tls.Status.Parents)
		}
		if c := meta.FindStatusCondition(tls.Status.Parents[0].Conditions, "Accepted"); c == nil || c.Reason != "UnsupportedValue" || !strings.Contains(c.Message, "TCPRoute") {
			return fmt.Errorf("conditions %+v", tls.Status.Parents[0].Conditions)
		}
		return nil
	})

	l.removeGatewayAPI()
	l.expectPorts("tcp 80 80")
	l.installGatewayAPI()
	create("again")
	out := weir.ReadOutput()
	if missing := strings.Count(out, "of Gateway API was removed"); missing == 0 || missing > len(gatewayTypes)+1 || strings.Contains(out, `"level":"ERROR"`) {
		t.Errorf("%d types are reported as removed, or there is another error", missing)
	}
	l.must(l.cluster.Delete(t.Context(), l.newGateway("again")))
	l.expectPorts("tcp 80 80")
	l.removeGatewayAPI() // waits for the finalizer
}

// A Gateway is published as a Service is, also after a restart. Its Private Link Service is deleted with it.
func TestAGatewayIsPublished(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{Role: shipped.AzureRoles()})
	l.installGatewayAPI()
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","subnetName":"nodes","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2,"loadBalancerBackendPoolConfigurationType":"nodeIPConfiguration","disablePrivateLinkServiceNetworkPolicies":true}`)
	l.virtualMachine("vm1")
	l.must(l.cluster.Create(t.Context(), &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"},
	}))
	l.backend(l.namespace, "web", corev1.ProtocolTCP, nil)
	gw := l.newGateway("edge", gatewayv1.Listener{Name: "web", Port: 443, Protocol: gatewayv1.TCPProtocolType})
	gw.Annotations = map[string]string{service.Internal: "true", service.PLSCreate: "true", service.PLSVisibility: "*"}
	l.must(l.cluster.Create(t.Context(), gw))
	l.tcpRoute("web", "edge", backendRef(l.namespace, "web"))
	link := network + "/privateLinkServices/pls-" + service.OwnerNameOf(string(gw.UID))
	published := func() {
		t.Helper()
		l.eventually("Private Link Service", func() error {
			if err := l.cluster.Get(t.Context(), client.ObjectKeyFromObject(gw), gw); err != nil {
				return err
			}
			if c := meta.FindStatusCondition(gw.Status.Conditions, "weir.dev/PrivateLinkService"); c == nil || c.Reason != "Published" {
				return fmt.Errorf("conditions %+v", gw.Status.Conditions)
			}
			return nil
		})
	}
	weir := l.controller("--cluster-name", l.namespace, "--gateway-api")
	published()
	l.programmed("edge")
	weir.Kill()
	l.deleteLease()
	l.controller("--cluster-name", l.namespace, "--gateway-api")
	l.editObject(client.ObjectKeyFromObject(gw), gw, func() { gw.Annotations[service.HAPorts] = "true" })
	l.eventually("the Gateway is rejected", func() error {
		published()
		if c := meta.FindStatusCondition(gw.Status.Conditions, "Accepted"); c == nil || c.Reason != "InvalidParameters" || !strings.Contains(c.Message, service.HAPorts) {
			return fmt.Errorf("condition %+v", c)
		}
		return nil
	})
	if _, exists := l.emulator.Get(link); !exists {
		t.Error("a rejected Gateway lost its Private Link Service")
	}
	l.must(l.cluster.Delete(t.Context(), gw))
	l.gone("Gateway", gw)
	for _, id := range []string{link, l.loadBalancer() + "-internal"} {
		if _, exists := l.emulator.Get(id); exists {
			t.Errorf("%s is left", id)
		}
	}
}

// An internal Gateway that is deleted and created again has its private address; in between, no other Gateway gets it.
func TestAGatewayRetainsItsPrivateAddress(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{Role: shipped.AzureRoles()})
	l.installGatewayAPI()
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","subnetName":"nodes","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	l.must(l.cluster.Create(t.Context(), &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: l.namespace}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"},
	}))
	create := func(name string) (gw *gatewayv1.Gateway, address string) {
		t.Helper()
		gw = l.newGateway(name, gatewayv1.Listener{Name: "web", Port: 443, Protocol: gatewayv1.TCPProtocolType})
		gw.Annotations = map[string]string{service.Internal: "true", service.RetainAddress: "true"}
		l.must(l.cluster.Create(t.Context(), gw))
		t.Cleanup(func() { l.deleteGateway(name) })
		return gw, l.programmed(name)
	}
	l.controller("--cluster-name", l.namespace, "--gateway-api")
	gw, before := create("edge")
	l.must(l.cluster.Delete(t.Context(), gw))
	l.gone("Gateway", gw)
	if _, other := create("other"); other == before {
		t.Errorf("another Gateway has the retained address %s", other)
	}
	if _, after := create("edge"); after != before {
		t.Errorf("address %s, want %s", after, before)
	}
}

// expectOutput fails unless a command of weir prints these texts, and calls no Gateway a Service.
func (l *lab) expectOutput(args []string, want ...string) {
	l.t.Helper()
	l.expectExit(0, args, want...)
}

func (l *lab) expectExit(code int, args []string, want ...string) {
	l.t.Helper()
	cmd := exec.CommandContext(l.t.Context(), filepath.Join(bin, "weir"), append(args, "--kubeconfig", l.cluster.admin)...)
	out, err := cmd.CombinedOutput()
	text := string(out)
	for _, part := range want {
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(text, part) || strings.Contains(text, "gateway:") {
			l.t.Errorf("weir %v: %v, %q in\n%s", args, err, part, text)
			return
		}
	}
	l.t.Logf("weir %v:\n%s", args, text)
}

// deleteLease makes the next process lead at once.
func (l *lab) deleteLease() {
	l.t.Helper()
	lead := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: "weir-controller"}}
	l.must(client.IgnoreNotFound(l.cluster.Delete(l.t.Context(), lead)))
}

// expectListener waits for the reason of Programmed of the only listener.
func (l *lab) expectListener(name, reason string) {
	l.t.Helper()
	l.eventually("listener of Gateway "+name, func() error {
		var gw gatewayv1.Gateway
		if err := l.cluster.Get(l.t.Context(), key(l.namespace, name), &gw); err != nil {
			return err
		}
		if len(gw.Status.Listeners) != 1 {
			return fmt.Errorf("listeners %+v", gw.Status.Listeners)
		}
		if c := meta.FindStatusCondition(gw.Status.Listeners[0].Conditions, "Programmed"); c == nil || c.Reason != reason {
			return fmt.Errorf("conditions %+v, want %s", gw.Status.Listeners[0].Conditions, reason)
		}
		return nil
	})
}
