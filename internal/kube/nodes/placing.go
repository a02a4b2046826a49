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

	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/words"
)

// EventNotPlaced is the reason of the event on a node that is on no load balancer yet.
const EventNotPlaced = "NotPlacedOnLoadBalancer"

// providerPatience is how long a new node may be without a providerID before that is worth
// an event.
const providerPatience = time.Minute

// Placing labels each node with the load balancer where it belongs, if there are several.
type Placing struct {
	Nodes  *view.Snapshot
	Writer client.Writer
	Events Recorder
	// Selected has the BackendPools of nodes select by the labels, once all nodes are placed.
	Selected func(context.Context) error
	Log      *slog.Logger

	places places
	queue  workqueue.Queue
}

// Among says which load balancers there are, and who knows what is on them: shown returns on which
// one Azure shows nodes, availabilitySet in which set a machine is.
func (p *Placing) Among(several []service.Configuration, shown func(context.Context) (map[string]string, error),
	availabilitySet func(ctx context.Context, providerID string) (string, error)) {
	p.places.several, p.places.names = several, view.PlaceNames(several)
	p.places.shown, p.places.availabilitySet = shown, availabilitySet
}

// Missing returns the first of these nodes, by name, that is known neither to have the label nor
// to get none, and why; an empty name if there is none.
func (p *Placing) Missing(nodes []*corev1.Node) (name, why string) { return p.places.missing(nodes) }

// All places all nodes at once, in the order of their names. One that its place is not known of is
// an error.
func (p *Placing) All(ctx context.Context) error {
	if len(p.places.several) == 0 {
		return nil
	}
	nodes := p.Nodes.Eligible()
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		wait, err := p.place(ctx, n, time.Now())
		if err == nil && wait > 0 && !p.places.isNowhere(n) {
			err = errors.New("it has no spec.providerID yet, which tells the availability set or scale set: the cloud provider sets it")
		}
		if err != nil {
			return fmt.Errorf("on which load balancer node %s belongs is not known: %w", n.Name, err)
		}
	}
	return p.Selected(ctx)
}

// Retry has those placed again that failed because of the API server.
func (p *Placing) Retry(now time.Time) { p.queue.Retry(now) }

// Setup adds the controller to the manager, if there are several load balancers.
func (p *Placing) Setup(mgr manager.Manager, backoff workqueue.Backoff) error {
	if len(p.places.several) == 0 {
		return nil
	}
	return builder.ControllerManagedBy(mgr).Named("nodeplace").
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(placeChanged())).
		WatchesRawSource(p.queue.Source()).
		WithOptions(controller.Options{RateLimiter: backoff.RateLimiter(), MaxConcurrentReconciles: 4}).
		Complete(p.queue.Reconciler(p.reconcile))
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

// reconcile labels a node with the load balancer where it belongs.
func (p *Placing) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	n := view.Get[corev1.Node](p.Nodes.Nodes, req.Name)
	if n == nil || p.Nodes.Excluded(n) { // what an excluded node has as a label, it keeps
		p.places.forget(req.Name)
		return workqueue.Result(ctx, p.Selected(ctx), 0)
	}
	now := time.Now()
	wait, err := p.place(ctx, n, now)
	if err == nil && wait == 0 {
		p.places.tell(n, "", "")
		return workqueue.Result(ctx, p.Selected(ctx), 0)
	}
	if err == nil && p.places.isNowhere(n) { // nobody waits for it
		err = p.Selected(ctx)
	}
	if err != nil && !errors.Is(err, backendpool.ErrGone) {
		p.complain(n, err)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.RetryAt.After(now) {
		p.places.rest(f.RetryAt)
		wait, err = f.RetryAt.Sub(now), nil
	}
	return workqueue.Result(ctx, err, wait)
}

// place finds out where a node belongs, and labels it. If there is something to wait
// for, it returns how long.
func (p *Placing) place(ctx context.Context, n *corev1.Node, now time.Time) (wait time.Duration, err error) {
	if !p.places.knows(n) {
		set := ""
		if p.places.bySets() {
			if n.Spec.ProviderID == "" {
				return p.awaitProviderID(n, now), nil
			}
			if set, err = p.vmSet(ctx, n, now); err != nil {
				return 0, err
			}
		}
		p.places.learn(n, set)
	}
	return 0, p.label(ctx, n, now)
}

// awaitProviderID returns how long a node is given until the cloud provider has told which
// machine it is. After that it is on no load balancer, and nothing waits for it; it is placed once it tells.
func (p *Placing) awaitProviderID(n *corev1.Node, now time.Time) time.Duration {
	if age := now.Sub(n.CreationTimestamp.Time); age < providerPatience {
		return providerPatience - age
	}
	p.places.note(n, func(is *nodePlace) { is.nowhere = true })
	p.notPlaced(n, "NoProviderID", "spec.providerID is empty, and tells neither scale set nor machine: the cloud provider sets it")
	return providerPatience
}

// vmSet returns the name of the scale set or availability set of a node; empty for a node
// in neither.
func (p *Placing) vmSet(ctx context.Context, n *corev1.Node, now time.Time) (string, error) {
	scaleSet, _, err := lb.VMSetOfProviderID(n.Spec.ProviderID)
	if err != nil { // no machine of Azure, which is in no set
		p.Log.DebugContext(ctx, "node is no machine of Azure", "node", n.Name, "err", err)
		return "", nil
	}
	if scaleSet != "" {
		return scaleSet, nil
	}
	if err := p.places.open(now); err != nil {
		return "", err
	}
	set, err := p.places.availabilitySet(ctx, n.Spec.ProviderID)
	p.places.note(n, func(is *nodePlace) { is.nowhere = err != nil && fault.From(err).Class == fault.Stale })
	return set, err
}

// label chooses a place for a node whose set is known, and writes it onto the node.
func (p *Placing) label(ctx context.Context, n *corev1.Node, now time.Time) error {
	on := p.places.standing(n, nil)
	if on == "" { // it may be in a pool that was there before
		if err := p.places.open(now); err != nil {
			return err
		}
		shown, err := p.places.shown(ctx)
		if err != nil {
			return err
		}
		if on = p.places.standing(n, shown); on == "" {
			on = p.places.choose(n, p.Nodes.Eligible(), shown)
		}
	}
	value := ""
	if on != "" {
		value = view.PlaceValue(on)
	}
	if n.Labels[view.PlaceLabel] == value {
		return nil
	}
	if err := p.writeLabel(ctx, n, value); err != nil {
		return err
	}
	p.Log.InfoContext(ctx, "node placed", "node", n.Name, "loadBalancer", on, "before", n.Labels[view.PlaceLabel])
	return nil
}

// writeLabel sets the label of this very node, or takes it away.
func (p *Placing) writeLabel(ctx context.Context, n *corev1.Node, value string) error {
	label := &value
	if value == "" {
		label = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": n.UID, "labels": map[string]*string{view.PlaceLabel: label}}})
	if err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	err = p.Writer.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(apiserver.FieldOwner))
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

// complain says why a node is not placed. What was not even asked, because Azure wants
// patience, is worth no event on each node.
func (p *Placing) complain(n *corev1.Node, err error) {
	word, why := err.Error(), words.OfError(err, time.Now())
	f, ok := errors.AsType[*fault.Fault](err)
	switch {
	case ok && (f.Code == fault.CodeGateClosed || f.Code == fault.CodeResting):
		p.places.tell(n, f.Code, why)
		return
	case ok:
		word = f.Code // the rest differs from try to try
	}
	p.notPlaced(n, word, why)
}

// notPlaced puts an event on a node that is not placed, once while the word for it is the
// same.
func (p *Placing) notPlaced(n *corev1.Node, word, why string) {
	text := "No load balancer is chosen for this node: "
	if on := p.places.on(n); on != "" {
		text = "It is not known whether this node still belongs on load balancer " + on + ": "
	}
	if p.places.tell(n, word, why) {
		p.Events.Add(n, corev1.EventTypeWarning, EventNotPlaced, words.Sentence(text+why, words.MaxMessage))
	}
}
