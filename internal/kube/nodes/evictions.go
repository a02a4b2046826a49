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

	"weir.dev/weir/internal/adminstate"
	"weir.dev/weir/internal/kube/apiserver"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/kube/workqueue"
	"weir.dev/weir/internal/words"
)

// eventPreempt is the reason of the events that announce that Azure evicts a spot machine.
const eventPreempt = "PreemptScheduled"

// EventTainted is the reason of the event on a node that got the taint of a spot eviction.
const EventTainted = "SpotEvictionTaintAdded"

// spotEviction is that taint.
var spotEviction = corev1.Taint{
	Key: adminstate.KeyDraining, Value: adminstate.ValueSpotEviction, Effect: corev1.TaintEffectNoSchedule,
}

// eventsNamespace is where events about nodes are, which have no namespace of their own.
// Elsewhere anybody may write one that names a node.
const eventsNamespace = metav1.NamespaceDefault

// Recorder is told what becomes of a node.
type Recorder interface {
	Add(about runtime.Object, kind, reason, message string)
}

// Evictions puts a taint on the nodes whose eviction is announced by events or by their conditions.
type Evictions struct {
	Nodes *view.Snapshot
	// Signals say who is believed.
	Signals *adminstate.Signals
	Reader  client.Reader // of the API server itself
	Writer  client.Writer
	Events  Recorder
	Log     *slog.Logger

	queue    workqueue.Queue
	informer toolscache.SharedIndexInformer
	seen     announcements
}

// Watch makes the informer of announced evictions. It is not one of the manager's
// cache, which fills as a whole: without the role of config/admin-state this one never does,
// and all controllers would wait for it.
func (e *Evictions) Watch(core toolscache.Getter) error {
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
	return e.informer.SetTransform(view.Strip(stripEvent))
}

// messageKept is how much is held of what an event says; nobody needs more of it.
const messageKept = 64

// stripEvent keeps whom an event is about, who says so, and when it occurred.
func stripEvent(e *corev1.Event) {
	*e = corev1.Event{
		ObjectMeta: view.Identity(e.ObjectMeta, nil), InvolvedObject: corev1.ObjectReference{Name: e.InvolvedObject.Name},
		ReportingController: beginning(cmp.Or(e.ReportingController, e.Source.Component), words.MaxCode), Message: beginning(e.Message, messageKept),
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, Count: e.Count, EventTime: e.EventTime, Series: e.Series,
	}
}

// Setup adds the controller. Only the leader watches events.
func (e *Evictions) Setup(mgr manager.Manager, backoff workqueue.Backoff) error {
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
	// What the first list brings was there before this process, which cannot know whether an
	// operator has cleared a taint since.
	found := predicate.Funcs{
		CreateFunc: func(created event.CreateEvent) bool {
			if a, ok := created.Object.(*corev1.Event); ok && created.IsInInitialList {
				e.seen.add(a)
			}
			return true
		},
		DeleteFunc: func(gone event.DeleteEvent) bool { e.seen.forget(gone.Object.GetUID()); return false },
	}
	return builder.ControllerManagedBy(mgr).Named("preemption").
		WatchesRawSource(&source.Informer{Informer: e.informer, Handler: handler.EnqueueRequestsFromMapFunc(itself), Predicates: []predicate.Predicate{found}}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(nodeItself), builder.WithPredicates(evictionChanged())).
		WatchesRawSource(e.queue.Source()).
		WithOptions(controller.Options{RateLimiter: backoff.RateLimiter()}).
		Complete(e.queue.Reconciler(e.reconcile))
}

// Retry has those judged again that failed because of the API server.
func (e *Evictions) Retry(now time.Time) { e.queue.Retry(now) }

// Held are the events that are held in memory.
func (e *Evictions) Held() (held []*corev1.Event) {
	for _, obj := range e.informer.GetStore().List() {
		if a, ok := obj.(*corev1.Event); ok {
			held = append(held, a)
		}
	}
	return held
}

// reconcile puts the taint of a spot eviction on the node that an event is about, or whose
// condition says so.
func (e *Evictions) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if req.Namespace == "" {
		return workqueue.Result(ctx, e.reconcileConditions(ctx, req.Name), 0)
	}
	a := view.Get[corev1.Event](e.informer.GetIndexer(), view.Key(req.Namespace, req.Name))
	if a == nil {
		return reconcile.Result{}, nil
	}
	if !e.Signals.Believes(adminstate.Announcement{Reporter: a.ReportingController, Message: a.Message}) {
		e.disbelieved(ctx, a)
		return reconcile.Result{}, nil
	}
	// A start finds the events of an hour, most of which were judged before, and agents repeat
	// themselves. That a cached node says so stays true.
	if n := view.Get[corev1.Node](e.Nodes.Nodes, a.InvolvedObject.Name); n != nil {
		verdict, _ := judged(n, announced(a), e.seen.covers(a))
		if hasSpotEviction(n.Spec.Taints) {
			e.seen.add(a)
		}
		if verdict == adminstate.Ignore {
			return reconcile.Result{}, nil
		}
	}
	return workqueue.Result(ctx, e.Taint(ctx, a), 0)
}

// disbelieved tells of the first event that is not believed: whoever runs an agent of their
// own has to name it. The rest is for who looks closely, as anybody may write such events.
func (e *Evictions) disbelieved(ctx context.Context, a *corev1.Event) {
	level := slog.LevelDebug
	if e.seen.firstDoubt() {
		level = slog.LevelWarn
	}
	e.Log.Log(ctx, level, "an eviction is announced by nobody who is believed: if this is your agent, add it to nodeAdminStateReporters in azure.json; the next ones are told with -v 1",
		"event", view.Key(a.Namespace, a.Name), "node", a.InvolvedObject.Name, "reporter", words.Sentence(a.ReportingController, words.MaxCode), "message", words.Sentence(a.Message, messageKept))
}

// Taint puts the taint of a spot eviction on the node that an event is about.
func (e *Evictions) Taint(ctx context.Context, a *corev1.Event) error {
	return e.taint(ctx, a.InvolvedObject.Name, "event "+a.Name, func(n *corev1.Node) (adminstate.Verdict, adminstate.Record) {
		if hasSpotEviction(n.Spec.Taints) {
			defer e.seen.add(a)
		}
		return judged(n, announced(a), e.seen.covers(a))
	})
}

// taint writes taint and record in one patch of the node as it is now: a patch replaces the
// list of taints, of which the cache has only some. by names what announces the eviction.
func (e *Evictions) taint(ctx context.Context, node, by string, judge func(*corev1.Node) (adminstate.Verdict, adminstate.Record)) error {
	n := &corev1.Node{}
	var verdict adminstate.Verdict
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		*n = corev1.Node{}
		if err := e.Reader.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return err
		}
		var record adminstate.Record
		if verdict, record = judge(n); verdict == adminstate.Ignore {
			return nil
		}
		before := n.DeepCopy()
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, view.PreemptionAnnotation, record.String())
		if verdict == adminstate.Put {
			n.Spec.Taints = withSpotEviction(n.Spec.Taints)
		}
		return e.Writer.Patch(ctx, n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(apiserver.FieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return nil // evicted
	}
	if err != nil {
		return fmt.Errorf("taint of node %s: %w", node, err)
	}
	if verdict == adminstate.Put {
		e.Log.InfoContext(ctx, "a node was tainted: Azure evicts it", "node", n.Name, "announcedBy", by)
		e.Events.Add(n, corev1.EventTypeNormal, EventTainted,
			fmt.Sprintf("Azure evicts this spot machine (%s): tainted %s=%s:%s", by, spotEviction.Key, spotEviction.Value, spotEviction.Effect))
	}
	return nil
}

// judged asks what an announcement does to a node.
func judged(n *corev1.Node, e adminstate.Event, seen bool) (adminstate.Verdict, adminstate.Record) {
	return adminstate.Preempted(adminstate.Node{
		Created: n.CreationTimestamp.Time, Record: adminstate.ParseRecord(n.Annotations[view.PreemptionAnnotation]),
		Tainted: hasSpotEviction(n.Spec.Taints),
	}, e, seen)
}

// announced converts an event. Those of events.k8s.io have times and counts of their own.
func announced(e *corev1.Event) adminstate.Event {
	out := adminstate.Event{
		UID: string(e.UID), Created: e.CreationTimestamp.Time,
		First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time, Count: int(e.Count),
	}
	if !e.EventTime.IsZero() {
		out.First, out.Last = e.EventTime.Time, later(out.Last, e.EventTime.Time)
	}
	if e.Series != nil {
		out.Last, out.Count = later(out.Last, e.Series.LastObservedTime.Time), max(out.Count, int(e.Series.Count))
	}
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hasSpotEviction reports whether the taint is there, with any effect.
func hasSpotEviction(taints []corev1.Taint) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == spotEviction.Key && t.Value == spotEviction.Value })
}

// withSpotEviction adds the taint. One of its key and effect gets its value: a node has no two.
func withSpotEviction(taints []corev1.Taint) []corev1.Taint {
	if i := slices.IndexFunc(taints, func(t corev1.Taint) bool { return t.MatchTaint(&spotEviction) }); i >= 0 {
		taints[i] = spotEviction
		return taints
	}
	return append(taints, spotEviction)
}
