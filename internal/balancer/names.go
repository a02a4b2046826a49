// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/publicip"
	"weir.dev/weir/internal/service"
)

// keepNames gives what a job wants the names that its Service has on the load balancer.
func (j *job) keepNames(observed lb.LoadBalancer, ips *publicip.Round) {
	if j.leaves() {
		return
	}
	j.wanted = j.Desired.KeepNames(partsOf(j.Owner, observed, ips))
}

// partsOf are the frontends and rules of an owner, as far as their family is known.
func partsOf(owner string, observed lb.LoadBalancer, ips *publicip.Round) []service.Part {
	var parts []service.Part
	families := map[string]lb.Family{}
	for _, f := range observed.Frontends {
		family := f.Family
		if ip, known := ips.ByID(f.PublicIP); known {
			family = ip.Family
		}
		families[strings.ToLower(f.Name)] = family
		if hasPrefixFold(f.Name, owner) {
			parts = append(parts, service.Part{Name: f.Name, Family: family})
		}
	}
	for _, r := range observed.Rules {
		if hasPrefixFold(r.Name, owner) {
			parts = append(parts, service.Part{Name: r.Name, Family: families[strings.ToLower(r.Frontend)]})
		}
	}
	return slices.DeleteFunc(parts, func(p service.Part) bool { return p.Family == "" })
}
