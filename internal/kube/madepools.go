// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
)

// makePools makes the BackendPools of a Service's pools, and returns the names of those that are its
// own.
func (c *Cluster) makePools(ctx context.Context, s *corev1.Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error) {
	for _, pool := range pools {
		p := c.poolFor(s, on, pool)
		if p.Namespace == s.Namespace && p.Spec.ServiceRef != nil {
			names = append(names, p.Name)
		}
		if err := c.makePool(ctx, p); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// poolFor is the BackendPool of a pool that a Service needs.
func (c *Cluster) poolFor(s *corev1.Service, on lb.LoadBalancerID, pool service.Pool) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{managedBy: fieldOwner}},
		Spec: v1alpha1.BackendPoolSpec{
			LoadBalancer: v1alpha1.LoadBalancerReference{Name: on.Name},
			PoolName:     pool.Name, IPFamily: string(pool.Family),
		},
	}
	if pool.Shared {
		p.Namespace, p.Name = c.balancing.Namespace, madeName("nodes", on.Name, pool.Family)
		p.Spec.Nodes = &v1alpha1.NodeMembers{Selector: c.nodesOf(on.Name)}
		return p
	}
	p.Namespace, p.Name = s.Namespace, madeName(s.Name, on.Name, pool.Family)
	p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: s.Name}
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Service", Name: s.Name, UID: s.UID, Controller: new(true),
	}}
	return p
}

// madeName is the name of the BackendPool that Weir makes for a Service, or for nodes.
func madeName(of, balancer string, family lb.Family) string {
	name := of + "." + objectName(balancer)
	if family == lb.IPv6 {
		name += ".ipv6"
	}
	return name
}

// makePool creates a BackendPool, unless it is there. One of nodes that is there gets the
// selector that it needs now; if it has to wait for that, selectPlaced gives it.
func (c *Cluster) makePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	if is := c.snap.poolNamed(p.Namespace, p.Name); is != nil && is.DeletionTimestamp == nil && says(is, p) {
		c.found(is)
		if p.Spec.Nodes == nil || c.ofNodes(is) && c.allPlaced() != nil {
			return nil
		}
		return c.selectNodes(ctx, is, p.Spec.Nodes.Selector)
	}
	if p.Spec.Nodes != nil && len(c.places.several) > 0 {
		if err := c.allPlaced(); err != nil {
			return err
		}
	}
	err := c.writer.Create(ctx, p, client.FieldOwner(fieldOwner))
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), err)
		}
		return nil
	}
	is := &v1alpha1.BackendPool{}
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(p), is); err != nil {
		return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), err)
	}
	switch {
	case is.DeletionTimestamp != nil:
		return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), servicelb.ErrStillGoing)
	case says(is, p):
		return nil
	case c.recordedFor(is) != "" || c.snap.made(is): // of an earlier Service, or edited since
		if err := c.deletePool(ctx, is); err != nil {
			return err
		}
		return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), servicelb.ErrStillGoing)
	case c.fillsSame(is, p):
		return nil // somebody has Weir keep this pool already, in his own words
	}
	return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), servicelb.ErrNameTaken)
}

// fillsSame reports whether a BackendPool is for the same Service and pool as another.
func (c *Cluster) fillsSame(is, shall *v1alpha1.BackendPool) bool {
	at, err1 := c.snap.place.of(is)
	want, err2 := c.snap.place.of(shall)
	return err1 == nil && err2 == nil && at.Key() == want.Key() && is.Spec.IPFamily == shall.Spec.IPFamily &&
		is.Spec.ServiceRef != nil && shall.Spec.ServiceRef != nil && is.Spec.ServiceRef.Name == shall.Spec.ServiceRef.Name
}

// dropPools deletes the BackendPools that Weir made for a Service, but for some. Of those
// whose pools are gone nothing has to be taken out.
func (c *Cluster) dropPools(ctx context.Context, s servicelb.Service, keep []string, gone []lb.PoolID) error {
	for _, p := range list[v1alpha1.BackendPool](c.snap.pools, poolsByService, s.Name) {
		if !c.snap.made(p) || p.DeletionTimestamp != nil || slices.Contains(keep, p.Name) || s.Deleting && !ownedBy(p, types.UID(s.UID)) {
			continue
		}
		at, err := c.snap.place.of(p)
		if err == nil && slices.ContainsFunc(gone, func(id lb.PoolID) bool { return id.Key() == at.Key() }) {
			c.emptied(p)
		}
		if err := c.deletePool(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// needed reports whether a Service that Weir serves has the pool of a BackendPool. The
// members of one that somebody deletes stay where they are, and the next BackendPool of the
// pool takes them over. A dry run leaves them there, whatever its Service wants by now.
func (c *Cluster) needed(p *v1alpha1.BackendPool) bool {
	at, err := c.snap.place.of(p)
	if has, _ := c.snap.right(p, at); err != nil || has < backendpool.Own {
		return false
	}
	if ref := p.Spec.ServiceRef; ref != nil {
		s := get[corev1.Service](c.snap.services, key(p.Namespace, ref.Name))
		if s != nil && bound(s) && dryRun(s) {
			return true
		}
		return s != nil && c.belongs(s, p.Spec.LoadBalancer.Name) && s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	}
	return len(c.servedBy(p.Spec.LoadBalancer.Name)) > 0
}

// belongs reports whether a load balancer is the one where a Service belongs, which may be of
// another class and keep what it has.
func (c *Cluster) belongs(s *corev1.Service, balancer string) bool {
	places := servicelb.Names(s.Annotations[PlaceAnnotation])
	return (c.ours(s) || c.keeps(s)) && len(places) > 0 && strings.EqualFold(places[0], balancer)
}

// servedBy are the Services that belong on a load balancer.
func (c *Cluster) servedBy(balancer string) []*corev1.Service {
	return slices.DeleteFunc(list[corev1.Service](c.snap.services, servicesBalanced, ""), func(s *corev1.Service) bool {
		return !c.belongs(s, balancer)
	})
}

// heldPools are the pools of a Service's own, on these load balancers, that are on record as
// Weir's: what is in them came from this cluster. A BackendPool alone, which anybody may write,
// is no record. Of these made are the ones that it has a BackendPool of Weir's for.
func (c *Cluster) heldPools(s *corev1.Service, names []string, on []lb.LoadBalancerID) (held, made []lb.PoolID) {
	for _, balancer := range on {
		for _, name := range names {
			at := lb.PoolID{LoadBalancer: balancer, Name: name}
			all := c.snap.poolsAt(at.Key())
			its := func(p *v1alpha1.BackendPool) bool {
				return p.Namespace == s.Namespace && p.Spec.ServiceRef != nil && p.Spec.ServiceRef.Name == s.Name
			}
			if slices.ContainsFunc(all, func(p *v1alpha1.BackendPool) bool {
				taken := c.snap.taken(p)
				return its(p) && (taken || c.snap.made(p)) || taken && c.statuses.NothingForeign(p)
			}) {
				held = append(held, at)
			}
			if slices.ContainsFunc(all, func(p *v1alpha1.BackendPool) bool { return its(p) && c.snap.made(p) }) {
				made = append(made, at)
			}
		}
	}
	return held, made
}

// missing has the load balancer of a BackendPool that Weir made compared at once: Azure does
// not have the pool.
func (c *Cluster) missing(p *v1alpha1.BackendPool) {
	for _, s := range c.servedBy(p.Spec.LoadBalancer.Name) {
		if ref := p.Spec.ServiceRef; ref != nil && (s.Namespace != p.Namespace || s.Name != ref.Name) {
			continue
		}
		name := client.ObjectKeyFromObject(s)
		if c.serviceLBs.States.PoolLost(name.String(), lostPool(p)) {
			c.balanced.addName(name)
		}
	}
}

// emptied notes that a pool is gone, and with it what Weir wrote there.
func (c *Cluster) emptied(p *v1alpha1.BackendPool) {
	if e := c.statuses.Known(refOf(p)); e != nil {
		e.Emptied()
	}
}

func (c *Cluster) deletePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	err := c.writer.Delete(ctx, p, client.Preconditions{UID: &p.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), err)
	}
	return nil
}

// dropNodePools deletes the BackendPools of the nodes of a load balancer that is no more,
// unless another Service has had it made again meanwhile, or is about to.
func (c *Cluster) dropNodePools(ctx context.Context, id lb.LoadBalancerID) error {
	if len(c.servedBy(id.Name)) > 0 {
		return nil
	}
	var failed []error
	for _, p := range list[v1alpha1.BackendPool](c.snap.pools, poolsOfNodes, "") {
		at, err := c.snap.place.of(p)
		if err == nil && c.snap.made(p) && p.DeletionTimestamp == nil && at.LoadBalancer.Key() == id.Key() {
			c.emptied(p)
			failed = append(failed, c.deletePool(ctx, p))
		}
	}
	return errors.Join(failed...)
}

// Fresh implements balancer.Cluster. A pool that has a BackendPool is filled by its lane, so
// that what Weir wrote stays on record; in one that has none all is Weir's when it gets one.
func (c *Cluster) Fresh(name string, on lb.LoadBalancerID, pool service.Pool) []lb.Address {
	at := lb.PoolID{LoadBalancer: on, Name: pool.Name}
	if c.pools.Holder(at) != nil {
		return nil
	}
	s := get[corev1.Service](c.snap.services, name)
	if s == nil {
		return nil
	}
	set, err := c.snap.members(c.poolFor(s, on, pool))
	if err != nil {
		return nil
	}
	return set.Addresses
}

// Awaits implements balancer.Cluster. A BackendPool that leaves its pool as it is fills nothing.
func (c *Cluster) Awaits(name string, on lb.LoadBalancerID, pool service.Pool) bool {
	s := get[corev1.Service](c.snap.services, name)
	if s == nil {
		return false
	}
	p := c.poolFor(s, on, pool)
	if holder := c.pools.Holder(lb.PoolID{LoadBalancer: on, Name: pool.Name}); holder != nil {
		if is := c.pools.Entitlement(holder); !is.Works() || is.Removes() {
			return false
		}
		p = holder
	}
	set, err := c.snap.members(p)
	return err == nil && slices.ContainsFunc(set.Addresses, func(a lb.Address) bool { return a.AdminState != lb.Down })
}
