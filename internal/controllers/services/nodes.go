// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// CheckAllPlaced returns a servicelb.NotPlacedError unless the cache shows the label of each eligible node that
// gets one. A selector set earlier would exclude unlabeled nodes.
func (r *Reconciler) CheckAllPlaced() error {
	if name, reason := r.cfg.FirstUnplaced(r.view.EligibleNodes()); name != "" {
		return servicelb.NotPlacedError{Node: name, Reason: reason}
	}
	return nil
}

// UpdateNodeSelectors sets the node selector of the BackendPools that Weir created, once all nodes are placed. It
// skips load balancers without Services, because they will be deleted.
func (r *Reconciler) UpdateNodeSelectors(ctx context.Context) error {
	var stale []*v1alpha1.BackendPool
	for _, p := range cache.List[v1alpha1.BackendPool](r.view.Pools, cache.PoolsOfNodes, "") {
		if (serviceStatusStore{r}).isPlacedNodePool(p) && !cache.SelectsNoNodes(p) && len(r.ownership.ServicesOn(p.Spec.LoadBalancer.Name)) > 0 && !cache.HasSelector(p, cache.NodesOn(p.Spec.LoadBalancer.Name, r.options.Configurations)) {
			stale = append(stale, p)
		}
	}
	if len(stale) == 0 || r.CheckAllPlaced() != nil {
		return nil // the next placed node retries this
	}
	for _, p := range stale {
		if err := (serviceStatusStore{r}).selectNodes(ctx, p, cache.NodesOn(p.Spec.LoadBalancer.Name, r.options.Configurations)); err != nil {
			return err
		}
	}
	return nil
}

// isPlacedNodePool reports whether Weir created the BackendPool for the nodes of one of several load balancers.
func (store serviceStatusStore) isPlacedNodePool(p *v1alpha1.BackendPool) bool {
	at, err := store.view.Target(p)
	_, several := service.ConfigurationOf(at.LoadBalancer.Name, store.options.Configurations)
	return err == nil && several && store.ownership.IsCreatedByWeir(p)
}

func (store serviceStatusStore) selectNodes(ctx context.Context, p *v1alpha1.BackendPool, want metav1.LabelSelector) error {
	if p.DeletionTimestamp != nil || cache.HasSelector(p, want) {
		return nil
	}
	next := p.DeepCopy()
	next.Spec.Nodes.Selector = want
	err := store.cfg.API.Writer.Patch(ctx, next, client.MergeFrom(p), client.FieldOwner(k8s.FieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("BackendPool %s: %w", metadata.Key(p.Namespace, p.Name), err)
	}
	return nil
}
