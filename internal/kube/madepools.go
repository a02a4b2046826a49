// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/ensure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// managedBy labels the BackendPools that Weir makes: all that is in such a pool when it
// is first taken is Weir's.
const managedBy = "app.kubernetes.io/managed-by"

func madeByWeir(p *v1alpha1.BackendPool) bool { return p.Labels[managedBy] == fieldOwner }

// errStillGoing asks the work queue for a little patience.
var errStillGoing = errors.New("an earlier BackendPool of its name is still going")

// makePools makes the BackendPools of a Service, now that Azure has its pools, and deletes
// those that it had before.
func (c *Cluster) makePools(ctx context.Context, s *corev1.Service, r ensure.Result) error {
	var names []string
	for _, pool := range r.Wish.Pools {
		p := c.poolFor(s, r.On, pool)
		if p.Namespace == s.Namespace && p.Spec.ServiceRef != nil {
			names = append(names, p.Name)
		}
		if err := c.makePool(ctx, p); err != nil {
			return err
		}
	}
	return c.dropPools(ctx, s, names, r.Without)
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
	suffix := "." + objectName(on.Name)
	if pool.Family == lb.IPv6 {
		suffix += ".ipv6"
	}
	if pool.Shared {
		p.Namespace, p.Name = c.balancing.Namespace, "nodes"+suffix
		p.Spec.Nodes = &v1alpha1.NodeMembers{Selector: c.nodesOf(on.Name)}
		return p
	}
	p.Namespace, p.Name = s.Namespace, s.Name+suffix
	p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: s.Name}
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "v1", Kind: "Service", Name: s.Name, UID: s.UID, Controller: new(true),
	}}
	return p
}

// objectName makes a name of Azure fit for one of Kubernetes. Where that loses something,
// a hash keeps two apart.
func objectName(name string) string {
	fit := strings.Map(func(r rune) rune {
		if r == '_' {
			return '-'
		}
		return r
	}, strings.ToLower(name))
	fit = strings.Trim(strings.ReplaceAll(fit, "..", "."), "-.")
	if fit == strings.ToLower(name) {
		return fit
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.ToLower(name)))
	return fmt.Sprintf("%s-%x", fit, h.Sum32())
}

// makePool creates a BackendPool, unless it is there. One of nodes that is there gets the
// selector that it needs now; if it has to wait for that, selectPlaced gives it.
func (c *Cluster) makePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	if is := c.snap.poolNamed(p.Namespace, p.Name); is != nil && is.DeletionTimestamp == nil && is.Spec.PoolName == p.Spec.PoolName && owned(is, p) {
		if p.Spec.Nodes == nil || !madeByWeir(is) || c.ofNodes(is) && c.allPlaced() != nil {
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
		return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), errStillGoing)
	case !madeByWeir(is):
		return nil // somebody has Weir keep this pool already, in his own words
	case is.Spec.PoolName != p.Spec.PoolName || !owned(is, p):
		if err := c.deletePool(ctx, is); err != nil {
			return err
		}
		return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), errStillGoing)
	}
	return nil
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

// dropPools deletes the BackendPools that Weir made for a Service, but for some. Of those
// whose pools are gone nothing has to be taken out.
func (c *Cluster) dropPools(ctx context.Context, s *corev1.Service, keep []string, gone []lb.PoolID) error {
	for _, p := range list[v1alpha1.BackendPool](c.snap.pools, poolsByService, key(s.Namespace, s.Name)) {
		if !madeByWeir(p) || p.DeletionTimestamp != nil || slices.Contains(keep, p.Name) || s.DeletionTimestamp != nil && !ownedBy(p, s.UID) {
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

// needed reports whether a Service has the pool of a BackendPool that Weir made for it. The
// members of one that somebody deletes stay where they are, and the next BackendPool of the
// pool takes them over. A dry run leaves them there, whatever its Service wants by now.
func (c *Cluster) needed(p *v1alpha1.BackendPool) bool {
	if !madeByWeir(p) {
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

// belongs reports whether a load balancer is the one where a Service belongs.
func (c *Cluster) belongs(s *corev1.Service, balancer string) bool {
	places := listed(s, PlaceAnnotation)
	return c.ours(s) && len(places) > 0 && strings.EqualFold(places[0], balancer)
}

// servedBy are the Services that belong on a load balancer.
func (c *Cluster) servedBy(balancer string) []*corev1.Service {
	return slices.DeleteFunc(list[corev1.Service](c.snap.services, servicesBalanced, ""), func(s *corev1.Service) bool {
		return !c.belongs(s, balancer)
	})
}

// heldPools are the pools of a Service's own that BackendPools of it keep already.
func (c *Cluster) heldPools(s *corev1.Service, req ensure.Request) []string {
	return slices.DeleteFunc(slices.Clone(req.OwnPools), func(name string) bool {
		at := lb.PoolID{LoadBalancer: req.On, Name: name}
		return !slices.ContainsFunc(c.snap.poolsAt(at.Key()), func(p *v1alpha1.BackendPool) bool {
			return p.Namespace == s.Namespace && p.Spec.ServiceRef != nil && p.Spec.ServiceRef.Name == s.Name
		})
	})
}

// missing has the load balancer of a BackendPool that Weir made compared at once: Azure does
// not have the pool.
func (c *Cluster) missing(p *v1alpha1.BackendPool) {
	for _, s := range c.servedBy(p.Spec.LoadBalancer.Name) {
		if ref := p.Spec.ServiceRef; ref != nil && (s.Namespace != p.Namespace || s.Name != ref.Name) {
			continue
		}
		name := client.ObjectKeyFromObject(s)
		if cl := c.claims.known(name); cl != nil {
			cl.poolLost.Store(&p.Spec)
			c.balanced.addName(name)
		}
	}
}

// emptied notes that a pool is gone, and with it what Weir wrote there.
func (c *Cluster) emptied(p *v1alpha1.BackendPool) {
	if e := c.statuses.known(refOf(p)); e != nil {
		e.mu.Lock()
		e.released = true
		e.mu.Unlock()
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
		if err == nil && madeByWeir(p) && p.DeletionTimestamp == nil && at.LoadBalancer.Key() == id.Key() {
			c.emptied(p)
			failed = append(failed, c.deletePool(ctx, p))
		}
	}
	return errors.Join(failed...)
}

// Fresh implements ensure.Cluster. A pool that has a BackendPool is filled by its lane, so
// that what Weir wrote stays on record; in one that has none all is Weir's when it gets one.
func (c *Cluster) Fresh(name string, on lb.LoadBalancerID, pool service.Pool) []lb.Address {
	at := lb.PoolID{LoadBalancer: on, Name: pool.Name}
	if len(c.snap.poolsAt(at.Key())) > 0 {
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
