// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"weir.dev/weir/test/referencepage"
)

const dnsGrant = `
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {namespace: infra, name: dns}
spec:
  from: [{group: gateway.networking.k8s.io, kind: UDPRoute, namespace: shop}]
  to: [{group: "", kind: Service}]
`

const foreignGateways = `
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {namespace: mesh, name: db}
spec:
  parentRefs: [{name: ingress}]
  newer: {a: 1}
  rules: [{backendRefs: [{name: db}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: mesh, name: ingress}
spec:
  gatewayClassName: istio
  defaultScope: {not: a string}
  listeners: [{name: db, port: 5432, protocol: example.com/New, newer: true}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: istio}
spec: {controllerName: istio.io/gateway-controller, newer: true}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: mesh, name: cilium}
spec: {gatewayClassName: cilium, newer: true, listeners: [{name: db, port: 5432, protocol: TCP}]}
`

// A Gateway is planned like a Service. Two listeners share a backend: the second has the node port of a copy. A backend
// in another namespace has a rule only with a grant.
func TestPlansOfGateways(t *testing.T) {
	t.Parallel()
	gateway := readFile(t, planned+"gateway.yaml")
	var texts strings.Builder
	for _, tt := range []struct{ name, objects string }{
		{"a missing ReferenceGrant", gateway}, {"with the ReferenceGrant", gateway + dnsGrant},
		{"Gateways of other controllers", gateway + foreignGateways}, {"a missing GatewayClass", strings.ReplaceAll(gateway, "gatewayClassName: weir", "gatewayClassName: other")},
	} {
		p, err := emptyCloud(t).plan(t, planned+"azure.json", tt.objects)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		texts.WriteString("=== " + tt.name + "\n" + p.FormatText(false) + "\n")
	}
	referencepage.ExpectFile(t, planned+"gateways.txt", texts.String())
}

// gateway/NAME selects a Gateway; a Service of that name is another object.
func TestPlanOfOneGateway(t *testing.T) {
	t.Parallel()
	objects := readFile(t, planned+"gateway.yaml") + dnsGrant
	of := func(name string) (string, error) {
		p, err := emptyCloud(t).plan(t, planned+"azure.json", objects, func(o *PlanOptions) { o.Service, o.Namespace = name, "shop" })
		return p.FormatText(false), err
	}
	if text, err := of("gateway/edge"); err != nil || !strings.Contains(text, "# Gateway shop/edge") {
		t.Errorf("%v, the plan is\n%s", err, text)
	}
	for name, want := range map[string]string{
		"gateway/edges": "there is no Gateway shop/edges with a GatewayClass of Weir: -n names another namespace",
		"edge":          "there is no Service shop/edge",
	} {
		if _, err := of(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// Errors of objects of Gateway API name the object and the field.
func TestPlansOfInvalidGateways(t *testing.T) {
	t.Parallel()
	gateway := readFile(t, planned+"gateway.yaml") + dnsGrant
	for _, tt := range []struct{ name, old, replacement, want string }{
		{"a newer field of a grant", "spec:\n  from:", "spec:\n  newer: 1\n  from:", `document 7: ReferenceGrant infra/dns: unknown field "spec.newer"`},
		{"an unknown field", "gatewayClassName", "className", `document 2: Gateway shop/edge: unknown field "spec.className"`},
		{"a port of 0", "port: 8080", "port: 0", "document 2: Gateway shop/edge: spec.listeners[1].port: Invalid value: 0"},
		{"a name twice", "name: admin", "name: web", `document 2: Gateway shop/edge: spec.listeners[1].name: Duplicate value: "web"`},
		{"a backend without a port", "{name: web, port: 80}]}]", "{name: web}]}]", "document 3: TCPRoute shop/web: spec.rules[0].backendRefs[0].port: Required value"},
		{"a newer field of a route", "rules: [{backendRefs: [{name: web", "newer: 1\n  rules: [{backendRefs: [{name: web", `document 3: TCPRoute shop/web: unknown field "spec.newer"`},
		{"a newer field of a class", "spec: {controllerName", "spec: {newer: 1, controllerName", `document 1: GatewayClass weir: unknown field "spec.newer"`},
		{"parentRefs of another type", "parentRefs: [{name: edge}]", "parentRefs: {name: edge}", "document 3: TCPRoute shop/web: "},
		{"an object twice", "kind: UDPRoute\nmetadata: {namespace: shop, name: dns}", "kind: TCPRoute\nmetadata: {namespace: shop, name: web}", "-f: TCPRoute shop/web is there twice"},
	} {
		_, err := emptyCloud(t).plan(t, planned+"azure.json", strings.Replace(gateway, tt.old, tt.replacement, 1))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
