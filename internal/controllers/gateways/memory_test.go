// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
)

// Gateways that share a backend have different node ports in a plan: the oldest that of the Service, and each further
// listener that of a copy, which no other Service has. A copy of a Local Service has a healthCheckNodePort, too.
func TestNodePortsOfCopiesInPlans(t *testing.T) {
	t.Parallel()
	local := corev1.ServiceExternalTrafficPolicyLocal
	objects := []client.Object{
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: routing.ControllerName}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("example.com/other"), ExternalTrafficPolicy: local, HealthCheckNodePort: 31000,
			Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30080}},
		}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "used"}, Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, HealthCheckNodePort: firstCopyPort + 2, Ports: []corev1.ServicePort{{Port: 80, NodePort: firstCopyPort}},
		}},
	}
	for i, name := range []string{"first", "second"} {
		gw := &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Unix(int64(100+i), 0)},
			Spec: gatewayv1.GatewaySpec{GatewayClassName: "weir", Listeners: []gatewayv1.Listener{
				{Name: "a", Port: 80, Protocol: gatewayv1.TCPProtocolType}, {Name: "b", Port: 81, Protocol: gatewayv1.TCPProtocolType},
			}},
		}
		route := &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: gatewayv1.ObjectName(name)}}
		route.Spec.Rules = []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Port: new(gatewayv1.PortNumber(80))}}}}}
		objects = append(objects, gw, route)
	}
	view := &cache.Snapshot{Serving: cache.Serving{LoadBalancers: true}}
	view.InMemory()
	gateways := view.AddGateways()
	_, problems, err := ReconcileAll(t.Context(), Config{View: view, Gateways: gateways, Services: noServices{}}, objects)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v, %q", err, problems)
	}
	want := map[string]string{ // node port and healthCheckNodePort of each listener
		"shop/gateway:first": "30080/31000 32101/32103", "shop/gateway:second": "32104/32105 32106/32107",
	}
	for key, want := range want {
		s := cache.Get[corev1.Service](gateways, key)
		var got []string
		for _, p := range s.Spec.Ports {
			got = append(got, strings.Join([]string{p.TargetPort.String(), s.Annotations[cache.HealthCheckAnnotation(p.Protocol, p.Port)]}, "/"))
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %v, want %s", key, got, want)
		}
	}
}
