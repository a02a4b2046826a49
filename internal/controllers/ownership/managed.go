// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/service"
)

// HasSameSpec reports whether two BackendPools have the same spec. An unset membership matches Weir's
// choice.
func HasSameSpec(pool, desired *v1alpha1.BackendPool) bool {
	a, b := pool.Spec, desired.Spec
	return pool.Namespace == desired.Namespace && pool.Name == desired.Name && hasSameOwner(pool, desired) &&
		strings.EqualFold(a.LoadBalancer.Name, b.LoadBalancer.Name) && strings.EqualFold(a.PoolName, b.PoolName) && a.IPFamily == b.IPFamily &&
		sameMembership(a.Membership, b.Membership) && (a.Nodes == nil) == (b.Nodes == nil) && ptr.Deref(a.ServiceRef, v1alpha1.ServiceReference{}) == ptr.Deref(b.ServiceRef, v1alpha1.ServiceReference{})
}

func sameMembership(current, desired string) bool {
	return current == "" || current == v1alpha1.MembershipAuto || current == cmp.Or(desired, v1alpha1.MembershipAddress)
}

func hasSameOwner(pool, desired *v1alpha1.BackendPool) bool {
	if len(desired.OwnerReferences) == 0 {
		return true
	}
	return HasOwner(pool, desired.OwnerReferences[0].UID)
}

// HasOwner reports whether p has an owner reference with this UID.
func HasOwner(p *v1alpha1.BackendPool, uid types.UID) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == uid })
}

// IsCreatedByWeir reports whether Weir provably created a BackendPool: by its status, which only Weir writes,
// or because it equals what Weir would create.
func (ps *Pools) IsCreatedByWeir(p *v1alpha1.BackendPool) bool {
	at, err := ps.View.Target(p)
	if err != nil || !ps.ManagesLoadBalancer(at.LoadBalancer) {
		return false
	}
	record := ps.RecordedPurpose(p)
	if p.Spec.Nodes != nil {
		return p.Namespace == ps.Namespace && (record == v1alpha1.MadeForNodes || ps.isNodePool(p, at))
	}
	if record != "" { // serviceRef can be edited
		return p.Spec.ServiceRef != nil && p.Name == cache.PoolObjectName(p.Spec.ServiceRef.Name, at.LoadBalancer.Name, lb.Family(p.Spec.IPFamily))
	}
	s := ps.managedService(p)
	return s != nil && ps.isServicePool(s, p, at) && HasSameSpec(p, ps.NewBackendPool(s, at.LoadBalancer, service.Pool{Name: at.Name, Family: lb.Family(p.Spec.IPFamily)}))
}

// RecordedPurpose returns the recorded value of ManagedFor.
func (ps *Pools) RecordedPurpose(p *v1alpha1.BackendPool) string { return ps.Statuses.ManagedFor(p) }

// IsLeftForeign reports whether Weir left the pool because of foreign members.
func (ps *Pools) IsLeftForeign(pool lb.PoolKey) bool {
	return ps.LoadBalancers != nil && ps.LoadBalancers.LeftToOthers(pool)
}

// ManagedFor returns the value to record; empty if Weir did not create the BackendPool.
func (ps *Pools) ManagedFor(p *v1alpha1.BackendPool) string {
	if !ps.IsCreatedByWeir(p) {
		return ""
	}
	if p.Spec.ServiceRef == nil {
		return v1alpha1.MadeForNodes
	}
	s := ps.managedService(p)
	if s == nil { // just deleted
		return ""
	}
	return string(s.UID)
}

// ManagesLoadBalancer reports whether Weir manages a load balancer for Services.
func (ps *Pools) ManagesLoadBalancer(id lb.LoadBalancerID) bool {
	return ps.LoadBalancers != nil && slices.ContainsFunc(ps.LoadBalancers.Names(), func(name string) bool {
		return strings.EqualFold(name, id.Name) && ps.LoadBalancers.ID(name).Key() == id.Key() // compare names first: keys allocate
	})
}

func (ps *Pools) isNodePool(p *v1alpha1.BackendPool, at lb.PoolID) bool {
	families := []lb.Family{lb.IPv4, lb.IPv6}
	for i, name := range ps.Settings.NodePools() {
		pool := service.Pool{Name: name, Family: families[i%len(families)], Shared: true, Interfaces: ps.Settings.Interfaces}
		for range 2 { // either kind: from before a conversion, or as Weir found it
			if HasSameSpec(p, ps.NewBackendPool(nil, at.LoadBalancer, pool)) {
				return true
			}
			pool.Interfaces = !pool.Interfaces
		}
	}
	return false
}

// managedService returns the Service of a BackendPool if Weir manages it.
func (ps *Pools) managedService(p *v1alpha1.BackendPool) *corev1.Service {
	if p.Spec.ServiceRef == nil {
		return nil
	}
	s := ps.View.Service(schedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name})
	if s == nil || !ps.View.Serving.IsManaged(s) && !ps.View.Serving.NeedsCleanup(s) {
		return nil
	}
	return s
}

// isServicePool reports whether Azure confirmed a pool as the Service's own. A BackendPool created before
// cannot take over an existing pool.
func (ps *Pools) isServicePool(s *corev1.Service, p *v1alpha1.BackendPool, at lb.PoolID) bool {
	if !cache.ContainsFold(cache.DedicatedPools(s), at.Name) {
		return false
	}
	return ps.ObservedState(metadata.Key(s.Namespace, s.Name), string(s.UID)).HasPool(at) || ps.Statuses.HasRecord(p)
}
