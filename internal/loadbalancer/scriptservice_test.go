// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// configuration parses "name", "name:closed" or "name:key=value", a label selector.
func configuration(text string) service.Configuration {
	name, rest, _ := strings.Cut(text, ":")
	c := service.Configuration{Name: name, Closed: rest == "closed"}
	if key, value, ok := strings.Cut(rest, "="); ok {
		c.Services = func(labels map[string]string) bool { return labels[key] == value }
	}
	return c
}

// applyAll parses Services from YAML: ports, and optionally a policy, families and other fields; the rest are
// annotations without prefix.
func (s *stage) applyAll(input string) {
	specs := map[string]map[string]any{}
	must(yaml.Unmarshal([]byte(input), &specs))
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		fields := map[string]string{}
		for key, value := range specs[name] {
			fields[key] = fmt.Sprint(value)
		}
		s.apply(name, specOf(fields), nil)
	}
}

func specOf(fields map[string]string) service.Service {
	spec := service.Service{Families: []lb.Family{lb.IPv4}, Annotations: map[string]string{}, Labels: map[string]string{}}
	for key, value := range fields {
		switch key {
		case "ports":
			for text := range strings.FieldsSeq(value) {
				spec.Ports = append(spec.Ports, portOf(text))
			}
		case "families":
			spec.Families = nil
			for text := range strings.FieldsSeq(value) {
				spec.Families = append(spec.Families, lb.Family(text))
			}
		case "local":
			spec.Local, spec.HealthCheckNodePort = true, 32000
		case "client-ip":
			spec.ClientIP = true
		case "ranges":
			spec.SourceRanges = strings.Fields(value)
		case "loadBalancerIP":
			spec.LoadBalancerIP = value
		case "allow-removal":
			spec.Annotations[service.AllowRemoval] = value
		case "retain-address":
			spec.Annotations[service.RetainAddress] = value
		case "zones":
			spec.Annotations[service.Zones] = value
		case "label":
			name, text, _ := strings.Cut(value, "=")
			spec.Labels[name] = text
		default:
			spec.Annotations["service.beta.kubernetes.io/"+key] = strings.ReplaceAll(value, "~", network)
		}
	}
	return spec
}

// portOf parses 80, 53/UDP or http:80/TCP=appProtocol.
func portOf(text string) service.Port {
	p := service.Port{Protocol: "TCP"}
	text, p.AppProtocol, _ = strings.Cut(text, "=")
	if name, rest, named := strings.Cut(text, ":"); named {
		p.Name, text = name, rest
	}
	number, protocol, ok := strings.Cut(text, "/")
	if ok {
		p.Protocol = protocol
	}
	_, err := fmt.Sscan(number, &p.Port)
	must(err)
	p.NodePort = 30000 + p.Port%2000
	return p
}
