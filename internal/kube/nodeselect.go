// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
)

// nodesOf selects the nodes of a load balancer: all of them, unless nodes are placed.
func (c *Cluster) nodesOf(loadBalancer string) metav1.LabelSelector {
	conf, ok := service.ConfigurationOf(loadBalancer, c.places.several)
	if !ok {
		return metav1.LabelSelector{}
	}
	return metav1.LabelSelector{MatchLabels: map[string]string{PlaceLabel: placeValue(conf.Name)}}
}

// allPlaced returns a servicelb.NotPlacedError unless each node that may take traffic has its label, as
// far as the informer shows, or is known to get none. A pool that selected by the label
// before would lose the nodes that have none yet.
func (c *Cluster) allPlaced() error {
	if name, why := c.places.missing(c.eligible()); name != "" {
		return servicelb.NotPlacedError{Node: name, Why: why}
	}
	return nil
}

// selectPlaced has all BackendPools of nodes that Weir made select the nodes that were placed
// on their load balancer, once all nodes are placed.
func (c *Cluster) selectPlaced(ctx context.Context) error {
	var stale []*v1alpha1.BackendPool
	for _, p := range list[v1alpha1.BackendPool](c.snap.pools, poolsOfNodes, "") {
		if c.ofNodes(p) && !selects(p, c.nodesOf(p.Spec.LoadBalancer.Name)) {
			stale = append(stale, p)
		}
	}
	if len(stale) == 0 || c.allPlaced() != nil {
		return nil // the next node that is placed comes back here
	}
	for _, p := range stale {
		if err := c.selectNodes(ctx, p, c.nodesOf(p.Spec.LoadBalancer.Name)); err != nil {
			return err
		}
	}
	return nil
}

// ofNodes reports whether Weir made a BackendPool for the nodes of one of several load
// balancers.
func (c *Cluster) ofNodes(p *v1alpha1.BackendPool) bool {
	at, err := c.snap.place.of(p)
	_, several := service.ConfigurationOf(at.LoadBalancer.Name, c.places.several)
	return err == nil && several && c.snap.made(p)
}

func selects(p *v1alpha1.BackendPool, want metav1.LabelSelector) bool {
	return p.Spec.Nodes == nil || equality.Semantic.DeepEqual(p.Spec.Nodes.Selector, want)
}

// selectNodes gives a BackendPool this selector.
func (c *Cluster) selectNodes(ctx context.Context, p *v1alpha1.BackendPool, want metav1.LabelSelector) error {
	if p.DeletionTimestamp != nil || selects(p, want) {
		return nil
	}
	next := p.DeepCopy()
	next.Spec.Nodes.Selector = want
	err := c.writer.Patch(ctx, next, client.MergeFrom(p), client.FieldOwner(fieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("BackendPool %s: %w", key(p.Namespace, p.Name), err)
	}
	return nil
}
