// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/lab/armemu"
)

// A Service that names a public IP prefix gets an address of it.
func TestAServiceGetsAnAddressOfAPrefix(t *testing.T) {
	runParallel(t)
	l := newLab(t, armemu.Options{})
	const prefix = network + "/publicIPPrefixes/ours"
	l.must(l.emulator.Put(prefix, []byte(`{"location":"eastus","sku":{"name":"Standard"},"properties":{"prefixLength":30,"publicIPAddressVersion":"IPv4"}}`)))
	l.createLoadBalancerService("web", func(s *corev1.Service) {
		s.Annotations["service.beta.kubernetes.io/azure-pip-prefix-id"] = prefix
	}, l.node("n1", "10.0.0.1"))
	l.controller("--leader-elect=false", "--cluster-name", l.namespace)

	ip := l.ingress("web", 1)[0]
	if body, _ := l.emulator.Get(prefix); !strings.Contains(string(body), l.owner("web")) || !strings.HasPrefix(ip, "198.19.") {
		t.Errorf("the address is %s, the prefix\n%s", ip, body)
	}
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: l.namespace}}
	l.must(l.cluster.Delete(t.Context(), s))
	l.gone("Service web", s)
}
