// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"
)

// An invalid manifest is an error that names file, document, object and path.
func TestBrokenManifestsMakeNoPlan(t *testing.T) {
	web := "apiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: web}\nspec: {type: LoadBalancer, loadBalancerClass: weir.dev/azure, ports: [{port: 80}]}\n"
	api := strings.ReplaceAll(web, "name: web", "name: api")
	const first = "-f standard input: document 1: Service shop/web: "
	tests := []struct {
		name, objects string
		wantText      []string
	}{
		{"an unknown field", strings.ReplaceAll(web, "ports:", "prots:"), []string{first + `unknown field "spec.prots"`}},
		{"an unknown field of a list", strings.ReplaceAll(web, "port: 80", "port: 80, prot: TCP"), []string{`unknown field "spec.ports[0].prot"`}},
		{"other capitals", strings.ReplaceAll(web, "ports:", "Ports:"), []string{`unknown field "spec.Ports"`}},
		{"a key twice", strings.ReplaceAll(web, "{port: 80}", "{port: 80, port: 81}"), []string{"document 1: ", `key "port" already set`}},
		{"a port that is none", strings.ReplaceAll(web, "80", "80000"), []string{first + "spec.ports[0].port: Invalid value: 80000"}},
		{"no ports", strings.ReplaceAll(web, "{port: 80}", ""), []string{first + "spec.ports: Required value"}},
		{"a protocol that is none", strings.ReplaceAll(web, "port: 80", "port: 80, protocol: HTTP"), []string{first + `spec.ports[0].protocol: Unsupported value: "HTTP"`}},
		{"a name that is none", strings.ReplaceAll(web, "name: web", "name: Web_"), []string{"Service shop/Web_: metadata.name: Invalid value"}},
		{"a range that is none", strings.ReplaceAll(web, "ports:", "loadBalancerSourceRanges: [10.0.0.0/33], ports:"), []string{first + `spec.loadBalancerSourceRanges[0]: Invalid value: "10.0.0.0/33"`}},
		{"two of them, and more", strings.ReplaceAll(web, "port: 80", "port: 0, protocol: x") + "---\n" + web + "---\n" + strings.ReplaceAll(api, "80", "-1"),
			[]string{first + "spec.ports[0].port: Invalid value: 0", "spec.ports[0].protocol", "\n-f standard input: document 3: Service shop/api: spec.ports[0].port: Invalid value: -1"}},
		{"in a List", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"web"},"spec":{"port":80}}]}`,
			[]string{`document 1: item 1: Service web: unknown field "spec.port"`}},
		{"a BackendPool of nothing", "apiVersion: weir.dev/v1alpha1\nkind: BackendPool\nmetadata: {name: p}\nspec: {loadBalancer: {name: lb}, poolName: p}\n", []string{"BackendPool p: spec: Invalid value", "set exactly one of serviceRef and nodes"}},
		{"a namespace that is not there", web + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shpo}\n", []string{first + "metadata.namespace: the files have Namespaces, and no shop among them"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := emptyCloud(t).plan(t, planned+"azure.json", tt.objects)
			for _, message := range tt.wantText {
				if err == nil || !strings.Contains(err.Error(), message) {
					t.Errorf("got %v, want %q", err, message)
				}
			}
		})
	}
	// Built-in namespaces, and those in the files, are valid.
	for _, objects := range []string{
		strings.ReplaceAll(web, "shop", "default") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n",
		web + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", web,
	} {
		if _, err := emptyCloud(t).plan(t, planned+"azure.json", objects); err != nil {
			t.Errorf("%v\n%s", err, objects)
		}
	}
}
