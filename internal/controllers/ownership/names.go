// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/service"
)

func (ps *Pools) serviceWithPools(s *corev1.Service) service.Service {
	of := cache.ServiceOf(s)
	if names := ps.PoolNames(s); len(names) > 0 {
		of.PoolNames = names
	}
	return of
}

// PoolNames returns the names of a Service's own pools, IPv4 first; nil if the usual names do not
// collide.
func (ps *Pools) PoolNames(s *corev1.Service) []string {
	var names []string
	distinct := false
	for _, defaultName := range cache.ServiceOf(s).DedicatedPools() {
		me := ps.poolUser(s)
		var rivals []service.PoolUser
		for _, r := range cache.List[corev1.Service](ps.View.Services, cache.ServicesByPool, defaultName) {
			if other := ps.poolUser(r); other.Key != me.Key && (ps.needsPool(r, defaultName) || cache.ContainsFold(other.PoolNames, defaultName)) {
				rivals = append(rivals, other)
			}
		}
		name := service.ChoosePoolName(defaultName, me, rivals)
		names, distinct = append(names, name), distinct || name != defaultName
	}
	if !distinct {
		return nil
	}
	return names
}

// poolUser returns a Service with the pools it already has.
func (ps *Pools) poolUser(s *corev1.Service) service.PoolUser {
	name := metadata.Key(s.Namespace, s.Name)
	user := service.PoolUser{Key: name, Created: s.CreationTimestamp.Time}
	if current := ps.ObservedState(name, string(s.UID)); current != nil {
		for _, p := range current.Pools {
			if !p.Shared {
				user.PoolNames = append(user.PoolNames, p.Name)
			}
		}
	}
	for _, p := range ps.View.PoolsOf(schedule.ServiceName{Namespace: s.Namespace, Name: s.Name}) {
		if ps.IsCreatedByWeir(p) {
			user.PoolNames = append(user.PoolNames, p.Spec.PoolName)
		}
	}
	return user
}

// hasOwnPools reports whether a Service has or needs pools of its own.
func (ps *Pools) hasOwnPools(s *corev1.Service) bool {
	if s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return false
	}
	return ps.Settings.UsesOwnPool(ps.Settings.Interfaces, ps.currentPool(s))
}

// currentPool returns what a Service uses as far as this process has seen it in Azure, otherwise by its
// BackendPools.
func (ps *Pools) currentPool(s *corev1.Service) service.PoolUse {
	own := false
	if current := ps.ObservedState(metadata.Key(s.Namespace, s.Name), string(s.UID)); current != nil {
		own = slices.ContainsFunc(current.Pools, func(p service.Pool) bool { return !p.Shared })
	} else {
		own = slices.ContainsFunc(ps.View.PoolsOf(schedule.ServiceName{Namespace: s.Namespace, Name: s.Name}), ps.IsCreatedByWeir)
	}
	if own {
		return service.OwnPool
	}
	return service.NoPool
}

func (ps *Pools) needsPool(s *corev1.Service, defaultName string) bool {
	if !ps.View.Serving.IsManaged(s) || !ps.hasOwnPools(s) {
		return false
	}
	of := cache.ServiceOf(s)
	for i, name := range of.DedicatedPools() {
		for _, f := range of.Families {
			if (f == lb.IPv6) == (i == 1) && strings.EqualFold(name, defaultName) {
				return true
			}
		}
	}
	return false
}
