// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/shipped"
)

const (
	network      = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Network/"
	internalName = "ad24ff3bd9a2a4fef88867e0bc6846f0" // default/internal
	linkName     = network + "privateLinkServices/pls-" + internalName
	endpoint     = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe"
)

// A Private Link Service created by cloud-provider-azure and its connections survive when Weir
// starts, leaves and returns. They are deleted with the Service, connections first.
func TestATakeoverOfAPrivateLinkService(t *testing.T) {
	w := &world{T: t, cloud: newCloud(t, ofInterfaces, shipped.AzureRoles()), left: ofInterfaces}
	services := w.createObjects()
	connection := w.publishedBefore()
	original := w.resourceParts(t)
	if out, code := w.plan(); code != 0 || !strings.Contains(out, "No changes (3 Services).") {
		t.Fatalf("weir plan ends with %d:\n%s", code, out)
	}

	weir := w.start()
	w.waitManaged(len(services))
	w.eventually("condition", func() error {
		output := w.kubectl("get", "service", "internal", "-o", "jsonpath={.status.conditions}")
		if !strings.Contains(output, `"reason":"Published"`) || !strings.Contains(output, "1 pending") {
			return fmt.Errorf("it says %s", output)
		}
		return nil
	})
	w.checkNoWrites("the takeover")
	w.stop(weir)
	if out, code := w.weir("leave", "--kubeconfig", cluster.admin); code != 0 || !strings.Contains(out,
		`Service default/internal: a Private Link Service with its tags in resource group "rg" remains unchanged`) {
		t.Errorf("weir leave ends with %d:\n%s", code, out)
	}
	w.checkNoWrites("the way back")
	if now := w.resourceParts(t); !maps.Equal(original, now) {
		t.Errorf("changed: %v", diffParts(original, now))
	}
	w.deletePublished(len(services), connection)
}

// publishedBefore publishes the internal Service like cloud-provider-azure, connects a consumer,
// and returns the connection's id.
func (w *world) publishedBefore() string {
	w.Helper()
	for name, value := range map[string]string{service.PLSCreate: "true", service.PLSVisibility: "*"} {
		w.kubectl("annotate", "service", "internal", name+"="+value)
	}
	w.must(w.Put(linkName, []byte(`{"location": "eastus",
		"tags": {"k8s-azure-owner-service": "default/internal", "k8s-azure-cluster-name": "kubernetes"},
		"properties": {"enableProxyProtocol": false, "visibility": {"subscriptions": ["*"]},
			"loadBalancerFrontendIpConfigurations": [{"id": "`+network+`loadBalancers/kubernetes-internal/frontendIPConfigurations/`+internalName+`"}],
			"ipConfigurations": [{"name": "subnet-pls-`+internalName+`-dynamic", "properties": {"primary": true, "privateIPAllocationMethod": "Dynamic",
				"privateIPAddressVersion": "IPv4", "subnet": {"id": "`+network+`virtualNetworks/vnet/subnets/subnet"}}}]}}`)))
	connection, err := w.Connect(linkName, endpoint)
	w.must(err)
	return connection
}

// deletePublished starts Weir again and deletes the Service: connection, Private Link Service,
// frontend.
func (w *world) deletePublished(services int, connection string) {
	w.Helper()
	since := len(w.Calls())
	w.start()
	w.waitManaged(services)
	w.checkNoWrites("the second takeover")
	w.kubectl("delete", "service", "internal", "--timeout=5m")
	var order []string
	for _, call := range w.writesSince(since) {
		for _, name := range []string{connection, linkName, network + "loadBalancers/kubernetes-internal"} {
			if strings.EqualFold(call, "DELETE "+name) {
				order = append(order, name)
			}
		}
	}
	if want := []string{connection, linkName, network + "loadBalancers/kubernetes-internal"}; !slices.Equal(order, want) {
		w.Errorf("it deleted %v, want %v; all writes are %v", order, want, w.writesSince(since))
	}
	if _, ok := w.resourceParts(w.T)["privateLinkServices/pls-"+internalName]; ok {
		w.Error("it is there yet")
	}
}
