// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// NewBackendPool returns the BackendPool for a pool that a Service needs.
func (ps *Pools) NewBackendPool(s *corev1.Service, on lb.LoadBalancerID, pool service.Pool) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{metadata.ManagedBy: k8s.FieldOwner}},
		Spec: v1alpha1.BackendPoolSpec{
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: on.Name},
			PoolName:     pool.Name, IPFamily: string(pool.Family),
		},
	}
	if pool.Interfaces {
		p.Spec.Membership = v1alpha1.MembershipNetworkInterface
	}
	if pool.Shared {
		p.Namespace, p.Name = ps.Namespace, cache.PoolObjectName("nodes", on.Name, pool.Family)
		if cache.ContainsFold(ps.Settings.TemporaryPools(), pool.Name) {
			p.Name = cache.PoolObjectName("interim", on.Name, pool.Family)
		}
		p.Spec.Nodes = &v1alpha1.NodeMembers{Selector: cache.NodesOn(on.Name, ps.Configurations)}
		return p
	}
	p.Namespace, p.Name = s.Namespace, cache.PoolObjectName(s.Name, on.Name, pool.Family)
	p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: s.Name}
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Service", Name: s.Name, UID: s.UID, Controller: new(true),
	}}
	return p
}

// HasSameTarget reports whether two BackendPools have the same Service and pool.
func (ps *Pools) HasSameTarget(pool, desired *v1alpha1.BackendPool) bool {
	at, err1 := ps.View.Target(pool)
	want, err2 := ps.View.Target(desired)
	return err1 == nil && err2 == nil && at.Key() == want.Key() && pool.Spec.IPFamily == desired.Spec.IPFamily &&
		pool.Spec.ServiceRef != nil && desired.Spec.ServiceRef != nil && pool.Spec.ServiceRef.Name == desired.Spec.ServiceRef.Name
}

// IsInUse reports whether a Service still uses the pool. Its members then remain for the next
// BackendPool.
func (ps *Pools) IsInUse(p *v1alpha1.BackendPool) bool {
	at, err := ps.View.Target(p)
	if permission, _ := ps.Permission(p, at); err != nil || permission < backendpool.Managed {
		return false
	}
	if ref := p.Spec.ServiceRef; ref != nil {
		s := cache.Get[corev1.Service](ps.View.Services, metadata.Key(p.Namespace, ref.Name))
		if s != nil && cache.HasFinalizer(s) && cache.DryRun(s) {
			return true
		}
		return s != nil && ps.IsOnLoadBalancer(s, p.Spec.LoadBalancer.Name) && ps.hasOwnPools(s)
	}
	return len(ps.ServicesOn(p.Spec.LoadBalancer.Name)) > 0 && !cache.SelectsNoNodes(p)
}

// IsOnLoadBalancer reports whether a Service is on this load balancer.
func (ps *Pools) IsOnLoadBalancer(s *corev1.Service, balancer string) bool {
	places := servicelb.ParseNames(s.Annotations[metadata.PlaceAnnotation])
	return (ps.View.Serving.IsManaged(s) || ps.View.Serving.RetainsResources(s)) && len(places) > 0 && strings.EqualFold(places[0], balancer)
}

// ServicesOn returns the Services on a load balancer.
func (ps *Pools) ServicesOn(balancer string) []*corev1.Service {
	return slices.DeleteFunc(cache.List[corev1.Service](ps.View.Services, cache.ServicesBalanced, ""), func(s *corev1.Service) bool {
		return !ps.IsOnLoadBalancer(s, balancer)
	})
}

// RecordedPools returns a Service's own pools with members recorded as this cluster's; a BackendPool alone,
// which any tenant may create, proves nothing. created are those with a BackendPool of Weir.
func (ps *Pools) RecordedPools(s *corev1.Service, names []string, on []lb.LoadBalancerID) (recorded, created []lb.PoolID) {
	for _, balancer := range on {
		for _, name := range names {
			at := lb.PoolID{LoadBalancer: balancer, Name: name}
			pools := ps.View.PoolsAt(at.Key())
			belongs := func(p *v1alpha1.BackendPool) bool {
				return p.Namespace == s.Namespace && p.Spec.ServiceRef != nil && p.Spec.ServiceRef.Name == s.Name
			}
			if slices.ContainsFunc(pools, func(p *v1alpha1.BackendPool) bool {
				taken := ps.Statuses.HasRecord(p)
				return belongs(p) && (taken || ps.IsCreatedByWeir(p)) || taken && ps.Statuses.HasNoForeign(p)
			}) {
				recorded = append(recorded, at)
			}
			if slices.ContainsFunc(pools, func(p *v1alpha1.BackendPool) bool { return belongs(p) && ps.IsCreatedByWeir(p) }) {
				created = append(created, at)
			}
		}
	}
	return recorded, created
}
