// SPDX-License-Identifier: Apache-2.0

package services

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestIngressHasModeVIP(t *testing.T) {
	for name, row := range map[string]struct {
		mode *corev1.LoadBalancerIPMode
		news bool
	}{
		"VIP":   {new(corev1.LoadBalancerIPModeVIP), false},
		"Proxy": {new(corev1.LoadBalancerIPModeProxy), true},
		"none":  {nil, false},
	} {
		var s corev1.Service
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: row.mode}}
		ingress, news := ingressOf(&s, []netip.Addr{netip.MustParseAddr("192.0.2.1")})
		if news != row.news {
			t.Errorf("%s: differs %t, want %t", name, news, row.news)
		}
		if mode := ingress[0].IPMode; mode == nil || *mode != corev1.LoadBalancerIPModeVIP {
			t.Errorf("%s: the mode to publish is %v, want VIP", name, mode)
		}
	}
}
