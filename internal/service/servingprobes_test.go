// SPDX-License-Identifier: Apache-2.0

package service

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

// A probe shows whether a Service serves on a node only if kube-proxy answers for that Service.
func TestHasServingProbes(t *testing.T) {
	const prefix = "service.beta.kubernetes.io/"
	for _, tt := range []struct {
		name        string
		annotations map[string]string
		edit        func(*Service)
		want        bool
	}{
		{"Local", nil, nil, true},
		{"Local, both families", nil, func(s *Service) { s.Families = []lb.Family{lb.IPv4, lb.IPv6} }, true},
		{"Local, UDP shares the probe", nil, func(s *Service) { s.Ports = append(s.Ports, Port{Protocol: "UDP", Port: 53, NodePort: 30053}) }, true},
		{"another path of kube-proxy", map[string]string{prefix + "port_80_health-probe_request-path": "/x", prefix + "port_80_health-probe_protocol": "http"}, nil, true},
		{"Cluster", nil, func(s *Service) { s.Local = false }, false},
		{"no healthCheckNodePort yet", nil, func(s *Service) { s.HealthCheckNodePort = 0 }, false},
		{"no ports", nil, func(s *Service) { s.Ports = nil }, false},
		{"no probe", map[string]string{prefix + "port_80_no_probe_rule": "true"}, nil, false},
		{"one of two ports without a probe", map[string]string{prefix + "port_81_no_probe_rule": "true"}, func(s *Service) { s.Ports = append(s.Ports, Port{Protocol: "TCP", Port: 81, NodePort: 30081}) }, false},
		{"the TCP probe of the port", map[string]string{prefix + "port_80_health-probe_protocol": "tcp"}, nil, false},
		{"another port", map[string]string{prefix + "port_80_health-probe_port": "8080", prefix + "port_80_health-probe_protocol": "http"}, nil, false},
		{"AllProbedUp", map[string]string{NoHealthyBackends: "AllProbedUp"}, nil, false},
		{"AllProbedDown", map[string]string{NoHealthyBackends: "AllProbedDown"}, nil, true},
		{"PROXY protocol", map[string]string{prefix + "azure-pls-create": "true", prefix + "azure-pls-proxy-protocol": "true"}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Service{
				Namespace: "shop", Name: "web", UID: "u", Local: true, HealthCheckNodePort: 31000, Families: []lb.Family{lb.IPv4},
				Ports: []Port{{Protocol: "TCP", Port: 80, NodePort: 30080}}, Annotations: tt.annotations,
			}
			if tt.edit != nil {
				tt.edit(&s)
			}
			spec, problems := BuildSpec(s, Settings{ClusterName: "kubernetes", VirtualNetwork: "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v", Subnet: "nodes", SharedProbe: SharedProbeOf(10256, "/healthz")})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if got := spec.HasServingProbes(s); got != tt.want {
				t.Errorf("%t; rules %+v, probes %+v", got, spec.Rules, spec.Probes)
			}
		})
	}
}
