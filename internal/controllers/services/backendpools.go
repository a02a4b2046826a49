// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/ownership"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// MakePools implements servicelb.Store.
func (r serviceStatusStore) MakePools(ctx context.Context, v servicelb.Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error) {
	s := r.view.ServiceObject(v)
	for _, pool := range pools {
		p := r.ownership.NewBackendPool(s, on, pool)
		if p.Namespace == s.Namespace && p.Spec.ServiceRef != nil {
			names = append(names, p.Name)
		}
		if err := r.ensurePool(ctx, p); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// ensurePool creates a BackendPool. An existing one of nodes gets the current selector; if that must wait,
// selectPlaced sets it.
func (r serviceStatusStore) ensurePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	isSame := func(pool *v1alpha1.BackendPool) bool {
		return ownership.HasSameSpec(pool, p) && r.ownership.UsesInterfaces(pool) == (p.Spec.Membership == v1alpha1.MembershipNetworkInterface)
	}
	if pool := r.view.Pool(p.Namespace, p.Name); pool != nil && pool.DeletionTimestamp == nil && isSame(pool) {
		r.recheckPool(pool)
		if p.Spec.Nodes == nil || r.isPlacedNodePool(pool) && r.CheckAllPlaced() != nil {
			return nil
		}
		return r.selectNodes(ctx, pool, p.Spec.Nodes.Selector)
	}
	if p.Spec.Nodes != nil && len(r.options.Configurations) > 0 {
		if err := r.CheckAllPlaced(); err != nil {
			return err
		}
	}
	err := r.ownership.Statuses.CreatePool(p, func() error { return r.cfg.API.Writer.Create(ctx, p, client.FieldOwner(k8s.FieldOwner)) })
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), err)
		}
		return nil
	}
	pool := &v1alpha1.BackendPool{}
	if err := r.cfg.API.Reader.Get(ctx, client.ObjectKeyFromObject(p), pool); err != nil {
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), err)
	}
	switch {
	case pool.DeletionTimestamp != nil:
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), servicelb.ErrPoolDeleting)
	case isSame(pool):
		return nil
	case r.ownership.RecordedPurpose(pool) != "" || r.ownership.IsCreatedByWeir(pool): // of an earlier Service, or edited since
		if err := r.deletePool(ctx, pool); err != nil {
			return err
		}
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), servicelb.ErrPoolDeleting)
	case r.ownership.HasSameTarget(pool, p):
		return nil // the user already has a BackendPool for this pool
	}
	return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), servicelb.ErrNameTaken)
}

// DropPools implements servicelb.Store.
func (r serviceStatusStore) DropPools(ctx context.Context, s servicelb.Service, keep []string, removed []lb.PoolID) error {
	for _, p := range cache.List[v1alpha1.BackendPool](r.view.Pools, cache.PoolsByService, s.Name) {
		if !r.ownership.IsCreatedByWeir(p) || slices.Contains(keep, p.Name) || s.Deleting && !ownership.HasOwner(p, types.UID(s.UID)) {
			continue
		}
		if e := r.ownership.Statuses.GetEntry(backendpool.RefOf(p)); e != nil {
			e.MarkDeletedByController()
		}
		if p.DeletionTimestamp != nil {
			continue
		}
		at, err := r.view.Target(p)
		if err == nil && slices.ContainsFunc(removed, func(id lb.PoolID) bool { return id.Key() == at.Key() }) {
			r.markPoolDeleted(p)
		}
		if err := r.deletePool(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// HandleMissing requests a comparison of the load balancer of a BackendPool without a pool in Azure.
func (r *Reconciler) HandleMissing(p *v1alpha1.BackendPool) {
	served := r.ownership.ServicesOn(p.Spec.LoadBalancer.Name)
	if ref := p.Spec.ServiceRef; ref != nil {
		served = slices.DeleteFunc(served, func(s *corev1.Service) bool { return s.Namespace != p.Namespace || s.Name != ref.Name })
	}
	for _, req := range recordLostPool(r.decisions.States, p, served) {
		r.queue.Add(req.NamespacedName)
	}
}

func (r serviceStatusStore) markPoolDeleted(p *v1alpha1.BackendPool) {
	if e := r.ownership.Statuses.GetEntry(backendpool.RefOf(p)); e != nil {
		e.MarkPoolDeleted()
	}
}

func (r serviceStatusStore) deletePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	err := r.cfg.API.Writer.Delete(ctx, p, client.Preconditions{UID: &p.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), err)
	}
	return nil
}

// DrainPools implements servicelb.Store. It skips pools that rules or another Service use again. Deleting
// the BackendPool removes the members before the finalizer.
func (r serviceStatusStore) DrainPools(ctx context.Context, pools []plan.DrainingPool) error {
	for _, e := range pools {
		if e.Interim == "" && len(r.ownership.ServicesOn(e.Pool.LoadBalancer.Name)) > 0 || e.Rules > 0 {
			continue
		}
		if err := r.emptyPool(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// DropInterimPools implements servicelb.Store.
func (r serviceStatusStore) DropInterimPools(ctx context.Context, removed []lb.PoolID) error {
	for _, at := range removed {
		if !cache.ContainsFold(r.options.Settings.TemporaryPools(), at.Name) {
			continue
		}
		for _, p := range r.view.PoolsAt(at.Key()) {
			if !r.ownership.IsCreatedByWeir(p) || p.DeletionTimestamp != nil {
				continue
			}
			r.markPoolDeleted(p)
			if err := r.deletePool(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptyPool deletes the BackendPool of a pool of nodes to remove its members; before that, an interim one
// selects no node. A pool filled by another controller first gets a BackendPool that takes it, and is emptied
// the next time.
func (r serviceStatusStore) emptyPool(ctx context.Context, e plan.DrainingPool) error {
	all := r.view.PoolsAt(e.Pool.Key())
	for _, p := range all {
		switch {
		case !r.ownership.IsCreatedByWeir(p) || p.DeletionTimestamp != nil:
			continue
		case e.Interim == "" && !r.ownership.Statuses.HasRecord(p):
			continue
		case e.Interim != "" && e.Interfaces > 0 && !r.ownership.Statuses.HasRecord(p): // it is about to take the pool
			continue
		case e.Interim != "":
			if err := r.selectNodes(ctx, p, cache.SelectNone()); err != nil {
				return err
			}
		}
		return r.deletePool(ctx, p)
	}
	if e.Interim != "" && e.Interfaces == 0 || slices.ContainsFunc(all, r.ownership.IsCreatedByWeir) { // it is being deleted, or is about to take the pool
		return nil
	}
	family := lb.IPv4
	if strings.EqualFold(e.Pool.Name, r.options.Settings.SharedPools()[1]) {
		family = lb.IPv6
	}
	p := r.ownership.NewBackendPool(nil, e.Pool.LoadBalancer, service.Pool{Name: e.Pool.Name, Family: family, Shared: true, Interfaces: true})
	p.Spec.Nodes.Selector = cache.SelectNone() // no node joins before all are removed
	return r.ensurePool(ctx, p)
}

// DropNodePools implements servicelb.Store. It does nothing if another Service uses the load balancer again.
func (r serviceStatusStore) DropNodePools(ctx context.Context, id lb.LoadBalancerID) error {
	if len(r.ownership.ServicesOn(id.Name)) > 0 {
		return nil
	}
	var failed []error
	for _, p := range cache.List[v1alpha1.BackendPool](r.view.Pools, cache.PoolsOfNodes, "") {
		at, err := r.view.Target(p)
		if err == nil && r.ownership.IsCreatedByWeir(p) && p.DeletionTimestamp == nil && at.LoadBalancer.Key() == id.Key() {
			r.markPoolDeleted(p)
			failed = append(failed, r.deletePool(ctx, p))
		}
	}
	return errors.Join(failed...)
}
