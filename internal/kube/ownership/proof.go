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
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/service"
)

// Says reports whether two BackendPools have the same spec. An unset membership matches Weir's
// choice.
func Says(is, desired *v1alpha1.BackendPool) bool {
	a, b := is.Spec, desired.Spec
	return is.Namespace == desired.Namespace && is.Name == desired.Name && owned(is, desired) &&
		strings.EqualFold(a.LoadBalancer.Name, b.LoadBalancer.Name) && strings.EqualFold(a.PoolName, b.PoolName) && a.IPFamily == b.IPFamily &&
		sameMembership(a.Membership, b.Membership) && (a.Nodes == nil) == (b.Nodes == nil) && ptr.Deref(a.ServiceRef, v1alpha1.ServiceReference{}) == ptr.Deref(b.ServiceRef, v1alpha1.ServiceReference{})
}

func sameMembership(is, desired string) bool {
	return is == "" || is == v1alpha1.MembershipAuto || is == cmp.Or(desired, v1alpha1.MembershipAddress)
}

func owned(is, desired *v1alpha1.BackendPool) bool {
	if len(desired.OwnerReferences) == 0 {
		return true
	}
	return OwnedBy(is, desired.OwnerReferences[0].UID)
}

// OwnedBy reports whether p has an owner reference with this UID.
func OwnedBy(p *v1alpha1.BackendPool, uid types.UID) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == uid })
}

// Made reports whether Weir provably created a BackendPool: by its status, which only Weir writes,
// or because it equals what Weir would create.
func (o *Pools) Made(p *v1alpha1.BackendPool) bool {
	at, err := o.View.Target(p)
	if err != nil || !o.Owns(at.LoadBalancer) {
		return false
	}
	record := o.RecordedFor(p)
	if p.Spec.Nodes != nil {
		return p.Namespace == o.Namespace && (record == v1alpha1.MadeForNodes || o.ofAllNodes(p, at))
	}
	if record != "" { // serviceRef can be edited
		return p.Spec.ServiceRef != nil && p.Name == view.PoolObjectName(p.Spec.ServiceRef.Name, at.LoadBalancer.Name, lb.Family(p.Spec.IPFamily))
	}
	s := o.servedService(p)
	return s != nil && o.fills(s, p, at) && Says(p, o.For(s, at.LoadBalancer, service.Pool{Name: at.Name, Family: lb.Family(p.Spec.IPFamily)}))
}

// RecordedFor returns the recorded value of MadeFor.
func (o *Pools) RecordedFor(p *v1alpha1.BackendPool) string { return o.Statuses.MadeFor(p) }

// LeftToOthers reports whether Weir left the pool because of foreign members.
func (o *Pools) LeftToOthers(pool lb.PoolKey) bool {
	return o.Balancers != nil && o.Balancers.LeftToOthers(pool)
}

// MadeFor returns the value to record; empty if Weir did not create the BackendPool.
func (o *Pools) MadeFor(p *v1alpha1.BackendPool) string {
	if !o.Made(p) {
		return ""
	}
	if p.Spec.ServiceRef == nil {
		return v1alpha1.MadeForNodes
	}
	s := o.servedService(p)
	if s == nil { // just deleted
		return ""
	}
	return string(s.UID)
}

// Owns reports whether Weir manages a load balancer for Services.
func (o *Pools) Owns(id lb.LoadBalancerID) bool {
	return o.Balancers != nil && slices.ContainsFunc(o.Balancers.Names(), func(name string) bool {
		return strings.EqualFold(name, id.Name) && o.Balancers.ID(name).Key() == id.Key() // compare names first: keys allocate
	})
}

func (o *Pools) ofAllNodes(p *v1alpha1.BackendPool, at lb.PoolID) bool {
	families := []lb.Family{lb.IPv4, lb.IPv6}
	for i, name := range o.Settings.NodePools() {
		pool := service.Pool{Name: name, Family: families[i%len(families)], Shared: true, Interfaces: o.Settings.Interfaces}
		for range 2 {
			if Says(p, o.For(nil, at.LoadBalancer, pool)) {
				return true
			}
			pool.Interfaces = pool.Interfaces != o.Settings.Converts // from before a conversion
		}
	}
	return false
}

// servedService returns the Service of a BackendPool if Weir manages it.
func (o *Pools) servedService(p *v1alpha1.BackendPool) *corev1.Service {
	if p.Spec.ServiceRef == nil {
		return nil
	}
	s := o.View.Service(poolschedule.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name})
	if s == nil || !o.View.Serving.Ours(s) && !o.View.Serving.Held(s) {
		return nil
	}
	return s
}

// fills reports whether Azure confirmed a pool as the Service's own. A BackendPool created before
// cannot take over an existing pool.
func (o *Pools) fills(s *corev1.Service, p *v1alpha1.BackendPool, at lb.PoolID) bool {
	if !view.ContainsFold(view.OwnPools(s), at.Name) {
		return false
	}
	return o.Served(view.Key(s.Namespace, s.Name), string(s.UID)).Has(at) || o.Statuses.Taken(p)
}
