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
func (store serviceStatusStore) MakePools(ctx context.Context, v servicelb.Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error) {
	s := store.view.ServiceObject(v)
	for _, pool := range pools {
		p := store.ownership.NewBackendPool(s, on, pool)
		if p.Namespace == s.Namespace && p.Spec.ServiceRef != nil {
			names = append(names, p.Name)
		}
		if err := store.ensurePool(ctx, p); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// ensurePool creates a BackendPool. An existing one of nodes gets the current selector; if that must wait,
// selectPlaced sets it.
func (store serviceStatusStore) ensurePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	isSame := func(pool *v1alpha1.BackendPool) bool {
		return ownership.HasSameSpec(pool, p) && store.ownership.UsesInterfaces(pool) == (p.Spec.Membership == v1alpha1.MembershipNetworkInterface)
	}
	if pool := store.view.Pool(p.Namespace, p.Name); pool != nil && pool.DeletionTimestamp == nil && isSame(pool) {
		store.recheckPool(pool)
		if p.Spec.Nodes == nil || store.isPlacedNodePool(pool) && store.CheckAllPlaced() != nil {
			return nil
		}
		return store.selectNodes(ctx, pool, p.Spec.Nodes.Selector)
	}
	if p.Spec.Nodes != nil && len(store.options.Configurations) > 0 {
		if err := store.CheckAllPlaced(); err != nil {
			return err
		}
	}
	err := store.ownership.Statuses.CreatePool(p, func() error { return store.cfg.API.Writer.Create(ctx, p, client.FieldOwner(k8s.FieldOwner)) })
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), err)
		}
		return nil
	}
	pool := &v1alpha1.BackendPool{}
	if err := store.cfg.API.Reader.Get(ctx, client.ObjectKeyFromObject(p), pool); err != nil {
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), err)
	}
	switch {
	case pool.DeletionTimestamp != nil:
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), servicelb.ErrPoolDeleting)
	case isSame(pool):
		return nil
	case store.ownership.RecordedPurpose(pool) != "" || store.ownership.IsCreatedByWeir(pool): // of an earlier Service, or edited since
		if err := store.deletePool(ctx, pool); err != nil {
			return err
		}
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), servicelb.ErrPoolDeleting)
	case store.ownership.HasSameTarget(pool, p):
		return nil // the user already has a BackendPool for this pool
	}
	return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), servicelb.ErrNameTaken)
}

// DropPools implements servicelb.Store.
func (store serviceStatusStore) DropPools(ctx context.Context, s servicelb.Service, keep []string, removed []lb.PoolID) error {
	for _, p := range cache.List[v1alpha1.BackendPool](store.view.Pools, cache.PoolsByService, s.Name) {
		if !store.ownership.IsCreatedByWeir(p) || slices.Contains(keep, p.Name) || s.Deleting && !ownership.HasOwner(p, types.UID(s.UID)) {
			continue
		}
		if e := store.ownership.Statuses.GetEntry(backendpool.RefOf(p)); e != nil {
			e.MarkDeletedByController()
		}
		if p.DeletionTimestamp != nil {
			continue
		}
		at, err := store.view.Target(p)
		if err == nil && slices.ContainsFunc(removed, func(id lb.PoolID) bool { return id.Key() == at.Key() }) {
			store.markPoolDeleted(p)
		}
		if err := store.deletePool(ctx, p); err != nil {
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

func (store serviceStatusStore) markPoolDeleted(p *v1alpha1.BackendPool) {
	if e := store.ownership.Statuses.GetEntry(backendpool.RefOf(p)); e != nil {
		e.MarkPoolDeleted()
	}
}

func (store serviceStatusStore) deletePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	err := store.cfg.API.Writer.Delete(ctx, p, client.Preconditions{UID: &p.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), err)
	}
	return nil
}

// DrainPools implements servicelb.Store. It skips pools that rules or another Service use again. Deleting
// the BackendPool removes the members before the finalizer.
func (store serviceStatusStore) DrainPools(ctx context.Context, pools []plan.DrainingPool) error {
	for _, e := range pools {
		if e.Interim == "" && len(store.ownership.ServicesOn(e.Pool.LoadBalancer.Name)) > 0 || e.Rules > 0 {
			continue
		}
		if err := store.emptyPool(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// DropInterimPools implements servicelb.Store.
func (store serviceStatusStore) DropInterimPools(ctx context.Context, removed []lb.PoolID) error {
	for _, at := range removed {
		if !cache.ContainsFold(store.options.Settings.TemporaryPools(), at.Name) {
			continue
		}
		for _, p := range store.view.PoolsAt(at.Key()) {
			if !store.ownership.IsCreatedByWeir(p) || p.DeletionTimestamp != nil {
				continue
			}
			store.markPoolDeleted(p)
			if err := store.deletePool(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// emptyPool deletes the BackendPool of a pool of nodes to remove its members; before that, an interim one
// selects no node. A pool filled by another controller first gets a BackendPool that takes it, and is emptied
// the next time.
func (store serviceStatusStore) emptyPool(ctx context.Context, e plan.DrainingPool) error {
	pools := store.view.PoolsAt(e.Pool.Key())
	for _, p := range pools {
		switch {
		case !store.ownership.IsCreatedByWeir(p) || p.DeletionTimestamp != nil:
			continue
		case e.Interim == "" && !store.ownership.Statuses.HasRecord(p):
			continue
		case e.Interim != "" && e.Interfaces > 0 && !store.ownership.Statuses.HasRecord(p): // it is about to take the pool
			continue
		case e.Interim != "":
			if err := store.selectNodes(ctx, p, cache.SelectNone()); err != nil {
				return err
			}
		}
		return store.deletePool(ctx, p)
	}
	if e.Interim != "" && e.Interfaces == 0 || slices.ContainsFunc(pools, store.ownership.IsCreatedByWeir) { // it is being deleted, or is about to take the pool
		return nil
	}
	family := lb.IPv4
	if strings.EqualFold(e.Pool.Name, store.options.Settings.SharedPools()[1]) {
		family = lb.IPv6
	}
	p := store.ownership.NewBackendPool(nil, e.Pool.LoadBalancer, service.Pool{Name: e.Pool.Name, Family: family, Shared: true, Interfaces: true})
	p.Spec.Nodes.Selector = cache.SelectNone() // no node joins before all are removed
	return store.ensurePool(ctx, p)
}

// DropNodePools implements servicelb.Store. It does nothing if another Service uses the load balancer again.
func (store serviceStatusStore) DropNodePools(ctx context.Context, id lb.LoadBalancerID) error {
	if len(store.ownership.ServicesOn(id.Name)) > 0 {
		return nil
	}
	var failed []error
	for _, p := range cache.List[v1alpha1.BackendPool](store.view.Pools, cache.PoolsOfNodes, "") {
		at, err := store.view.Target(p)
		if err == nil && store.ownership.IsCreatedByWeir(p) && p.DeletionTimestamp == nil && at.LoadBalancer.Key() == id.Key() {
			store.markPoolDeleted(p)
			failed = append(failed, store.deletePool(ctx, p))
		}
	}
	return errors.Join(failed...)
}
