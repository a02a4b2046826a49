// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/service"
)

// wishOf converts a Service, with the names of the pools that it has for itself.
func (c *Cluster) wishOf(s *corev1.Service) service.Service {
	of := wishing(s)
	if names := c.poolNames(s); len(names) > 0 {
		of.PoolNames = names
	}
	return of
}

// poolNames are the names of the pools that a Service has for itself, that of IPv4 first;
// none if they are the usual ones, since no other Service's names make the same.
func (c *Cluster) poolNames(s *corev1.Service) []string {
	var names []string
	apart := false
	for _, usual := range wishing(s).OwnPools() {
		me := c.contender(s)
		var rivals []service.Contender
		for _, r := range list[corev1.Service](c.snap.services, servicesByPool, usual) {
			if other := c.contender(r); other.Key != me.Key && (c.needsPool(r, usual) || containsFold(other.Has, usual)) {
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

// contender is a Service with the names of its own pools, as its BackendPools and what this
// process has seen in Azure show.
func (c *Cluster) contender(s *corev1.Service) service.Contender {
	name := key(s.Namespace, s.Name)
	one := service.Contender{Key: name, Created: s.CreationTimestamp.Time}
	if now := c.serviceLBs.States.Served(name, string(s.UID)); now != nil {
		for _, p := range now.Pools {
			if !p.Shared {
				one.Has = append(one.Has, p.Name)
			}
		}
	}
	for _, p := range c.snap.poolsOf(poolupdate.ServiceName{Namespace: s.Namespace, Name: s.Name}) {
		if c.snap.made(p) {
			one.Has = append(one.Has, p.Spec.PoolName)
		}
	}
	return one
}

// needsPool reports whether a Service needs a pool of this name for itself, as long as no
// other does.
func (c *Cluster) needsPool(s *corev1.Service, usual string) bool {
	if !c.ours(s) || s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return false
	}
	of := wishing(s)
	for i, name := range of.OwnPools() {
		for _, f := range of.Families {
			if (f == lb.IPv6) == (i == 1) && strings.EqualFold(name, usual) {
				return true
			}
		}
	}
	return false
}

// ownPools are the names of the pools that a Service may have for itself.
func (c *Cluster) ownPools(s *corev1.Service) []string {
	names := wishing(s).OwnPools()
	for _, usual := range names[:2:2] {
		names = append(names, service.HashedPool(usual, key(s.Namespace, s.Name)))
	}
	return names
}
