// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
)

// eventPreempt is the event reason for a spot eviction by Azure.
const eventPreempt = "PreemptScheduled"

// EventTainted is the event reason for a node with a new spot eviction taint.
const EventTainted = "SpotEvictionTaintAdded"

// spotEviction is the spot eviction taint.
var spotEviction = corev1.Taint{
	Key: lb.KeyDraining, Value: lb.ValueSpotEviction, Effect: corev1.TaintEffectNoSchedule,
}

// eventsNamespace is the namespace of events about nodes. Elsewhere any tenant may write them.
const eventsNamespace = metav1.NamespaceDefault

// Recorder records events.
type Recorder interface {
	Add(about runtime.Object, kind, reason, message string)
}

// Evictions taints nodes with an eviction announced by events or conditions.
type Evictions struct {
	Nodes *cache.Snapshot
	// Signals define the trusted reporters.
	Signals *lb.DrainSignals
	Reader  client.Reader // reads directly from the API server
	Writer  client.Writer
	Events  Recorder
	Log     *slog.Logger

	queue    k8s.WorkQueue
	informer toolscache.SharedIndexInformer
	seen     announcements
}

// WatchEvents creates the informer of eviction events. It is separate from the manager's cache: without the role in
// config/admin-state it never syncs, which would block all controllers.
func (e *Evictions) WatchEvents(core toolscache.Getter) error {
	about := fields.Set{"reason": eventPreempt, "involvedObject.kind": "Node"}.AsSelector()
	e.informer = toolscache.NewSharedIndexInformer(
		toolscache.NewListWatchFromClient(core, "events", eventsNamespace, about), &corev1.Event{}, 0, toolscache.Indexers{})
	var once sync.Once
	err := e.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		if !apierrors.IsForbidden(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		once.Do(func() {
			e.Log.Warn("spot evictions are not seen: apply config/admin-state, or set enableNodeAdminState to false in azure.json", "err", err)
		})
	})
	if err != nil {
		return err
	}
	return e.informer.SetTransform(metadata.Strip(stripEvent))
}

// maxMessageLength limits the cached event message.
const maxMessageLength = 64

// stripEvent keeps object, reporter and times of an event.
func stripEvent(e *corev1.Event) {
	*e = corev1.Event{
		ObjectMeta: metadata.Identity(e.ObjectMeta, nil), InvolvedObject: corev1.ObjectReference{Name: e.InvolvedObject.Name},
		ReportingController: truncateText(cmp.Or(e.ReportingController, e.Source.Component), humanize.MaxCode), Message: truncateText(e.Message, maxMessageLength),
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, Count: e.Count, EventTime: e.EventTime, Series: e.Series,
	}
}

// Setup adds the controller. Only the leader watches events.
func (e *Evictions) Setup(mgr manager.Manager, backoff k8s.QueueBackoff) error {
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		e.informer.RunWithContext(ctx)
		return nil
	}))
	if err != nil {
		return err
	}
	itself := func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	}
	// Events of the initial list predate this process, and an operator may have removed a taint since.
	found := predicate.Funcs{
		CreateFunc: func(created event.CreateEvent) bool {
			if a, ok := created.Object.(*corev1.Event); ok && created.IsInInitialList {
				e.seen.addEvent(a)
			}
			return true
		},
		DeleteFunc: func(ev event.DeleteEvent) bool { e.seen.forgetEvent(ev.Object.GetUID()); return false },
	}
	return builder.ControllerManagedBy(mgr).Named("preemption").
		WatchesRawSource(&source.Informer{Informer: e.informer, Handler: handler.EnqueueRequestsFromMapFunc(itself), Predicates: []predicate.Predicate{found}}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(nodeRequest), builder.WithPredicates(evictionChanged())).
		WatchesRawSource(e.queue.Source()).
		WithOptions(controller.Options{RateLimiter: backoff.NewRateLimiter()}).
		Complete(e.queue.WrapReconciler(e.reconcileEvent))
}

// RetryFailed requeues requests that failed because of the API server.
func (e *Evictions) RetryFailed(now time.Time) { e.queue.RetryFailed(now) }

// CachedEvents returns the cached events.
func (e *Evictions) CachedEvents() (events []*corev1.Event) {
	for _, obj := range e.informer.GetStore().List() {
		if a, ok := obj.(*corev1.Event); ok {
			events = append(events, a)
		}
	}
	return events
}

// reconcileEvent adds the spot eviction taint to the node of an event, or to a node by its conditions.
func (e *Evictions) reconcileEvent(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.Namespace == "" {
		return k8s.ReconcileResult(ctx, e.reconcileConditions(ctx, req.Name), 0)
	}
	a := cache.Get[corev1.Event](e.informer.GetIndexer(), metadata.Key(req.Namespace, req.Name))
	if a == nil {
		return reconcile.Result{}, nil
	}
	if !e.Signals.IsTrusted(lb.EvictionReport{Reporter: a.ReportingController, Message: a.Message}) {
		e.logUntrusted(ctx, a)
		return reconcile.Result{}, nil
	}
	// A start lists an hour of events, most of them handled, and agents repeat events. The cached node is
	// enough to skip these.
	if n := cache.Get[corev1.Node](e.Nodes.Nodes, a.InvolvedObject.Name); n != nil {
		action, _ := evaluateEviction(n, evictionEvent(a), e.seen.isCovered(a))
		if hasSpotEviction(n.Spec.Taints) {
			e.seen.addEvent(a)
		}
		if action == lb.EvictionIgnored {
			return reconcile.Result{}, nil
		}
	}
	return k8s.ReconcileResult(ctx, e.TaintNode(ctx, a), 0)
}

// logUntrusted logs an event of an untrusted reporter: the first as a warning, because a custom agent must be
// configured, the rest at debug level, because any user may write such events.
func (e *Evictions) logUntrusted(ctx context.Context, a *corev1.Event) {
	level := slog.LevelDebug
	if e.seen.isFirstUntrusted() {
		level = slog.LevelWarn
	}
	e.Log.Log(ctx, level, "an untrusted reporter announced an eviction: if this is your agent, add it to nodeAdminStateReporters in azure.json; further ones are logged with -v 1",
		"event", metadata.Key(a.Namespace, a.Name), "node", a.InvolvedObject.Name, "reporter", humanize.FormatMessage(a.ReportingController, humanize.MaxCode), "message", humanize.FormatMessage(a.Message, maxMessageLength))
}

// TaintNode adds the spot eviction taint to the node of an event.
func (e *Evictions) TaintNode(ctx context.Context, a *corev1.Event) error {
	return e.writeTaint(ctx, a.InvolvedObject.Name, "event "+a.Name, func(n *corev1.Node) (lb.EvictionAction, lb.EvictionRecord) {
		if hasSpotEviction(n.Spec.Taints) {
			defer e.seen.addEvent(a)
		}
		return evaluateEviction(n, evictionEvent(a), e.seen.isCovered(a))
	})
}

// writeTaint writes taint and record in one patch of the current node: a patch replaces the list of taints, and
// the cache has only some. by is the source of the announcement.
func (e *Evictions) writeTaint(ctx context.Context, node, by string, judge func(*corev1.Node) (lb.EvictionAction, lb.EvictionRecord)) error {
	n := &corev1.Node{}
	var action lb.EvictionAction
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		*n = corev1.Node{}
		if err := e.Reader.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return err
		}
		var record lb.EvictionRecord
		if action, record = judge(n); action == lb.EvictionIgnored {
			return nil
		}
		before := n.DeepCopy()
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, metadata.PreemptionAnnotation, record.String())
		if action == lb.EvictionTaints {
			n.Spec.Taints = withSpotEviction(n.Spec.Taints)
		}
		return e.Writer.Patch(ctx, n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(k8s.FieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return nil // evicted
	}
	if err != nil {
		return fmt.Errorf("taint of node %s: %w", node, err)
	}
	if action == lb.EvictionTaints {
		e.Log.InfoContext(ctx, "a node was tainted: Azure evicts it", "node", n.Name, "announcedBy", by)
		e.Events.Add(n, corev1.EventTypeNormal, EventTainted,
			fmt.Sprintf("Azure evicts this spot machine (%s): tainted %s=%s:%s", by, spotEviction.Key, spotEviction.Value, spotEviction.Effect))
	}
	return nil
}

// evaluateEviction evaluates an announcement for a node.
func evaluateEviction(n *corev1.Node, e lb.TaintEvent, seen bool) (lb.EvictionAction, lb.EvictionRecord) {
	return lb.HandleEviction(lb.TaintedNode{
		Created: n.CreationTimestamp.Time, Record: lb.ParseEvictionRecord(n.Annotations[metadata.PreemptionAnnotation]),
		HasTaint: hasSpotEviction(n.Spec.Taints),
	}, e, seen)
}

// evictionEvent converts an event. Events of events.k8s.io have separate times and counts.
func evictionEvent(e *corev1.Event) lb.TaintEvent {
	out := lb.TaintEvent{
		UID: string(e.UID), Created: e.CreationTimestamp.Time,
		First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time, Count: int(e.Count),
	}
	if !e.EventTime.IsZero() {
		out.First, out.Last = e.EventTime.Time, laterTime(out.Last, e.EventTime.Time)
	}
	if e.Series != nil {
		out.Last, out.Count = laterTime(out.Last, e.Series.LastObservedTime.Time), max(out.Count, int(e.Series.Count))
	}
	return out
}

func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hasSpotEviction reports whether the node has the taint, with any effect.
func hasSpotEviction(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == spotEviction.Key && t.Value == spotEviction.Value })
}

// withSpotEviction adds the taint, or sets the value of the taint with the same key and effect.
func withSpotEviction(taints []corev1.Taint) []corev1.Taint {
	if i := slices.IndexFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&spotEviction) }); i >= 0 {
		taints[i] = spotEviction
		return taints
	}
	return append(taints, spotEviction)
}
