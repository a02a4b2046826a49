// SPDX-License-Identifier: Apache-2.0

package kube

import (
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
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"weir.dev/weir/internal/adminstate"
)

// PreemptionAnnotation records on a node by which announcement of its eviction it was judged
// last.
const PreemptionAnnotation = "weir.dev/preemption"

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

// watchPreemptions makes the informer of announced evictions. It is not one of the manager's
// cache, which fills as a whole: without the role of config/admin-state this one never does,
// and all controllers would wait for it.
func (c *Cluster) watchPreemptions(core toolscache.Getter) error {
	about := fields.Set{"reason": eventPreempt, "involvedObject.kind": "Node"}.AsSelector()
	c.preemptions = toolscache.NewSharedIndexInformer(
		toolscache.NewListWatchFromClient(core, "events", eventsNamespace, about), &corev1.Event{}, 0, toolscache.Indexers{})
	var once sync.Once
	err := c.preemptions.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *toolscache.Reflector, err error) {
		if !apierrors.IsForbidden(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		once.Do(func() {
			c.opts.Log.Warn("spot evictions are not seen: apply config/admin-state, or set enableNodeAdminState to false in azure.json", "err", err)
		})
	})
	if err != nil {
		return err
	}
	return c.preemptions.SetTransform(strip(stripEvent))
}

// messageKept is how much is held of what an event says; nobody needs more of it.
const messageKept = 64

// stripEvent keeps whom an event is about, who says so, and when it occurred.
func stripEvent(e *corev1.Event) {
	*e = corev1.Event{
		ObjectMeta: identity(e.ObjectMeta, nil), InvolvedObject: corev1.ObjectReference{Name: e.InvolvedObject.Name},
		ReportingController: beginning(either(e.ReportingController, e.Source.Component), maxCode), Message: beginning(e.Message, messageKept),
		FirstTimestamp: e.FirstTimestamp, LastTimestamp: e.LastTimestamp, Count: e.Count, EventTime: e.EventTime, Series: e.Series,
	}
}

// setupPreemption adds the controller of announced evictions. Only the leader watches them.
func (c *Cluster) setupPreemption() error {
	err := c.mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		c.preemptions.RunWithContext(ctx)
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
			if e, ok := created.Object.(*corev1.Event); ok && created.IsInInitialList {
				c.heard.add(e)
			}
			return true
		},
		DeleteFunc: func(gone event.DeleteEvent) bool { c.heard.forget(gone.Object.GetUID()); return false },
	}
	return builder.ControllerManagedBy(c.mgr).Named("preemption").
		WatchesRawSource(&source.Informer{Informer: c.preemptions, Handler: mapped(itself), Predicates: []predicate.Predicate{found}}).
		WatchesRawSource(c.evicted.source()).
		WithOptions(controller.Options{RateLimiter: c.opts.Requeue.limiter()}).
		Complete(c.evicted.noting(c.reconcilePreemption))
}

// reconcilePreemption puts the taint of a spot eviction on the node that an event is about.
func (c *Cluster) reconcilePreemption(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	e := get[corev1.Event](c.preemptions.GetIndexer(), key(req.Namespace, req.Name))
	if e == nil {
		return reconcile.Result{}, nil
	}
	if !c.opts.Draining.Believes(adminstate.Announcement{Reporter: e.ReportingController, Message: e.Message}) {
		c.disbelieved(ctx, e)
		return reconcile.Result{}, nil
	}
	// A start finds the events of an hour, most of which were judged before, and agents repeat
	// themselves. That a cached node says so stays true.
	if n := get[corev1.Node](c.snap.nodes, e.InvolvedObject.Name); n != nil {
		verdict, _ := judged(n, e, c.heard.covers(e))
		if hasSpotEviction(n.Spec.Taints) {
			c.heard.add(e)
		}
		if verdict == adminstate.Ignore {
			return reconcile.Result{}, nil
		}
	}
	return outcome(ctx, c.preempt(ctx, e), 0)
}

// disbelieved tells of the first event that is not believed: whoever runs an agent of their
// own has to name it. The rest is for who looks closely, as anybody may write such events.
func (c *Cluster) disbelieved(ctx context.Context, e *corev1.Event) {
	level := slog.LevelDebug
	if c.heard.firstDoubt() {
		level = slog.LevelWarn
	}
	c.opts.Log.Log(ctx, level, "an eviction is announced by nobody who is believed: if this is your agent, add it to nodeAdminStateReporters in azure.json; the next ones are told with -v 1",
		"event", key(e.Namespace, e.Name), "node", e.InvolvedObject.Name, "reporter", sentence(e.ReportingController, maxCode), "message", sentence(e.Message, messageKept))
}

// preempt writes taint and record in one patch of the node as it is now: a patch replaces the
// list of taints, of which the cache has only some.
func (c *Cluster) preempt(ctx context.Context, e *corev1.Event) error {
	n := &corev1.Node{}
	var verdict adminstate.Verdict
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		*n = corev1.Node{}
		if err := c.reader.Get(ctx, client.ObjectKey{Name: e.InvolvedObject.Name}, n); err != nil {
			return err
		}
		if hasSpotEviction(n.Spec.Taints) {
			defer c.heard.add(e)
		}
		var record adminstate.Record
		if verdict, record = judged(n, e, c.heard.covers(e)); verdict == adminstate.Ignore {
			return nil
		}
		before := n.DeepCopy()
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, PreemptionAnnotation, record.String())
		if verdict == adminstate.Put {
			n.Spec.Taints = withSpotEviction(n.Spec.Taints)
		}
		return c.writer.Patch(ctx, n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return nil // evicted
	}
	if err != nil {
		return fmt.Errorf("taint of node %s: %w", e.InvolvedObject.Name, err)
	}
	if verdict == adminstate.Put {
		c.opts.Log.InfoContext(ctx, "a node was tainted: Azure evicts it", "node", n.Name, "event", key(e.Namespace, e.Name))
		c.events.add(n, corev1.EventTypeNormal, EventTainted,
			fmt.Sprintf("Azure evicts this spot machine (event %s): tainted %s=%s:%s", e.Name, spotEviction.Key, spotEviction.Value, spotEviction.Effect))
	}
	return nil
}

// judged asks what an event does to a node.
func judged(n *corev1.Node, e *corev1.Event, heard bool) (adminstate.Verdict, adminstate.Record) {
	return adminstate.Preempted(adminstate.Node{
		Created: n.CreationTimestamp.Time, Record: adminstate.ParseRecord(n.Annotations[PreemptionAnnotation]),
		Tainted: hasSpotEviction(n.Spec.Taints),
	}, announced(e), heard)
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
