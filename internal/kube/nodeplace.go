// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/words"
)

// EventNotPlaced is the reason of the event on a node that is on no load balancer yet.
const EventNotPlaced = "NotPlacedOnLoadBalancer"

// providerPatience is how long a new node may be without a providerID before that is worth
// an event.
const providerPatience = time.Minute

func (c *Cluster) setupPlacing() error {
	return builder.ControllerManagedBy(c.mgr).Named("nodeplace").
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(placeChanged())).
		WatchesRawSource(c.placing.Source()).
		WithOptions(controller.Options{RateLimiter: c.opts.Requeue.RateLimiter(), MaxConcurrentReconciles: 4}).
		Complete(c.placing.Reconciler(c.reconcilePlace))
}

// placeChanged drops updates that say nothing about where a node belongs.
func placeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Node)
		after, ok2 := u.ObjectNew.(*corev1.Node)
		return ok1 && ok2 && (before.UID != after.UID || before.Spec.ProviderID != after.Spec.ProviderID ||
			!maps.Equal(before.Labels, after.Labels))
	}}
}

// reconcilePlace labels a node with the load balancer where it belongs.
func (c *Cluster) reconcilePlace(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	n := view.Get[corev1.Node](c.snap.Nodes, req.Name)
	if n == nil || c.snap.Excluded(n) { // what an excluded node has as a label, it keeps
		c.places.forget(req.Name)
		return workqueue.Result(ctx, c.services.SelectPlaced(ctx), 0)
	}
	now := time.Now()
	wait, err := c.placeNode(ctx, n, now)
	if err == nil && wait == 0 {
		c.places.tell(n, "", "")
		return workqueue.Result(ctx, c.services.SelectPlaced(ctx), 0)
	}
	if err != nil && !errors.Is(err, backendpool.ErrGone) {
		c.complainOfNode(n, err)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.RetryAt.After(now) {
		c.places.rest(f.RetryAt)
		wait, err = f.RetryAt.Sub(now), nil
	}
	return workqueue.Result(ctx, err, wait)
}

// placeNode finds out where a node belongs, and labels it. If there is something to wait
// for, it returns how long.
func (c *Cluster) placeNode(ctx context.Context, n *corev1.Node, now time.Time) (wait time.Duration, err error) {
	if !c.places.knows(n) {
		set := ""
		if c.places.bySets() {
			if n.Spec.ProviderID == "" {
				return c.awaitProviderID(n, now), nil
			}
			if set, err = c.vmSet(ctx, n, now); err != nil {
				return 0, err
			}
		}
		c.places.learn(n, set)
	}
	return 0, c.label(ctx, n, now)
}

// awaitProviderID returns how long a node is given until the cloud provider has told which
// machine it is.
func (c *Cluster) awaitProviderID(n *corev1.Node, now time.Time) time.Duration {
	if age := now.Sub(n.CreationTimestamp.Time); age < providerPatience {
		return providerPatience - age
	}
	c.notPlaced(n, "NoProviderID", "spec.providerID is empty, and tells neither scale set nor machine: the cloud provider sets it")
	return providerPatience
}

// vmSet returns the name of the scale set or availability set of a node; empty for a node
// in neither.
func (c *Cluster) vmSet(ctx context.Context, n *corev1.Node, now time.Time) (string, error) {
	scaleSet, _, err := lb.VMSetOfProviderID(n.Spec.ProviderID)
	if err != nil { // no machine of Azure, which is in no set
		c.opts.Log.DebugContext(ctx, "node is no machine of Azure", "node", n.Name, "err", err)
		return "", nil
	}
	if scaleSet != "" {
		return scaleSet, nil
	}
	if err := c.places.open(now); err != nil {
		return "", err
	}
	set, err := c.places.availabilitySet(ctx, n.Spec.ProviderID)
	c.places.note(n, func(p *nodePlace) { p.nowhere = err != nil && fault.From(err).Class == fault.Stale })
	return set, err
}

// label chooses a place for a node whose set is known, and writes it onto the node.
func (c *Cluster) label(ctx context.Context, n *corev1.Node, now time.Time) error {
	on := c.places.standing(n, nil)
	if on == "" { // it may be in a pool that was there before
		if err := c.places.open(now); err != nil {
			return err
		}
		shown, err := c.places.shown(ctx)
		if err != nil {
			return err
		}
		if on = c.places.standing(n, shown); on == "" {
			on = c.places.choose(n, c.snap.Eligible(), shown)
		}
	}
	value := ""
	if on != "" {
		value = view.PlaceValue(on)
	}
	if n.Labels[view.PlaceLabel] == value {
		return nil
	}
	if err := c.writeLabel(ctx, n, value); err != nil {
		return err
	}
	c.opts.Log.InfoContext(ctx, "node placed", "node", n.Name, "loadBalancer", on, "before", n.Labels[view.PlaceLabel])
	return nil
}

// writeLabel sets the label of this very node, or takes it away.
func (c *Cluster) writeLabel(ctx context.Context, n *corev1.Node, value string) error {
	label := &value
	if value == "" {
		label = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": n.UID, "labels": map[string]*string{view.PlaceLabel: label}}})
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	err = c.writer.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(apiserver.FieldOwner))
	switch {
	case apierrors.IsNotFound(err):
		return backendpool.ErrGone
	case apierrors.IsForbidden(err):
		return fmt.Errorf("label of node %s: apply the role of config/several-load-balancers: %w", n.Name, err)
	case err != nil:
		return fmt.Errorf("label of node %s: %w", n.Name, err)
	}
	return nil
}

// complainOfNode says why a node is not placed. What was not even asked, because Azure wants
// patience, is worth no event on each node.
func (c *Cluster) complainOfNode(n *corev1.Node, err error) {
	word, why := err.Error(), words.OfError(err, time.Now())
	f, ok := errors.AsType[*fault.Fault](err)
	switch {
	case ok && (f.Code == fault.CodeGateClosed || f.Code == fault.CodeResting):
		c.places.tell(n, f.Code, why)
		return
	case ok:
		word = f.Code // the rest differs from try to try
	}
	c.notPlaced(n, word, why)
}

// notPlaced puts an event on a node that is not placed, once while the word for it is the
// same.
func (c *Cluster) notPlaced(n *corev1.Node, word, why string) {
	text := "No load balancer is chosen for this node: "
	if on := c.places.on(n); on != "" {
		text = "It is not known whether this node still belongs on load balancer " + on + ": "
	}
	if c.places.tell(n, word, why) {
		c.events.Add(n, corev1.EventTypeWarning, EventNotPlaced, sentence(text+why, maxMessage))
	}
}
