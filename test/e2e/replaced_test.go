// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/lab/armemu"
)

// A Service replaced by one of another type, with finalizer and records, leaves nothing in Azure.
// Its copied records are not trusted: Azure is read.
func TestAReplacedServiceLeavesNothing(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	l.write("azure.json", `{"subscriptionId":"sub","resourceGroup":"rg","vnetName":"vnet","localServicePools":"own","location":"eastus","loadBalancerBackendPoolUpdateIntervalInSeconds":2}`)
	l.createLoadBalancerService("web", nil, l.node("n1", "10.0.0.1"))
	l.controller("--leader-elect=false", "--cluster-name", l.namespace)
	l.ingress("web", 1)
	l.becomes(l.namespace+"-web", "10.0.0.1")
	l.edit("web", func(s *corev1.Service) {
		s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: s.Spec.ClusterIP, ClusterIPs: s.Spec.ClusterIPs, Ports: []corev1.ServicePort{{Port: 80}}}
		s.Finalizers, s.Annotations = nil, nil
	})
	l.eventually("nothing of it is left", func() error {
		if parts := l.parts(l.loadBalancer()); len(parts) > 0 {
			return fmt.Errorf("%v", parts)
		}
		return nil
	})
}
