// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// RulePools returns the pools that the rules of a Service have in Azure; false if this process has not read them.
func (ps *Pools) RulePools(s *corev1.Service) (pools []lb.PoolID, known bool) {
	if ps.ObservedState == nil {
		return nil, false
	}
	current := ps.ObservedState(metadata.Key(s.Namespace, s.Name), string(s.UID))
	if current == nil {
		return nil, false
	}
	for _, p := range current.Pools {
		pools = append(pools, lb.PoolID{LoadBalancer: current.On, Name: p.Name})
	}
	return pools, true
}

// HasServingProbes reports whether all rules of a Service have a probe that shows whether it serves on a node; valid is
// false if Weir cannot apply its settings.
func (ps *Pools) HasServingProbes(s *corev1.Service) (serving, valid bool) {
	of := ps.serviceWithPools(s)
	spec, problems := service.BuildSpec(of, ps.Settings)
	return len(problems) == 0 && spec.HasServingProbes(of), len(problems) == 0 && len(cache.DryRunProblems(s)) == 0
}
