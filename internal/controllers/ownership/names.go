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

func (o *Pools) serviceWithPools(s *corev1.Service) service.Service {
	of := cache.ServiceOf(s)
	if names := o.PoolNames(s); len(names) > 0 {
		of.PoolNames = names
	}
	return of
}

// PoolNames returns the names of a Service's own pools, IPv4 first; nil if the usual names do not
// collide.
func (o *Pools) PoolNames(s *corev1.Service) []string {
	var names []string
	distinct := false
	for _, defaultName := range cache.ServiceOf(s).DedicatedPools() {
		me := o.poolUser(s)
		var rivals []service.PoolUser
		for _, r := range cache.List[corev1.Service](o.View.Services, cache.ServicesByPool, defaultName) {
			if other := o.poolUser(r); other.Key != me.Key && (o.needsPool(r, defaultName) || cache.ContainsFold(other.PoolNames, defaultName)) {
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
func (o *Pools) poolUser(s *corev1.Service) service.PoolUser {
	name := metadata.Key(s.Namespace, s.Name)
	user := service.PoolUser{Key: name, Created: s.CreationTimestamp.Time}
	if current := o.ObservedState(name, string(s.UID)); current != nil {
		for _, p := range current.Pools {
			if !p.Shared {
				user.PoolNames = append(user.PoolNames, p.Name)
			}
		}
	}
	for _, p := range o.View.PoolsOf(schedule.ServiceName{Namespace: s.Namespace, Name: s.Name}) {
		if o.IsCreatedByWeir(p) {
			user.PoolNames = append(user.PoolNames, p.Spec.PoolName)
		}
	}
	return user
}

// hasOwnPools reports whether a Service has or needs pools of its own.
func (o *Pools) hasOwnPools(s *corev1.Service) bool {
	if s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return false
	}
	return o.Settings.UsesOwnPool(o.Settings.Interfaces, o.currentPool(s))
}

// currentPool returns what a Service uses as far as this process has seen it in Azure, otherwise by its
// BackendPools.
func (o *Pools) currentPool(s *corev1.Service) service.PoolUse {
	own := false
	if current := o.ObservedState(metadata.Key(s.Namespace, s.Name), string(s.UID)); current != nil {
		own = slices.ContainsFunc(current.Pools, func(p service.Pool) bool { return !p.Shared })
	} else {
		own = slices.ContainsFunc(o.View.PoolsOf(schedule.ServiceName{Namespace: s.Namespace, Name: s.Name}), o.IsCreatedByWeir)
	}
	if own {
		return service.OwnPool
	}
	return service.NoPool
}

func (o *Pools) needsPool(s *corev1.Service, defaultName string) bool {
	if !o.View.Serving.IsManaged(s) || !o.hasOwnPools(s) {
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
