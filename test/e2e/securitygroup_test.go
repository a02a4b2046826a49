// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/lab/armemu"
)

const securityGroup = network + "/networkSecurityGroups/nsg"

// expectRules waits until the managed security rules are exactly these.
func (l *lab) expectRules(want ...string) {
	l.t.Helper()
	slices.Sort(want)
	l.eventually("security group", func() error {
		body, _ := l.emulator.Get(securityGroup)
		var shown struct {
			Properties struct {
				Rules []struct {
					Name       string `json:"name"`
					Properties struct {
						Access       string   `json:"access"`
						Source       string   `json:"sourceAddressPrefix"`
						Sources      []string `json:"sourceAddressPrefixes"`
						Destination  string   `json:"destinationAddressPrefix"`
						Destinations []string `json:"destinationAddressPrefixes"`
						Port         string   `json:"destinationPortRange"`
						Ports        []string `json:"destinationPortRanges"`
					} `json:"properties"`
				} `json:"securityRules"`
			} `json:"properties"`
		}
		l.must(json.Unmarshal(body, &shown))
		var got []string
		for _, r := range shown.Properties.Rules {
			if p := r.Properties; strings.HasPrefix(r.Name, "k8s-azure-lb_") {
				got = append(got, fmt.Sprintf("%s %s to %s at %s", p.Access, p.Source+strings.Join(p.Sources, ","), p.Destination+strings.Join(p.Destinations, ","), p.Port+strings.Join(p.Ports, ",")))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

// The security group allows the Services' sources, follows the nodes where needed, and is restored
// when the Services are deleted.
func TestSecurityGroupDecidesConnections(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.must(l.emulator.Put(securityGroup, []byte(`{"location":"eastus","properties":{"securityRules":[]}}`)))
	l.must(l.emulator.Put(vnet+"/subnets/nodes", []byte(`{"properties":{"addressPrefix":"10.0.0.0/16","networkSecurityGroup":{"id":"`+securityGroup+`"}}}`)))
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","subnetName":"nodes","location":"eastus","securityGroupName":"nsg","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	l.node("n1", "10.0.0.1")
	l.createLoadBalancerService("web", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"} })
	l.createLoadBalancerService("direct", func(s *corev1.Service) {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		s.Annotations["service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip"] = "true"
	})
	weir := l.controller("--leader-elect=false", "--cluster-name", l.namespace) // on a busy machine an election logs errors

	ip := l.ingress("web", 1)[0]
	l.ingress("direct", 1)
	var s corev1.Service
	l.must(l.cluster.Get(t.Context(), key(l.namespace, "direct"), &s))
	port := s.Spec.Ports[0].NodePort
	l.expectRules("Allow 192.0.2.0/24 to "+ip+" at 80", fmt.Sprintf("Allow Internet to 10.0.0.1 at %d", port))

	l.edit("web", func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"198.51.100.0/24", "192.0.2.0/24"} })
	l.expectRules("Allow 192.0.2.0/24,198.51.100.0/24 to "+ip+" at 80", fmt.Sprintf("Allow Internet to 10.0.0.1 at %d", port))

	l.node("n2", "10.0.0.2")
	l.expectRules("Allow 192.0.2.0/24,198.51.100.0/24 to "+ip+" at 80", fmt.Sprintf("Allow Internet to 10.0.0.1,10.0.0.2 at %d", port))

	for _, name := range []string{"web", "direct"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: l.namespace}}
		l.must(l.cluster.Delete(t.Context(), s))
		l.gone("Service "+name, s)
	}
	l.expectRules()
	for _, trouble := range []string{"forbidden", "panic", "ERROR"} {
		if strings.Contains(weir.ReadOutput(), trouble) {
			t.Errorf("the log says %s:\n%s", trouble, weir.ReadOutput())
		}
	}
}
