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

// Says reports whether a BackendPool says what another does, to the letter. One that leaves open how
// nodes become members means what Weir would say.
func Says(is, shall *v1alpha1.BackendPool) bool {
	a, b := is.Spec, shall.Spec
	return is.Namespace == shall.Namespace && is.Name == shall.Name && owned(is, shall) &&
		strings.EqualFold(a.LoadBalancer.Name, b.LoadBalancer.Name) && strings.EqualFold(a.PoolName, b.PoolName) && a.IPFamily == b.IPFamily &&
		sameMembership(a.Membership, b.Membership) && (a.Nodes == nil) == (b.Nodes == nil) && ptr.Deref(a.ServiceRef, v1alpha1.ServiceReference{}) == ptr.Deref(b.ServiceRef, v1alpha1.ServiceReference{})
}

func sameMembership(is, shall string) bool {
	return is == "" || is == v1alpha1.MembershipAuto || is == cmp.Or(shall, v1alpha1.MembershipAddress)
}

// owned reports whether a BackendPool is that of the same Service, not of an earlier one.
func owned(is, shall *v1alpha1.BackendPool) bool {
	if len(shall.OwnerReferences) == 0 {
		return true
	}
	return OwnedBy(is, shall.OwnerReferences[0].UID)
}

// OwnedBy reports whether one of the owner references of a BackendPool is of this UID.
func OwnedBy(p *v1alpha1.BackendPool, uid types.UID) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == uid })
}

// Made reports whether a BackendPool is provably one that Weir made: its status says so,
// which nobody else writes, or it says what Weir would make now, to the letter.
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

// RecordedFor is for whom Weir made a BackendPool, as recorded; empty if it did not.
func (o *Pools) RecordedFor(p *v1alpha1.BackendPool) string { return o.Statuses.MadeFor(p) }

// LeftToOthers reports whether Weir made a pool, and left it to the addresses of others.
func (o *Pools) LeftToOthers(pool lb.PoolKey) bool {
	return o.Balancers != nil && o.Balancers.LeftToOthers(pool)
}

// MadeFor is for whom Weir made a BackendPool, to be recorded; empty if it did not.
func (o *Pools) MadeFor(p *v1alpha1.BackendPool) string {
	if !o.Made(p) {
		return ""
	}
	if p.Spec.ServiceRef == nil {
		return v1alpha1.MadeForNodes
	}
	s := o.servedService(p)
	if s == nil { // it went this moment
		return ""
	}
	return string(s.UID)
}

// Owns reports whether a load balancer is one of those that Weir makes for Services.
func (o *Pools) Owns(id lb.LoadBalancerID) bool {
	return o.Balancers != nil && slices.ContainsFunc(o.Balancers.Names(), func(name string) bool {
		return strings.EqualFold(name, id.Name) && o.Balancers.ID(name).Key() == id.Key() // keys are made anew each time
	})
}

// ofAllNodes reports whether a BackendPool in Weir's own namespace says what that of all
// nodes would.
func (o *Pools) ofAllNodes(p *v1alpha1.BackendPool, at lb.PoolID) bool {
	families := []lb.Family{lb.IPv4, lb.IPv6}
	for i, name := range o.Settings.NodePools() {
		pool := service.Pool{Name: name, Family: families[i%len(families)], Shared: true, Interfaces: o.Settings.Interfaces}
		for range 2 {
			if Says(p, o.For(nil, at.LoadBalancer, pool)) {
				return true
			}
			pool.Interfaces = pool.Interfaces != o.Settings.Converts // it may have been the other kind, or is to be emptied of that
		}
	}
	return false
}

// servedService is the Service of a BackendPool, if Weir serves it; else nil.
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

// fills reports whether a pool is one that a Service has for itself, and which Azure took for
// it. What somebody writes before Weir has asked Azure takes no pool that was there already.
func (o *Pools) fills(s *corev1.Service, p *v1alpha1.BackendPool, at lb.PoolID) bool {
	if !view.ContainsFold(view.OwnPools(s), at.Name) {
		return false
	}
	return o.Served(view.Key(s.Namespace, s.Name), string(s.UID)).Has(at) || o.Statuses.Taken(p)
}
