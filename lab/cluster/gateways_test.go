// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"weir.dev/weir/lab/armemu"
)

// gatewayKinds are the kinds that Weir serves, with the names of their definitions.
var gatewayKinds = map[string]string{
	"GatewayClass": "gatewayclasses", "Gateway": "gateways", "TCPRoute": "tcproutes", "UDPRoute": "udproutes", "TLSRoute": "tlsroutes", "ReferenceGrant": "referencegrants",
}

// installGatewayAPI installs the standard definitions of the module, and returns a client for them.
func installGatewayAPI(t *testing.T, s *Stage, dir string) client.Client {
	t.Helper()
	version := schema.GroupVersion{Group: gatewayv1.GroupName, Version: gatewayv1.GroupVersion.Version}
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, name := range gatewayKinds {
		text, err := os.ReadFile(filepath.Join(dir, "config/crd/standard/gateway.networking.k8s.io_"+name+".yaml"))
		failOn(err)
		var crd map[string]any
		failOn(yaml.Unmarshal(text, &crd))
		removeRules(crd)
		text, err = yaml.Marshal(crd)
		failOn(err)
		failOn(s.api.Install(text))
		scope := meta.RESTScopeNamespace
		if kind == "GatewayClass" {
			scope = meta.RESTScopeRoot
		}
		types := version.WithResource(name)
		mapper.AddSpecific(version.WithKind(kind), types, types, scope)
	}
	scheme := runtime.NewScheme()
	failOn(gatewayv1.Install(scheme))
	api, err := client.New(s.api.RESTConfig("people"), client.Options{Scheme: scheme, Mapper: mapper})
	failOn(err)
	return api
}

// removeRules removes the validation rules of a definition: this API server evaluates only those of Weir's own.
func removeRules(node any) {
	switch current := node.(type) {
	case map[string]any:
		delete(current, "x-kubernetes-validations")
		for _, child := range current {
			removeRules(child)
		}
	case []any:
		for _, child := range current {
			removeRules(child)
		}
	}
}

func gatewayAPIModule(t *testing.T) string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}

// 50 Gateways with 100 routes cost at most a write of the load balancer for ten routes. An isolated change of a route is
// written as a change of a Service is: with as many writes, and as fast.
func TestFiftyGateways(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	const gateways = 50
	dir := gatewayAPIModule(t)
	runStage(t, Options{GatewayAPI: true, Limits: armemu.AzureLimits(), Latency: armemu.Busy, LatencyScale: twoSecondWrites}, func(s *Stage) {
		api := installGatewayAPI(t, s, dir)
		for i := range 3 {
			failOn(s.AddNode(i))
		}
		s.Start()
		failOn(api.Create(ctx, &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"}}))
		backend := func(key string) {
			failOn(s.AddService(key, func(svc *corev1.Service) { svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeNodePort, nil }))
		}
		for i := range gateways {
			gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("edge-%d", i)}, Spec: gatewayv1.GatewaySpec{GatewayClassName: "weir"}}
			for n, port := range []gatewayv1.PortNumber{80, 443} {
				name := fmt.Sprintf("web-%d-%d", i, n)
				backend("shop/" + name)
				gw.Spec.Listeners = append(gw.Spec.Listeners, gatewayv1.Listener{Name: gatewayv1.SectionName(fmt.Sprintf("port-%d", port)), Port: port, Protocol: gatewayv1.TCPProtocolType})
				failOn(api.Create(ctx, &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: gatewayv1.TCPRouteSpec{
					CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(gw.Name), SectionName: &gw.Spec.Listeners[n].Name}}},
					Rules:           []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backendOf(name)}}},
				}}))
			}
			failOn(api.Create(ctx, gw))
		}
		s.awaitRules(2 * gateways)
		n := len(s.loadBalancerWrites())
		t.Logf("%d writes of the load balancer for %d routes", n, 2*gateways)
		if n > 2*gateways/10 {
			t.Errorf("%d writes of the load balancer for %d routes, want at most one for ten", n, 2*gateways)
		}

		backend("shop/green")
		failOn(s.AddService("shop/plain", nil))
		s.awaitRules(2*gateways + 1)
		s.Sleep(15 * time.Minute) // no limit of repeated changes applies
		green := &corev1.Service{}
		failOn(s.userClient.Get(ctx, parseKey("shop/green"), green))
		routes, elapsed := s.measureChange(func(r rule) bool { return r.Properties.BackendPort == green.Spec.Ports[0].NodePort }, func() {
			route := &gatewayv1.TCPRoute{}
			failOn(api.Get(ctx, parseKey("shop/web-7-1"), route))
			route.Spec.Rules[0].BackendRefs = []gatewayv1.BackendRef{backendOf("green")}
			failOn(api.Update(ctx, route))
		})
		s.Sleep(15 * time.Minute)
		services, wanted := s.measureChange(func(r rule) bool { return r.Properties.FrontendPort == 8080 }, func() {
			failOn(s.ChangeService("shop/plain", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
		})
		t.Logf("a route: %d writes, %s; a Service: %d writes, %s", routes, elapsed, services, wanted)
		if routes != services || elapsed > wanted+time.Second {
			t.Errorf("a change of a route: %d writes in %s; of a Service: %d in %s", routes, elapsed, services, wanted)
		}
	})
}

func backendOf(name string) gatewayv1.BackendRef {
	return gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: gatewayv1.ObjectName(name), Port: new(gatewayv1.PortNumber(80))}}
}

func (s *Stage) loadBalancerWrites() []armemu.Call {
	return s.emulator.Calls(func(c armemu.Call) bool {
		return c.Kind == armemu.KindPut && strings.Contains(c.Path, "/loadBalancers/") && !strings.Contains(c.Path, "/backendAddressPools/")
	})
}

func (s *Stage) matchingRules(match func(rule) bool) (n int) {
	got, err := s.readAzure()
	failOn(err)
	for _, b := range got.balancers {
		for _, r := range b.Properties.Rules {
			if match(r) {
				n++
			}
		}
	}
	return n
}

func (s *Stage) awaitRules(want int) {
	for range 300 {
		if s.matchingRules(func(rule) bool { return true }) == want {
			return
		}
		s.Sleep(time.Second)
	}
	failOn(fmt.Errorf("%d rules, want %d", s.matchingRules(func(rule) bool { return true }), want))
}

// measureChange returns the writes of the load balancer until a rule is as changed, and how long that took.
func (s *Stage) measureChange(isDone func(rule) bool, change func()) (writes int, elapsed time.Duration) {
	before, begin := len(s.loadBalancerWrites()), time.Now()
	change()
	for s.matchingRules(isDone) == 0 {
		if s.Sleep(100 * time.Millisecond); time.Since(begin) > 5*time.Minute {
			failOn(errors.New("the change is not in Azure after five minutes"))
		}
	}
	elapsed = time.Since(begin)
	s.Sleep(time.Minute)
	return len(s.loadBalancerWrites()) - before, elapsed
}
