// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If placement depends on namespace labels that cannot be read, there is no plan: the Service is not at
// fault.
func TestNoPlanWithoutTheLabelsOfANamespace(t *testing.T) {
	several := filepath.Join(t.TempDir(), "azure.json")
	content := strings.Replace(readFile(t, planned+"azure.json"), `"useManagedIdentityExtension": true`, `"useManagedIdentityExtension": true,
		"multipleStandardLoadBalancerConfigurations": [{"name": "kubernetes", "primaryVMSet": "vmss-1"},
			{"name": "shop", "primaryVMSet": "vmss-2", "serviceNamespaceSelector": {"matchLabels": {"team": "shop"}}}]`, 1)
	if err := os.WriteFile(several, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	web := "apiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: web}\nspec: {type: LoadBalancer, loadBalancerClass: weir.dev/azure, ports: [{port: 80}]}\n"
	_, err := emptyCloud(t).plan(t, several, web)
	if err == nil || !strings.Contains(err.Error(), "Service shop/web: labels of namespace shop: ") {
		t.Errorf("got %v, want an error of the read", err)
	}
	labelled := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: shop}}\n"
	p, err := emptyCloud(t).plan(t, several, web+labelled)
	if text := p.FormatText(false); err != nil || !strings.Contains(text, "load balancer shop") {
		t.Errorf("got %v\n%s", err, text)
	}
}
