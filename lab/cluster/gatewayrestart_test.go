// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/lab/apiserver"
)

func createWeirClass(api client.Client) {
	failOn(api.Create(ctx, &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: routing.ControllerName}}))
}

// createEdge creates Gateway blog/edge, which forwards port 443 to Service blog/web, and waits for it.
func createEdge(s *Stage, api client.Client) *gatewayv1.Gateway {
	createWeirClass(api)
	failOn(s.AddService("blog/web", func(svc *corev1.Service) { svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeNodePort, nil }))
	gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "edge"}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: "weir", Listeners: []gatewayv1.Listener{{Name: "web", Port: 443, Protocol: gatewayv1.TCPProtocolType}},
	}}
	failOn(api.Create(ctx, gw))
	failOn(api.Create(ctx, &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "web"}, Spec: gatewayv1.TCPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}},
		Rules:           []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backendOf("web")}}},
	}}))
	s.awaitRules(1)
	s.Sleep(time.Minute)
	failOn(api.Get(ctx, client.ObjectKeyFromObject(gw), gw))
	return gw
}

// While the GatewayClass is missing, a Gateway keeps its address, rules and status, except rules of routes that are withdrawn,
// and gets no rules.
func TestRoutesOfAMissingClass(t *testing.T) {
	dir := gatewayAPIModule(t)
	runStage(t, Options{GatewayAPI: true}, func(s *Stage) {
		api := installGatewayAPI(t, s, dir)
		failOn(s.AddNode(0))
		s.Start()
		gw := createEdge(s, api)
		before, err := s.publicIPs()
		failOn(err)
		failOn(api.Delete(ctx, &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}}))
		s.Sleep(2 * time.Minute)
		status := gw.Status
		gw.Spec.Listeners = append(gw.Spec.Listeners, gatewayv1.Listener{Name: "more", Port: 8443, Protocol: gatewayv1.TCPProtocolType})
		failOn(api.Update(ctx, gw))
		s.Sleep(2 * time.Minute)
		s.awaitRules(1)
		failOn(api.Get(ctx, client.ObjectKeyFromObject(gw), gw))
		if !reflect.DeepEqual(gw.Status, status) {
			failOn(fmt.Errorf("the status was %+v, and is %+v", status, gw.Status))
		}
		failOn(api.Delete(ctx, &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "web"}}))
		s.awaitRules(0)
		s.Sleep(2 * time.Minute)
		failOn(s.keptAddresses(before))
		createWeirClass(api)
		s.Sleep(2 * time.Minute)
		failOn(s.keptAddresses(before))
	})
}

// After a restart nothing is written before the Gateways are read: their clients stay admitted, and no Service of another
// namespace gets a port of their address.
func TestGatewaysThatAreReadLate(t *testing.T) {
	dir := gatewayAPIModule(t)
	runStage(t, Options{GatewayAPI: true}, func(s *Stage) {
		api := installGatewayAPI(t, s, dir)
		failOn(s.AddNode(0))
		s.Start()
		gw := createEdge(s, api)
		failOn(s.AddService("shop/plain", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8080 }))
		failOn(s.AddService("shop/thief", func(svc *corev1.Service) {
			svc.Spec.Ports[0].Port = 9000
			metav1.SetMetaDataAnnotation(&svc.ObjectMeta, annotation+"azure-load-balancer-ipv4", gw.Status.Addresses[0].Value)
		}))
		s.awaitRules(2)
		s.Sleep(time.Minute)
		s.APIFault(0, apiserver.Fault{Resource: "gateways", Latency: 20 * time.Second})
		s.KillProcess(0)
		node, _ := nodeAddresses(0)
		web := &corev1.Service{}
		failOn(s.userClient.Get(ctx, parseKey("blog/web"), web))
		for range 120 {
			s.Sleep(time.Second)
			c, err := s.readAzure()
			failOn(err)
			if !c.isAllowed(netip.MustParseAddr(stranger), netip.MustParseAddr(node), "Tcp", web.Spec.Ports[0].NodePort) {
				failOn(errors.New("the Gateway's clients are denied"))
			}
			if n := s.matchingRules(func(r rule) bool { return r.Properties.FrontendPort == 9000 }); n != 0 {
				failOn(fmt.Errorf("another namespace has %d rules at the Gateway's address", n))
			}
		}
		failOn(s.ChangeService("shop/plain", func(svc *corev1.Service) { svc.Spec.Ports[0].Port = 8081 }))
		s.Sleep(30 * time.Second)
		if s.matchingRules(func(r rule) bool { return r.Properties.FrontendPort == 8081 }) != 1 {
			failOn(errors.New("a Service is not changed"))
		}
	})
}
