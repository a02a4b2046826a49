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
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/ownership"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
)

// MakePools implements servicelb.Ledger.
func (r serviceLedger) MakePools(ctx context.Context, v servicelb.Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error) {
	s := r.view.ServiceObject(v)
	for _, pool := range pools {
		p := r.own.For(s, on, pool)
		if p.Namespace == s.Namespace && p.Spec.ServiceRef != nil {
			names = append(names, p.Name)
		}
		if err := r.makePool(ctx, p); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// makePool creates a BackendPool. An existing one of nodes gets the current selector; if that must wait,
// selectPlaced sets it.
func (r serviceLedger) makePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	same := func(is *v1alpha1.BackendPool) bool {
		return ownership.Says(is, p) && r.own.ByMachine(is) == (p.Spec.Membership == v1alpha1.MembershipNetworkInterface)
	}
	if is := r.view.Pool(p.Namespace, p.Name); is != nil && is.DeletionTimestamp == nil && same(is) {
		r.found(is)
		if p.Spec.Nodes == nil || r.ofNodes(is) && r.AllPlaced() != nil {
			return nil
		}
		return r.selectNodes(ctx, is, p.Spec.Nodes.Selector)
	}
	if p.Spec.Nodes != nil && len(r.options.Several) > 0 {
		if err := r.AllPlaced(); err != nil {
			return err
		}
	}
	err := r.own.Statuses.Make(p, func() error { return r.cfg.API.Writer.Create(ctx, p, client.FieldOwner(apiserver.FieldOwner)) })
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("BackendPool %s: %w", view.Key(p.Namespace, p.Name), err)
		}
		return nil
	}
	is := &v1alpha1.BackendPool{}
	if err := r.cfg.API.Reader.Get(ctx, client.ObjectKeyFromObject(p), is); err != nil {
		return fmt.Errorf("BackendPool %s: %w", view.Key(p.Namespace, p.Name), err)
	}
	switch {
	case is.DeletionTimestamp != nil:
		return fmt.Errorf("BackendPool %s: %w", view.Key(p.Namespace, p.Name), servicelb.ErrStillGoing)
	case same(is):
		return nil
	case r.own.RecordedFor(is) != "" || r.own.Made(is): // of an earlier Service, or edited since
		if err := r.deletePool(ctx, is); err != nil {
			return err
		}
		return fmt.Errorf("BackendPool %s: %w", view.Key(p.Namespace, p.Name), servicelb.ErrStillGoing)
	case r.own.FillsSame(is, p):
		return nil // the user already has a BackendPool for this pool
	}
	return fmt.Errorf("BackendPool %s: %w", view.Key(p.Namespace, p.Name), servicelb.ErrNameTaken)
}

// DropPools implements servicelb.Ledger.
func (r serviceLedger) DropPools(ctx context.Context, s servicelb.Service, keep []string, gone []lb.PoolID) error {
	for _, p := range view.List[v1alpha1.BackendPool](r.view.Pools, view.PoolsByService, s.Name) {
		if !r.own.Made(p) || slices.Contains(keep, p.Name) || s.Deleting && !ownership.OwnedBy(p, types.UID(s.UID)) {
			continue
		}
		if e := r.own.Statuses.Known(backendpool.RefOf(p)); e != nil {
			e.Drop()
		}
		if p.DeletionTimestamp != nil {
			continue
		}
		at, err := r.view.Target(p)
		if err == nil && slices.ContainsFunc(gone, func(id lb.PoolID) bool { return id.Key() == at.Key() }) {
			r.emptied(p)
		}
		if err := r.deletePool(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Missing requests a comparison of the load balancer of a BackendPool without a pool in Azure.
func (r *Reconciler) Missing(p *v1alpha1.BackendPool) {
	served := r.own.ServedBy(p.Spec.LoadBalancer.Name)
	if ref := p.Spec.ServiceRef; ref != nil {
		served = slices.DeleteFunc(served, func(s *corev1.Service) bool { return s.Namespace != p.Namespace || s.Name != ref.Name })
	}
	for _, again := range lose(r.decide.States, p, served) {
		r.queue.Add(again.NamespacedName)
	}
}

func (r serviceLedger) emptied(p *v1alpha1.BackendPool) {
	if e := r.own.Statuses.Known(backendpool.RefOf(p)); e != nil {
		e.Emptied()
	}
}

func (r serviceLedger) deletePool(ctx context.Context, p *v1alpha1.BackendPool) error {
	err := r.cfg.API.Writer.Delete(ctx, p, client.Preconditions{UID: &p.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("BackendPool %s: %w", view.Key(p.Namespace, p.Name), err)
	}
	return nil
}

// EmptyPools implements servicelb.Ledger. It skips pools that rules or another Service use again. Deleting
// the BackendPool removes the members before the finalizer.
func (r serviceLedger) EmptyPools(ctx context.Context, pools []plan.Emptying) error {
	for _, e := range pools {
		if e.Interim == "" && len(r.own.ServedBy(e.Pool.LoadBalancer.Name)) > 0 || e.Rules > 0 {
			continue
		}
		if err := r.emptyPool(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// DropInterim implements servicelb.Ledger.
func (r serviceLedger) DropInterim(ctx context.Context, gone []lb.PoolID) error {
	for _, at := range gone {
		if !view.ContainsFold(r.options.Settings.InterimPools(), at.Name) {
			continue
		}
		for _, p := range r.view.PoolsAt(at.Key()) {
			if !r.own.Made(p) || p.DeletionTimestamp != nil {
				continue
			}
			r.emptied(p)
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
func (r serviceLedger) emptyPool(ctx context.Context, e plan.Emptying) error {
	all := r.view.PoolsAt(e.Pool.Key())
	for _, p := range all {
		switch {
		case !r.own.Made(p) || p.DeletionTimestamp != nil:
			continue
		case e.Interim == "" && !r.own.Statuses.Taken(p):
			continue
		case e.Interim != "" && e.Interfaces > 0 && !r.own.Statuses.Taken(p): // it is about to take the pool
			continue
		case e.Interim != "":
			if err := r.selectNodes(ctx, p, view.Nobody()); err != nil {
				return err
			}
		}
		return r.deletePool(ctx, p)
	}
	if e.Interim != "" && e.Interfaces == 0 || slices.ContainsFunc(all, r.own.Made) { // it is being deleted, or is about to take the pool
		return nil
	}
	family := lb.IPv4
	if strings.EqualFold(e.Pool.Name, r.options.Settings.SharedPools()[1]) {
		family = lb.IPv6
	}
	p := r.own.For(nil, e.Pool.LoadBalancer, service.Pool{Name: e.Pool.Name, Family: family, Shared: true, Interfaces: true})
	p.Spec.Nodes.Selector = view.Nobody() // no node joins before all are removed
	return r.makePool(ctx, p)
}

// DropNodePools implements servicelb.Ledger. It does nothing if another Service uses the load balancer again.
func (r serviceLedger) DropNodePools(ctx context.Context, id lb.LoadBalancerID) error {
	if len(r.own.ServedBy(id.Name)) > 0 {
		return nil
	}
	var failed []error
	for _, p := range view.List[v1alpha1.BackendPool](r.view.Pools, view.PoolsOfNodes, "") {
		at, err := r.view.Target(p)
		if err == nil && r.own.Made(p) && p.DeletionTimestamp == nil && at.LoadBalancer.Key() == id.Key() {
			r.emptied(p)
			failed = append(failed, r.deletePool(ctx, p))
		}
	}
	return errors.Join(failed...)
}
