// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/test/referencepage"
)

const (
	planned     = "testdata/plan/"
	planNetwork = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/Microsoft.Network"
)

// emptyCloud has a network with a security group.
func emptyCloud(t *testing.T) *cloud {
	t.Helper()
	return withNetwork(t, newCloud(t, nil))
}

func withNetwork(t *testing.T, c *cloud) *cloud {
	t.Helper()
	c.put(t, "/networkSecurityGroups/nsg", `{"location":"eastus","properties":{"securityRules":[]}}`)
	c.put(t, "/virtualNetworks/vnet", `{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},
		"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/16","networkSecurityGroup":{"id":"`+planNetwork+`/networkSecurityGroups/nsg"}}}]}}`)
	return c
}

func (c *cloud) put(t *testing.T, id, body string) {
	t.Helper()
	if err := c.Put(planNetwork+id, []byte(body)); err != nil {
		t.Fatal(err)
	}
}

const someService = `
apiVersion: v1
kind: Service
metadata: {namespace: shop, name: %s%s}
spec:
  type: LoadBalancer
  loadBalancerClass: weir.dev/azure
  ports: [{port: 80}]
`

// Text output; each case is a cloud, objects and a selection.
func TestPlansAsText(t *testing.T) {
	shop := readFile(t, planned+"shop.yaml")
	named := func(namespace, name string) func(*PlanOptions) {
		return func(o *PlanOptions) { o.Namespace, o.Service = namespace, name }
	}
	everything := func(*PlanOptions) {}
	terraformed := func(c *cloud) {
		c.put(t, "/loadBalancers/terraform", `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"theirs"}],"backendAddressPools":[
			{"name":"web","properties":{"virtualNetwork":{"id":"`+planNetwork+`/virtualNetworks/vnet"},"loadBalancerBackendAddresses":[
				{"name":"vm-1","properties":{"ipAddress":"10.0.0.4"}},{"name":"somebody","properties":{"ipAddress":"10.0.9.9"}}]}}]}}`)
	}
	bound := shop + `
---
apiVersion: weir.dev/v1alpha1
kind: BackendPool
metadata: {namespace: shop, name: web, uid: b1}
spec: {serviceRef: {name: web}, loadBalancer: {name: terraform}, poolName: web, ipFamily: IPv4}
`
	tests := []struct {
		name    string
		objects string
		chosen  func(*PlanOptions)
		cloud   func(*cloud)
	}{
		{"a Service appears", shop, everything, nil},
		{"a Service that nobody has created yet, and no nodes", fmt.Sprintf(someService, "new", ""), everything, nil},
		{"a Service is refused, another is not", shop + "\n---" + fmt.Sprintf(someService, "bad", ", annotations: {service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout: ten}"), everything, nil},
		{"Services of another class alone", strings.ReplaceAll(shop, "weir.dev/azure", "other"), everything, nil},
		{"one Service of two", shop + "\n---" + fmt.Sprintf(someService, "other", ", uid: aaaaaaaa"), named("shop", "web"), nil},
		{"a Service of another namespace", shop, named("other", ""), nil},
		{"a public IP that is not there", fmt.Sprintf(someService, "pinned", ", annotations: {service.beta.kubernetes.io/azure-pip-name: mine}"), everything, nil},
		{"a pool of a load balancer that another client made", strings.ReplaceAll(bound, "loadBalancerClass: weir.dev/azure", "loadBalancerClass: other"), everything, terraformed},
		{"such a pool, taken before: what another client put there stays, node or not", strings.ReplaceAll(bound, "loadBalancerClass: weir.dev/azure", "loadBalancerClass: other") +
			`status: {poolID: "` + planNetwork + `/loadBalancers/terraform/backendAddressPools/web", writtenAddresses: [10.0.9.9]}`, everything, terraformed},
		{"such a pool beside a Service that is named", strings.ReplaceAll(bound, "{serviceRef: {name: web}", "{serviceRef: {name: other}") + "\n---\n" +
			fmt.Sprintf(strings.ReplaceAll(someService, "LoadBalancer\n  loadBalancerClass: weir.dev/azure", "NodePort"), "other", ", uid: bbbbbbbb"), named("shop", "web"), terraformed},
		{"a dry run", shop + "\n---" + fmt.Sprintf(someService, "dry", `, uid: cccccccc, annotations: {weir.dev/dry-run: "true"}`), named("shop", ""), nil},
		{"such a pool, paused", strings.ReplaceAll(strings.ReplaceAll(bound, "loadBalancerClass: weir.dev/azure", "loadBalancerClass: other"), "ipFamily: IPv4}", "ipFamily: IPv4, paused: true}"), everything, terraformed},
		{"the load balancer is not there", strings.ReplaceAll(bound, "loadBalancerClass: weir.dev/azure", "loadBalancerClass: other"), everything, nil},
		{"a pool of network interfaces", strings.ReplaceAll(bound, "loadBalancerClass: weir.dev/azure", "loadBalancerClass: other"), everything, func(c *cloud) {
			for _, nic := range []string{"nic-1", "nic-2"} {
				c.put(t, "/networkInterfaces/"+nic, `{"location":"eastus","properties":{"ipConfigurations":[{"name":"ip","properties":{"subnet":{"id":"`+planNetwork+`/virtualNetworks/vnet/subnets/nodes"}}}]}}`)
			}
			c.put(t, "/loadBalancers/terraform", `{"location":"eastus","sku":{"name":"Standard"},"properties":{"frontendIPConfigurations":[{"name":"theirs"}],"backendAddressPools":[
				{"name":"web","properties":{"backendIPConfigurations":[{"id":"`+planNetwork+`/networkInterfaces/nic-1/ipConfigurations/ip"},{"id":"`+planNetwork+`/networkInterfaces/nic-2/ipConfigurations/ip"}]}}]}}`)
		}},
	}
	texts := make([]string, len(tests))
	t.Run("plans", func(t *testing.T) {
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				c := emptyCloud(t)
				if tt.cloud != nil {
					tt.cloud(c)
				}
				p, err := c.plan(t, planned+"azure.json", tt.objects, tt.chosen)
				if err != nil {
					t.Fatal(err)
				}
				texts[i] = fmt.Sprintf("=== %s\n%s\n", tt.name, p.FormatText(false))
			})
		}
	})
	referencepage.ExpectFile(t, planned+"plans.txt", strings.Join(texts, ""))
}

// The docs show the actual text and JSON of a plan.
func TestThePageOfPlansIsReal(t *testing.T) {
	c := emptyCloud(t)
	p, err := c.plan(t, planned+"azure.json", readFile(t, planned+"shop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := p.FormatJSON()
	if err != nil {
		t.Fatal(err)
	}
	const page = "../../docs/reference/plan.md"
	referencepage.ExpectSection(t, page, "text", "\n```console\n$ weir plan --config azure.json -f shop.yaml\n"+p.FormatText(false)+"```\n\n")
	referencepage.ExpectFile(t, "../../docs/reference/plan.json", string(raw))
}

// Errors name the object, the value and the fix.
func TestFailedPlans(t *testing.T) {
	shop := readFile(t, planned+"shop.yaml")
	tests := []struct {
		name     string
		objects  string
		change   func(*PlanOptions)
		wantText string
	}{
		{"no such file", "", func(o *PlanOptions) { o.Files = []string{"/nonexistent.yaml"} }, "-f: open /nonexistent.yaml"},
		{"no YAML", "a: [", nil, "-f standard input: document 1: "},
		{"no object", "hello: world", nil, "-f standard input: document 1: no apiVersion, or no kind"},
		{"no apiVersion", "kind: Service", nil, "document 1: no apiVersion, or no kind"},
		{"a broken Service", "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: 80}", nil, "document 1: Service web: "},
		{"a broken item", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1"},"status":1}]}`, nil, "document 1: item 1: Node n1: "},
		{"an object twice", shop + "\n---\n" + shop, nil, "-f: Service shop/web is there twice: leave one of them out"},
		{"no such Service", shop, func(o *PlanOptions) { o.Service = "web" }, "there is no Service default/web: -n names another namespace"},
		{"no such Service of a namespace", shop, func(o *PlanOptions) { o.Service, o.Namespace = "api", "shop" }, "there is no Service shop/api\n"},
		{"a Service of another class", shop, func(o *PlanOptions) { o.Service, o.Namespace, o.LoadBalancerClass = "web", "shop", "" },
			`Service shop/web has the load balancer class weir.dev/azure, and --load-balancer-class is ""`},
		{"a Service of another type", "apiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: web}\nspec: {ports: [{port: 80}], type: ClusterIP}", func(o *PlanOptions) { o.Service, o.Namespace = "web", "shop" },
			"Service shop/web has type ClusterIP: a load balancer is planned for type LoadBalancer"},
		{"no azure.json", shop, func(o *PlanOptions) { o.ConfigFile = "/nonexistent.json" }, "--config: "},
		{"a cluster's name that is none", shop, func(o *PlanOptions) { o.ClusterName = "a/b" }, `--cluster-name "a/b": want`},
		{"no such kubeconfig", shop, func(o *PlanOptions) { o.Files, o.Kubeconfig = nil, "/nonexistent" }, `--kubeconfig "/nonexistent": `},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var change []func(*PlanOptions)
			if tt.change != nil {
				change = append(change, tt.change)
			}
			_, err := emptyCloud(t).plan(t, planned+"azure.json", tt.objects, change...)
			if err == nil || !strings.Contains(err.Error()+"\n", tt.wantText) {
				t.Errorf("got %v, want %q", err, tt.wantText)
			}
		})
	}
}

// Azure errors make a plan fail: the error names the read and the affected object.
func TestAPlanThatAzureKeepsFromBeingWhole(t *testing.T) {
	shop := readFile(t, planned+"shop.yaml")
	for fault, wantText := range map[string]string{
		"loadBalancers":         "load balancers of resource group rg",
		"publicIPAddresses":     "the plan is not complete: Service shop/web: public IPs of resource group rg",
		"networkSecurityGroups": "the plan is not complete: Service shop/web: ",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			c := emptyCloud(t)
			script := "rules:\n- match: {path: \"**/" + fault + "*/**\"}\n  action: {status: 403, code: AuthorizationFailed}\n- match: {path: \"**/" + fault + "\"}\n  action: {status: 403, code: AuthorizationFailed}\n"
			if err := c.SetFaults(script); err != nil {
				t.Fatal(err)
			}
			p, err := c.plan(t, planned+"azure.json", shop)
			if err == nil || !strings.Contains(err.Error(), wantText) || !strings.Contains(err.Error(), "AuthorizationFailed") {
				t.Errorf("got %v, want %q", err, wantText)
			}
			if p.Resources != nil && (p.Services[0].Refused != "" || !strings.Contains(p.FormatText(false), "! Service shop/web could not be planned: ")) {
				t.Errorf("the plan is\n%s", p.FormatText(false))
			}
		})
	}
}

// Objects may be in several files in any order.
func TestPlansOfSeveralFiles(t *testing.T) {
	docs := strings.Split(readFile(t, planned+"shop.yaml"), "---\n")
	var files []string
	for i, doc := range docs {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(path, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append([]string{path}, files...)
	}
	c := emptyCloud(t)
	whole, err1 := c.plan(t, planned+"azure.json", strings.Join(docs, "---\n"))
	spread, err2 := c.plan(t, planned+"azure.json", "", func(o *PlanOptions) { o.Files = files })
	if err := errors.Join(err1, err2); err != nil || whole.FormatText(false) != spread.FormatText(false) || whole.Changes == 0 {
		t.Errorf("%v\n%s\n%s", err, whole.FormatText(false), spread.FormatText(false))
	}
}
