// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	gatewayName    = "edge"
	gatewayBackend = "web-backend"
)

// gatewayKinds are the types of Gateway API that Weir needs, by plural. GatewayClasses have no namespace.
var gatewayKinds = map[string]string{
	"gatewayclasses": "GatewayClass", "gateways": "Gateway", "tcproutes": "TCPRoute", "udproutes": "UDPRoute", "referencegrants": "ReferenceGrant",
}

// GatewaySummary is the result of act five.
type GatewaySummary struct {
	// Seconds is the time until the Gateway was programmed, and Removed the time until all its resources were deleted.
	Seconds float64 `json:"secondsUntilProgrammed"`
	Removed float64 `json:"secondsUntilRemoved"`
}

// installGatewayAPI creates the types of Gateway API without their schemas: the demo has no other files than its own.
func (c *cluster) installGatewayAPI(ctx context.Context) error {
	for plural, kind := range gatewayKinds {
		scope := "Namespaced"
		if plural == "gatewayclasses" {
			scope = "Cluster"
		}
		crd := &unstructured.Unstructured{Object: object{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": object{"name": plural + "." + gatewayv1.GroupName, "annotations": object{"api-approved.kubernetes.io": "unapproved, for a demo"}},
			"spec": object{
				"group": gatewayv1.GroupName, "scope": scope, "names": object{"plural": plural, "kind": kind, "listKind": kind + "List"},
				"versions": []any{object{
					"name": "v1", "served": true, "storage": true, "subresources": object{"status": object{}},
					"schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}}
		if err := c.createObject(ctx, crd); err != nil {
			return err
		}
	}
	return pollUntil(ctx, 20*time.Millisecond, func() (bool, error) {
		for _, list := range []client.ObjectList{&gatewayv1.GatewayClassList{}, &gatewayv1.GatewayList{}, &gatewayv1.TCPRouteList{}, &gatewayv1.UDPRouteList{}, &gatewayv1.ReferenceGrantList{}} {
			if c.api.List(ctx, list) != nil {
				return false, nil
			}
		}
		return true, nil
	})
}

// newGatewayObjects returns a Gateway for the pods of web, with its class, route and backend.
func newGatewayObjects() []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	parent := gatewayv1.ParentReference{Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway")), Name: gatewayName}
	backend := gatewayv1.BackendObjectReference{Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Service")), Name: gatewayBackend, Port: new(gatewayv1.PortNumber(80))}
	return []client.Object{
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "weir.dev/gateway-controller"}},
		&corev1.Service{ObjectMeta: named(gatewayBackend), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{appLabel: "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		}},
		&gatewayv1.Gateway{ObjectMeta: named(gatewayName), Spec: gatewayv1.GatewaySpec{
			GatewayClassName: "weir",
			Listeners: []gatewayv1.Listener{{
				Name: "http", Protocol: gatewayv1.TCPProtocolType, Port: 443,
				AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromSame)}},
			}},
		}},
		&gatewayv1.TCPRoute{ObjectMeta: named("web"), Spec: gatewayv1.TCPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{parent}},
			Rules:           []gatewayv1.TCPRouteRule{{BackendRefs: []gatewayv1.BackendRef{{BackendObjectReference: backend}}}},
		}},
	}
}

// serveGateway creates a Gateway, waits for its rule in Azure, and deletes it.
func (s *stage) serveGateway(ctx context.Context) error {
	objects, began := newGatewayObjects(), time.Now()
	s.printAction("Gateway %s with a TCPRoute to port 80 of the pods of web, on the load balancer of the Services", gatewayName)
	if err := s.cluster.createObject(ctx, objects...); err != nil {
		return err
	}
	var address netip.Addr
	err := s.waitForResult(ctx, "Gateway "+gatewayName+" is not programmed", func() (bool, error) {
		var gw gatewayv1.Gateway
		if err := s.cluster.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: gatewayName}, &gw); err != nil {
			return false, err
		}
		if len(gw.Status.Addresses) != 1 || !meta.IsStatusConditionTrue(gw.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed)) {
			return false, nil
		}
		var err error
		address, err = netip.ParseAddr(gw.Status.Addresses[0].Value)
		return len(s.observer.latestSnapshot().rulesFor(address)) == 1, err
	})
	if err != nil {
		return err
	}
	s.gateway = &GatewaySummary{Seconds: time.Since(began).Seconds()}
	s.print.printLine(plainText, "azure", fmt.Sprintf("%s has a rule for port 443, %.1f s", address, s.gateway.Seconds))

	began = time.Now()
	s.printAction("Gateway %s is deleted", gatewayName)
	for _, o := range objects {
		err = errors.Join(err, s.cluster.deleteObject(ctx, o))
	}
	if err != nil {
		return err
	}
	err = s.waitForResult(ctx, "Gateway "+gatewayName+" is not deleted", func() (bool, error) {
		err := s.cluster.api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: gatewayName}, &gatewayv1.Gateway{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	s.gateway.Removed = time.Since(began).Seconds()
	return err
}

func (g *GatewaySummary) formatLines() []string {
	return []string{
		fmt.Sprintf("%-28s%8.1f s", "a Gateway is programmed", g.Seconds),
		fmt.Sprintf("%-28s%8.1f s", "it is deleted", g.Removed),
	}
}
