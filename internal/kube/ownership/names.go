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
	if names := o.Names(s); len(names) > 0 {
		of.PoolNames = names
	}
	return of
}

// Names returns the names of a Service's own pools, IPv4 first; nil if the usual names do not
// collide.
func (o *Pools) Names(s *corev1.Service) []string {
	var names []string
	apart := false
	for _, usual := range view.ServiceOf(s).OwnPools() {
		me := o.contender(s)
		var rivals []service.Contender
		for _, r := range view.List[corev1.Service](o.View.Services, view.ServicesByPool, usual) {
			if other := o.contender(r); other.Key != me.Key && (o.needsPool(r, usual) || view.ContainsFold(other.Has, usual)) {
				rivals = append(rivals, other)
			}
		}
		name := service.PoolAmong(usual, me, rivals)
		names, apart = append(names, name), apart || name != usual
	}
	if !apart {
		return nil
	}
	return names
}

// contender returns a Service with the pools it already has.
func (o *Pools) contender(s *corev1.Service) service.Contender {
	name := view.Key(s.Namespace, s.Name)
	one := service.Contender{Key: name, Created: s.CreationTimestamp.Time}
	if now := o.Served(name, string(s.UID)); now != nil {
		for _, p := range now.Pools {
			if !p.Shared {
				one.Has = append(one.Has, p.Name)
			}
		}
	}
	for _, p := range o.View.PoolsOf(poolschedule.ServiceName{Namespace: s.Namespace, Name: s.Name}) {
		if o.Made(p) {
			one.Has = append(one.Has, p.Spec.PoolName)
		}
	}
	return one
}

// ofItsOwn is false for network interfaces: their pools are shared by all nodes.
func (o *Pools) ofItsOwn(s *corev1.Service) bool {
	return !o.Settings.Interfaces && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

func (o *Pools) needsPool(s *corev1.Service, usual string) bool {
	if !o.View.Serving.Ours(s) || !o.ofItsOwn(s) {
		return false
	}
	of := view.ServiceOf(s)
	for i, name := range of.OwnPools() {
		for _, f := range of.Families {
			if (f == lb.IPv6) == (i == 1) && strings.EqualFold(name, usual) {
				return true
			}
		}
	}
	return false
}
