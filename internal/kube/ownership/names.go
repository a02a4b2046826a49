// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/service"
)

func (o *Pools) serviceWithPools(s *corev1.Service) service.Service {
	of := view.ServiceOf(s)
	if names := o.PoolNames(s); len(names) > 0 {
		of.PoolNames = names
	}
	return of
}

// PoolNames returns the names of a Service's own pools, IPv4 first; nil if the usual names do not
// collide.
func (o *Pools) PoolNames(s *corev1.Service) []string {
	var names []string
	apart := false
	for _, usual := range view.ServiceOf(s).DedicatedPools() {
		me := o.poolUser(s)
		var rivals []service.PoolUser
		for _, r := range view.List[corev1.Service](o.View.Services, view.ServicesByPool, usual) {
			if other := o.poolUser(r); other.Key != me.Key && (o.needsPool(r, usual) || view.ContainsFold(other.PoolNames, usual)) {
				rivals = append(rivals, other)
			}
		}
		name := service.ChoosePoolName(usual, me, rivals)
		names, apart = append(names, name), apart || name != usual
	}
	if !apart {
		return nil
	}
	return names
}

// poolUser returns a Service with the pools it already has.
func (o *Pools) poolUser(s *corev1.Service) service.PoolUser {
	name := view.Key(s.Namespace, s.Name)
	one := service.PoolUser{Key: name, Created: s.CreationTimestamp.Time}
	if now := o.ObservedState(name, string(s.UID)); now != nil {
		for _, p := range now.Pools {
			if !p.Shared {
				one.PoolNames = append(one.PoolNames, p.Name)
			}
		}
	}
	for _, p := range o.View.PoolsOf(poolschedule.ServiceName{Namespace: s.Namespace, Name: s.Name}) {
		if o.IsManaged(p) {
			one.PoolNames = append(one.PoolNames, p.Spec.PoolName)
		}
	}
	return one
}

// hasOwnPools is false for network interfaces: their pools are shared by all nodes.
func (o *Pools) hasOwnPools(s *corev1.Service) bool {
	return !o.Settings.Interfaces && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func (o *Pools) needsPool(s *corev1.Service, usual string) bool {
	if !o.View.Serving.IsManaged(s) || !o.hasOwnPools(s) {
		return false
	}
	of := view.ServiceOf(s)
	for i, name := range of.DedicatedPools() {
		for _, f := range of.Families {
			if (f == lb.IPv6) == (i == 1) && strings.EqualFold(name, usual) {
				return true
			}
		}
	}
	return false
}
