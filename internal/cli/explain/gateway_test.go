// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/k8s/metadata"
)

// A Gateway has its path to Azure: addresses, a rule for each listener that forwards, its routes, its pool.
func TestExplainGateway(t *testing.T) {
	t.Parallel()
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(time.Minute)}
	}
	listener := func(name gatewayv1.SectionName, attached int32, conditions ...metav1.Condition) gatewayv1.ListenerStatus {
		return gatewayv1.ListenerStatus{Name: name, AttachedRoutes: attached, Conditions: conditions}
	}
	gw := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "77aa", Annotations: map[string]string{metadata.PlaceAnnotation: "kubernetes"}},
		Spec: gatewayv1.GatewaySpec{GatewayClassName: "weir", Listeners: []gatewayv1.Listener{
			{Name: "web", Port: 443, Protocol: gatewayv1.TCPProtocolType}, {Name: "dns", Port: 53, Protocol: gatewayv1.UDPProtocolType}, {Name: "spare", Port: 80, Protocol: gatewayv1.TCPProtocolType},
		}},
		Status: gatewayv1.GatewayStatus{
			Addresses:  []gatewayv1.GatewayStatusAddress{{Value: "192.0.2.7"}},
			Conditions: []metav1.Condition{condition("Accepted", "True", "Accepted", ""), condition("Programmed", "True", "Programmed", "Azure is in sync")},
			Listeners: []gatewayv1.ListenerStatus{
				listener("web", 1, condition("Accepted", "True", "Accepted", ""), condition("Conflicted", "False", "NoConflicts", "")),
				listener("dns", 1, condition("Accepted", "True", "Accepted", ""), condition("Programmed", "False", "Invalid", "Gateway a/b already forwards to node port 30053")),
				listener("spare", 0, condition("Accepted", "True", "Accepted", "")),
			},
		},
	}
	parent := gatewayv1.ParentReference{Name: "edge", SectionName: new(gatewayv1.SectionName("web"))}
	route := &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{parent, {Name: "other"}}
	route.Spec.Rules = []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{
		{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "web", Port: new(gatewayv1.PortNumber(80))}},
		{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "gone", Port: new(gatewayv1.PortNumber(80))}, Weight: new(int32)},
	}}}
	route.Status.Parents = []gatewayv1.RouteParentStatus{{ParentRef: parent, ControllerName: routing.ControllerName, Conditions: []metav1.Condition{
		condition("Accepted", "True", "Accepted", ""), condition("ResolvedRefs", "False", "BackendNotFound", "Service shop/gone does not exist"),
	}}}
	other := &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}}
	other.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "other"}}
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e9"}, InvolvedObject: corev1.ObjectReference{Kind: "Gateway", Namespace: "shop", Name: "edge"},
		LastTimestamp: ago(time.Minute), Reason: "EnsuredLoadBalancer", Message: "done",
	}
	api := cluster()
	for _, o := range api {
		if p, ok := o.(*v1alpha1.BackendPool); ok && p.Name == "nodes.kubernetes" {
			p.Status.MadeFor, p.Spec.LoadBalancer.Name = v1alpha1.MadeForNodes, "kubernetes"
		}
	}
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: 30080}}}}
	rule := routing.Rule{Listener: "spare", Backend: routing.Backend{Service: client.ObjectKeyFromObject(web), Protocol: corev1.ProtocolTCP, NodePort: 30080}}
	copied, foreign := routing.NewCopy(gw, rule, web), routing.NewCopy(&gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other", UID: "88bb"}}, rule, web)
	copied.Spec.Ports[0].NodePort, foreign.Spec.Ports[0].NodePort = 32100, 32101
	api = append(api, gw, route, other, event, copied, foreign,
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: routing.ControllerName}},
	)
	explanation, err := Reader{API: serverWith(api...), Now: noon}.ExplainGateway(t.Context(), "shop", "edge")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := explanation.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Gateway shop/edge\n  Class: weir, which Weir serves\n  Addresses: 192.0.2.7\n  Load balancers: kubernetes\n",
		"  Accepted: True for 60s, Accepted\n",
		"web        443/TCP   1        a77aa-TCP-443\n",
		"dns        53/UDP    1        none: Invalid: Gateway a/b already forwards to node port 30053\n",
		"spare      80/TCP    0        none\n",
		"tcproute shop/web   web         Service shop/web:80 on node port 30080, for listener spare on node port 32100 of copy " + copied.Name + ", Service shop/gone:80 with weight 0   BackendNotFound: Service shop/gone does not exist\n",
		"BackendNotResolved: Service shop/gone does not exist\n  What to do: create what the message names, or change backendRefs (kubectl edit tcproute -n shop web)",
		"BackendPool weir-system/nodes.kubernetes:",
		"gateway edge   EnsuredLoadBalancer: done",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "shop/other") || strings.Contains(text.String(), "32101") {
		t.Errorf("a route of another Gateway is in\n%s", text.String())
	}
}
