// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"weir.dev/weir/internal/service"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// expectLinkCondition waits until the PrivateLinkService condition has a reason and a text.
func (l *lab) expectLinkCondition(name, reason, wantText string) string {
	l.t.Helper()
	var text string
	l.eventually("Private Link Service of "+name, func() error {
		var s corev1.Service
		if err := l.cluster.Get(l.t.Context(), key(l.namespace, name), &s); err != nil {
			return err
		}
		c := meta.FindStatusCondition(s.Status.Conditions, "weir.dev/PrivateLinkService")
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, wantText) {
			return fmt.Errorf("condition %+v, want %s with %q", c, reason, wantText)
		}
		text = c.Message
		return nil
	})
	return text
}

// With all roles the program publishes a frontend, opens the subnet where azure.json allows it,
// reports connections, and deletes everything with the Service: connections first.
func TestAServiceIsPublished(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{Role: shipped.AzureRoles()})
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16"}}`)))
	azureJSON := `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","subnetName":"nodes","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2,"loadBalancerBackendPoolConfigurationType":"nodeIPConfiguration"%s}`
	l.write("azure.json", fmt.Sprintf(azureJSON, ""))
	l.virtualMachine("vm1")
	l.createLoadBalancerService("web", func(s *corev1.Service) {
		s.Annotations[service.Internal], s.Annotations[service.PLSCreate], s.Annotations[service.PLSVisibility] = "true", "true", "*"
	})
	balancer := l.loadBalancer() + "-internal"
	first := l.controller("--cluster-name", l.namespace)
	l.ingress("web", 1)
	l.expectLinkCondition("web", "PrivateLinkServiceRefused", "az network vnet subnet update")
	first.Stop()
	l.write("azure.json", fmt.Sprintf(azureJSON, `,"disablePrivateLinkServiceNetworkPolicies":true`))
	if out, code := l.runPlan(); code != 2 || !strings.Contains(out, "+ private link service pls-a") || !strings.Contains(out, "privateLinkServiceNetworkPolicies: Enabled → Disabled") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	l.controller("--cluster-name", l.namespace)
	l.expectLinkCondition("web", "Published", "no connections")
	l.expectInterfaces(balancer, l.namespace, "vm1")

	var s corev1.Service
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "web"), &s))
	link := network + "/privateLinkServices/pls-" + service.OwnerNameOf(string(s.UID))
	_, err := l.emulator.Connect(link, "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe")
	l.must(err)
	l.edit("web", func(s *corev1.Service) { s.Annotations[service.PLSFQDNs] = "web.example.com" })
	l.expectLinkCondition("web", "Published", "1 pending")
	t.Logf("%s\n%s", l.kubectl("get", "service", "web", "-n", l.namespace, "-o", "jsonpath={.status.conditions}"), l.kubectl("get", "events", "-n", l.namespace, "-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message"))
	if out, code := l.runPlan(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}

	l.must(l.cluster.Delete(t.Context(), &s))
	l.gone("Service web", &s)
	for _, id := range []string{link, balancer} {
		if _, ok := l.emulator.Get(id); ok {
			t.Errorf("%s is left", id)
		}
	}
	for _, call := range l.emulator.Calls() {
		if call.ErrorCode == "AuthorizationFailed" {
			t.Errorf("%s %s: no role allows %v", call.Method, call.Path, call.Actions)
		}
	}
	t.Log(l.kubectl("get", "events", "-n", l.namespace, "-o", "custom-columns=TYPE:.type,REASON:.reason,MESSAGE:.message"))
}
