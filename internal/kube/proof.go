// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/service"
)

// managedBy labels the BackendPools that Weir makes, for people: whoever may write a
// BackendPool may write it, so nothing is decided by it.
const managedBy = "app.kubernetes.io/managed-by"

// says reports whether a BackendPool says what another does, to the letter.
func says(is, shall *v1alpha1.BackendPool) bool {
	a, b := is.Spec, shall.Spec
	return is.Namespace == shall.Namespace && is.Name == shall.Name && owned(is, shall) &&
		strings.EqualFold(a.LoadBalancer.Name, b.LoadBalancer.Name) && strings.EqualFold(a.PoolName, b.PoolName) && a.IPFamily == b.IPFamily &&
		(a.Nodes == nil) == (b.Nodes == nil) && orElse(a.ServiceRef, v1alpha1.ServiceReference{}) == orElse(b.ServiceRef, v1alpha1.ServiceReference{})
}

// owned reports whether a BackendPool is that of the same Service, not of an earlier one.
func owned(is, shall *v1alpha1.BackendPool) bool {
	if len(shall.OwnerReferences) == 0 {
		return true
	}
	return ownedBy(is, shall.OwnerReferences[0].UID)
}

func ownedBy(p *v1alpha1.BackendPool, uid types.UID) bool {
	return slices.ContainsFunc(p.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == uid })
}

// made reports whether a BackendPool is provably one that Weir made: its status says so,
// which nobody else writes, or it says what Weir would make now, to the letter.
func (c *Cluster) made(p *v1alpha1.BackendPool) bool {
	at, err := c.snap.place.of(p)
	if err != nil || !c.owns(at.LoadBalancer) {
		return false
	}
	record := c.recordedFor(p)
	if p.Spec.Nodes != nil {
		return p.Namespace == c.balancing.Namespace && (record == v1alpha1.MadeForNodes || c.ofAllNodes(p, at))
	}
	if record != "" { // serviceRef can be edited
		return p.Spec.ServiceRef != nil && p.Name == madeName(p.Spec.ServiceRef.Name, at.LoadBalancer.Name, lb.Family(p.Spec.IPFamily))
	}
	s := c.servedService(p)
	return s != nil && c.fills(s, p, at) && says(p, c.poolFor(s, at.LoadBalancer, service.Pool{Name: at.Name, Family: lb.Family(p.Spec.IPFamily)}))
}

// recordedFor is for whom Weir made a BackendPool, as recorded; empty if it did not.
func (c *Cluster) recordedFor(p *v1alpha1.BackendPool) string { return c.statuses.MadeFor(p) }

// madeFor is for whom Weir made a BackendPool, to be recorded; empty if it did not.
func (c *Cluster) madeFor(p *v1alpha1.BackendPool) string {
	if !c.snap.made(p) {
		return ""
	}
	if p.Spec.ServiceRef == nil {
		return v1alpha1.MadeForNodes
	}
	s := c.servedService(p)
	if s == nil { // it went this moment
		return ""
	}
	return string(s.UID)
}

// owns reports whether a load balancer is one of those that Weir makes for Services.
func (c *Cluster) owns(id lb.LoadBalancerID) bool {
	return c.balancers != nil && slices.ContainsFunc(c.balancers.Names(), func(name string) bool {
		return c.balancers.ID(name).Key() == id.Key()
	})
}

// ofAllNodes reports whether a BackendPool in Weir's own namespace says what that of all
// nodes would.
func (c *Cluster) ofAllNodes(p *v1alpha1.BackendPool, at lb.PoolID) bool {
	families := []lb.Family{lb.IPv4, lb.IPv6}
	for i, name := range c.balancing.Settings.SharedPools() {
		if says(p, c.poolFor(nil, at.LoadBalancer, service.Pool{Name: name, Family: families[i], Shared: true})) {
			return true
		}
	}
	return false
}

// servedService is the Service of a BackendPool, if Weir serves it; else nil.
func (c *Cluster) servedService(p *v1alpha1.BackendPool) *corev1.Service {
	if p.Spec.ServiceRef == nil {
		return nil
	}
	s := c.snap.service(poolupdate.ServiceName{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name})
	if s == nil || !c.ours(s) && !c.held(s) {
		return nil
	}
	return s
}

// fills reports whether a pool is one that a Service has for itself, and which Azure took for
// it. What somebody writes before Weir has asked Azure takes no pool that was there already.
func (c *Cluster) fills(s *corev1.Service, p *v1alpha1.BackendPool, at lb.PoolID) bool {
	if !containsFold(c.ownPools(s), at.Name) {
		return false
	}
	return c.serviceLBs.States.Served(key(s.Namespace, s.Name), string(s.UID)).Has(at) || c.snap.taken(p)
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}
