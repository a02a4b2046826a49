// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
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
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// EventNotPlaced is the event reason for a node without a load balancer.
const EventNotPlaced = "NotPlacedOnLoadBalancer"

// providerIDTimeout is how long a new node may lack a providerID before an event.
const providerIDTimeout = time.Minute

// Placer labels each node with its load balancer, if there are several.
type Placer struct {
	Nodes  *cache.Snapshot
	Writer client.Writer
	Events Recorder
	// UpdateSelectors sets the selectors of the BackendPools of nodes, once all nodes are placed.
	UpdateSelectors func(context.Context) error
	Log             *slog.Logger

	places placementStore
	queue  k8s.WorkQueue
}

// SetConfigurations sets the configurations: shown returns the configurations of nodes in Azure, availabilitySet the set
// of a machine.
func (p *Placer) SetConfigurations(configurations []service.Configuration, shown func(context.Context) (map[string]string, error),
	availabilitySet func(ctx context.Context, providerID string) (string, error)) {
	p.places.configurations, p.places.names = configurations, cache.PlaceNames(configurations)
	p.places.observed, p.places.availabilitySet = shown, availabilitySet
}

// FirstUnplaced returns the first node by name that lacks the label and is not known to get none, and why; "" if
// none.
func (p *Placer) FirstUnplaced(nodes []*corev1.Node) (name, reason string) {
	return p.places.firstUnplaced(nodes)
}

// PlaceAll places all nodes in name order. It returns an error if a place cannot be determined.
func (p *Placer) PlaceAll(ctx context.Context) error {
	if len(p.places.configurations) == 0 {
		return nil
	}
	nodes := p.Nodes.EligibleNodes()
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		wait, err := p.placeNode(ctx, n, time.Now())
		if err == nil && wait > 0 && !p.places.isUnplaceable(n) {
			err = errors.New("it has no spec.providerID yet, which names the availability set or scale set: the cloud provider sets it")
		}
		if err != nil {
			return fmt.Errorf("on which load balancer node %s belongs is not known: %w", n.Name, err)
		}
	}
	return p.UpdateSelectors(ctx)
}

// RetryFailed requeues requests that failed because of the API server.
func (p *Placer) RetryFailed(now time.Time) { p.queue.RetryFailed(now) }

// Setup adds the controller to the manager, if there are several load balancers.
func (p *Placer) Setup(mgr manager.Manager, backoff k8s.QueueBackoff) error {
	if len(p.places.configurations) == 0 {
		return nil
	}
	return builder.ControllerManagedBy(mgr).Named("nodeplace").
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(placeChanged())).
		WatchesRawSource(p.queue.Source()).
		WithOptions(controller.Options{RateLimiter: backoff.NewRateLimiter(), MaxConcurrentReconciles: 4}).
		Complete(p.queue.WrapReconciler(p.reconcileNode))
}

// placeChanged drops updates that do not affect placement.
func placeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Node)
		after, ok2 := u.ObjectNew.(*corev1.Node)
		return ok1 && ok2 && (before.UID != after.UID || before.Spec.ProviderID != after.Spec.ProviderID ||
			!maps.Equal(before.Labels, after.Labels))
	}}
}

// reconcileNode labels a node with its load balancer.
func (p *Placer) reconcileNode(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	n := cache.Get[corev1.Node](p.Nodes.Nodes, req.Name)
	if n == nil || p.Nodes.IsExcluded(n) { // an excluded node keeps its label
		p.places.forgetNode(req.Name)
		return k8s.ReconcileResult(ctx, p.UpdateSelectors(ctx), 0)
	}
	now := time.Now()
	wait, err := p.placeNode(ctx, n, now)
	if err == nil && wait == 0 {
		p.places.setReason(n, "", "")
		return k8s.ReconcileResult(ctx, p.UpdateSelectors(ctx), 0)
	}
	if err == nil && p.places.isUnplaceable(n) { // nothing waits for it
		err = p.UpdateSelectors(ctx)
	}
	if err != nil && !errors.Is(err, metadata.ErrDeleted) {
		p.recordPlacementError(n, err)
	}
	if f, ok := errors.AsType[*armerror.Fault](err); ok && f.RetryAt.After(now) {
		p.places.setRetryAfter(f.RetryAt)
		wait, err = f.RetryAt.Sub(now), nil
	}
	return k8s.ReconcileResult(ctx, err, wait)
}

// placeNode determines the load balancer of a node and labels it. wait is the requeue delay, if any.
func (p *Placer) placeNode(ctx context.Context, n *corev1.Node, now time.Time) (wait time.Duration, err error) {
	if !p.places.isSetKnown(n) {
		set := ""
		if p.places.bySets() {
			if n.Spec.ProviderID == "" {
				return p.awaitProviderID(n, now), nil
			}
			if set, err = p.vmSet(ctx, n, now); err != nil {
				return 0, err
			}
		}
		p.places.recordSet(n, set)
	}
	return 0, p.assignLabel(ctx, n, now)
}

// awaitProviderID returns how long to wait for the providerID. After the limit the node is on no load
// balancer and nothing waits for it, until it gets one.
func (p *Placer) awaitProviderID(n *corev1.Node, now time.Time) time.Duration {
	if age := now.Sub(n.CreationTimestamp.Time); age < providerIDTimeout {
		return providerIDTimeout - age
	}
	p.places.updateNode(n, func(place *nodePlace) { place.isUnplaceable = true })
	p.recordNotPlaced(n, "NoProviderID", "spec.providerID is empty, so its scale set and machine are unknown: the cloud provider sets it")
	return providerIDTimeout
}

// vmSet returns the scale set or availability set of a node; "" for neither.
func (p *Placer) vmSet(ctx context.Context, n *corev1.Node, now time.Time) (string, error) {
	scaleSet, _, err := lb.VMSetOfProviderID(n.Spec.ProviderID)
	if err != nil { // not an Azure machine, so in no set
		p.Log.DebugContext(ctx, "node is no machine of Azure", "node", n.Name, "err", err)
		return "", nil
	}
	if scaleSet != "" {
		return scaleSet, nil
	}
	if err := p.places.checkRetryAfter(now); err != nil {
		return "", err
	}
	set, err := p.places.availabilitySet(ctx, n.Spec.ProviderID)
	p.places.updateNode(n, func(place *nodePlace) {
		place.isUnplaceable = err != nil && armerror.FromError(err).Class == armerror.Stale
	})
	return set, err
}

// assignLabel chooses a load balancer for a node with a known set and writes the label.
func (p *Placer) assignLabel(ctx context.Context, n *corev1.Node, now time.Time) error {
	on := p.places.assignFixed(n, nil)
	if on == "" { // it may be in an existing pool
		if err := p.places.checkRetryAfter(now); err != nil {
			return err
		}
		shown, err := p.places.observed(ctx)
		if err != nil {
			return err
		}
		if on = p.places.assignFixed(n, shown); on == "" {
			on = p.places.assignBest(n, p.Nodes.EligibleNodes(), shown)
		}
	}
	value := ""
	if on != "" {
		value = cache.PlaceValue(on)
	}
	if n.Labels[metadata.PlaceLabel] == value {
		return nil
	}
	if err := p.writeLabel(ctx, n, value); err != nil {
		return err
	}
	p.Log.InfoContext(ctx, "node placed", "node", n.Name, "loadBalancer", on, "before", n.Labels[metadata.PlaceLabel])
	return nil
}

func (p *Placer) writeLabel(ctx context.Context, n *corev1.Node, value string) error {
	label := &value
	if value == "" {
		label = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": n.UID, "labels": map[string]*string{metadata.PlaceLabel: label}}})
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	err = p.Writer.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(k8s.FieldOwner))
	switch {
	case apierrors.IsNotFound(err):
		return metadata.ErrDeleted
	case apierrors.IsForbidden(err):
		return fmt.Errorf("label of node %s: apply the role of config/several-load-balancers: %w", n.Name, err)
	case err != nil:
		return fmt.Errorf("label of node %s: %w", n.Name, err)
	}
	return nil
}

// recordPlacementError records why a node is not placed. A request skipped because of Retry-After gets no event.
func (p *Placer) recordPlacementError(n *corev1.Node, err error) {
	word, reason := err.Error(), humanize.FormatError(err, time.Now())
	f, ok := errors.AsType[*armerror.Fault](err)
	switch {
	case ok && (f.Code == armerror.CodeGateClosed || f.Code == armerror.CodeRetryAfter):
		p.places.setReason(n, f.Code, reason)
		return
	case ok:
		word = f.Code // the rest varies between attempts
	}
	p.recordNotPlaced(n, word, reason)
}

// recordNotPlaced records an event on a node that is not placed, once per word.
func (p *Placer) recordNotPlaced(n *corev1.Node, word, reason string) {
	text := "No load balancer is chosen for this node: "
	if on := p.places.configurationOf(n); on != "" {
		text = "It is not known whether this node still belongs on load balancer " + on + ": "
	}
	if p.places.setReason(n, word, reason) {
		p.Events.Add(n, corev1.EventTypeWarning, EventNotPlaced, humanize.FormatMessage(text+reason, humanize.MaxMessage))
	}
}
