// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A Gateway that admits fewer clients is closed to the others at once, as a Service is, even if the same edit makes it invalid or names
// a class that does not exist. Its address remains.
func TestARestrictionOfAnInvalidGateway(t *testing.T) {
	dir := gatewayAPIModule(t)
	invalid := map[string]func(*gatewayv1.Gateway){
		"address": func(gw *gatewayv1.Gateway) {
			gw.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.HostnameAddressType), Value: "edge"}}
		},
		"class": func(gw *gatewayv1.Gateway) { gw.Spec.GatewayClassName = "none" },
	}
	restrictions := map[string]string{"azure-allowed-ip-ranges": "203.0.113.0/24", "azure-load-balancer-internal": "true"}
	for about, invalidate := range invalid {
		for name, value := range restrictions {
			t.Run(about+"/"+name, func(t *testing.T) {
				runStage(t, Options{GatewayAPI: true}, func(s *Stage) {
					api := installGatewayAPI(t, s, dir)
					failOn(s.AddNode(0))
					s.Start()
					failOn(api.Create(ctx, &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"}}))
					failOn(s.AddService("shop/web", func(svc *corev1.Service) { svc.Spec.Type, svc.Spec.LoadBalancerClass = corev1.ServiceTypeNodePort, nil }))
					gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge"}, Spec: gatewayv1.GatewaySpec{
						GatewayClassName: "weir", Listeners: []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.TCPProtocolType}},
					}}
					failOn(api.Create(ctx, gw))
					failOn(api.Create(ctx, &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: gatewayv1.TCPRouteSpec{
						CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}},
						Rules:           []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backendOf("web")}}},
					}}))
					s.awaitRules(1)
					s.Sleep(time.Minute)
					failOn(api.Get(ctx, parseKey("shop/edge"), gw))
					node, _ := nodeAddresses(0) // where flows without floating IP go
					web := &corev1.Service{}
					failOn(s.userClient.Get(ctx, parseKey("shop/web"), web))
					to, port := netip.MustParseAddr(node), web.Spec.Ports[0].NodePort
					check := func(admits, strangers bool) {
						c, err := s.readAzure()
						failOn(err)
						for from, may := range map[string]bool{admitted: admits, stranger: strangers} {
							if c.isAllowed(netip.MustParseAddr(from), to, "Tcp", port) != may {
								failOn(fmt.Errorf("from %s: want %t", from, may))
							}
						}
					}
					check(true, true)
					before, err := s.publicIPs()
					failOn(err)
					metav1.SetMetaDataAnnotation(&gw.ObjectMeta, annotation+name, value)
					invalidate(gw)
					failOn(api.Update(ctx, gw))
					s.Sleep(30 * time.Second)
					check(name == "azure-allowed-ip-ranges", false)
					failOn(s.keptAddresses(before))
					s.awaitRules(1)

					failOn(api.Get(ctx, parseKey("shop/edge"), gw))
					delete(gw.Annotations, annotation+"azure-load-balancer-internal")
					gw.Spec.Addresses, gw.Spec.GatewayClassName = nil, "weir"
					failOn(api.Update(ctx, gw))
					s.Sleep(2 * time.Minute)
					check(true, name != "azure-allowed-ip-ranges")
					failOn(s.keptAddresses(before))
				})
			})
		}
	}
}
