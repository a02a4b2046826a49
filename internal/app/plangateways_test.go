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

// A Gateway is planned like a Service. Two listeners share a backend: the second has the node port of a copy. A backend
// in another namespace has a rule only with a grant.
func TestPlansOfGateways(t *testing.T) {
	t.Parallel()
	gateway := readFile(t, planned+"gateway.yaml")
	var texts strings.Builder
	for _, tt := range []struct{ name, objects string }{
		{"a missing ReferenceGrant", gateway}, {"with the ReferenceGrant", gateway + dnsGrant},
		{"a missing GatewayClass", strings.ReplaceAll(gateway, "gatewayClassName: weir", "gatewayClassName: other")},
	} {
		p, err := emptyCloud(t).plan(t, planned+"azure.json", tt.objects)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		texts.WriteString("=== " + tt.name + "\n" + p.FormatText(false) + "\n")
	}
	referencepage.ExpectFile(t, planned+"gateways.txt", texts.String())
}

// Errors of objects of Gateway API name the object and the field.
func TestPlansOfInvalidGateways(t *testing.T) {
	t.Parallel()
	gateway := readFile(t, planned+"gateway.yaml")
	for _, tt := range []struct{ name, old, replacement, want string }{
		{"an unknown field", "gatewayClassName", "className", `document 2: Gateway shop/edge: unknown field "spec.className"`},
		{"a port of 0", "port: 8080", "port: 0", "document 2: Gateway shop/edge: spec.listeners[1].port: Invalid value: 0"},
		{"a name twice", "name: admin", "name: web", `document 2: Gateway shop/edge: spec.listeners[1].name: Duplicate value: "web"`},
		{"a backend without a port", "{name: web, port: 80}]}]", "{name: web}]}]", "document 3: TCPRoute shop/web: spec.rules[0].backendRefs[0].port: Required value"},
		{"an object twice", "kind: UDPRoute\nmetadata: {namespace: shop, name: dns}", "kind: TCPRoute\nmetadata: {namespace: shop, name: web}", "-f: TCPRoute shop/web is there twice"},
	} {
		_, err := emptyCloud(t).plan(t, planned+"azure.json", strings.Replace(gateway, tt.old, tt.replacement, 1))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
