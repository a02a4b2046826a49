// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/pool/schedule"
)

// Config holds the dependencies of a Reconciler.
type Config struct {
	// Pods caches the pods with a gate, see cache.PodOptions. Status patches their statuses, and must also write while
	// this process does not lead.
	Pods   ctrlcache.Cache
	Status client.SubResourceWriter
	View   *cache.Snapshot
	Pools  Pools
	Rules  Rules
	// IsSynced reports whether View is filled.
	IsSynced func() bool
	// Leader returns whether this process leads, and for how long it has seen no renewal of the Lease.
	Leader func() (isLeader bool, sinceRenewed time.Duration)
	// CountOpened counts the opened gates.
	CountOpened func(Reason)
	Backoff     k8s.QueueBackoff
	Log         *slog.Logger
}

// Reconciler opens readiness gates, in all processes: standbys open them while no process leads.
type Reconciler struct {
	cfg    Config
	inputs inputs
	queue  k8s.WorkQueue

	mu      sync.Mutex // guards waiting
	waiting map[types.NamespacedName]waitingGate
}

// waitingGate is a gate that is not open yet.
type waitingGate struct {
	uid types.UID
	// seenSince is when this process first saw the gate.
	seenSince time.Time
	// readySince is when this process first saw the containers ready; zero if they are not.
	readySince time.Time
	// pools are the BackendPools on which the decision depends.
	pools []schedule.Ref
}

// New returns a Reconciler.
func New(c Config) *Reconciler {
	return &Reconciler{cfg: c, inputs: inputs{c.View, c.Pools, c.Rules}, waiting: map[types.NamespacedName]waitingGate{}}
}

const maxConcurrentReconciles = 4

// Setup adds the controller and its cache to the manager. Without the permission to watch pods they wait for it: the rest
// of Weir does not depend on them.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	if err := mgr.Add(everywhere{r.cfg.Pods}); err != nil {
		return err
	}
	c, err := controller.New("pod", mgr, controller.Options{
		Reconciler:  r.queue.WrapReconciler(r.Reconcile),
		RateLimiter: r.cfg.Backoff.NewRateLimiter(), NewQueue: k8s.NewNamespaceQueue, MaxConcurrentReconciles: maxConcurrentReconciles,
		NeedLeaderElection: new(false), CacheSyncTimeout: math.MaxInt64,
	})
	if err != nil {
		return fmt.Errorf("controller of pods: %w", err)
	}
	for _, from := range []source.Source{
		source.Kind(r.cfg.Pods, &corev1.Pod{}, &handler.TypedEnqueueRequestForObject[*corev1.Pod]{}, podChanged()), r.queue.Source(),
	} {
		if err := c.Watch(from); err != nil {
			return fmt.Errorf("controller of pods: %w", err)
		}
	}
	return nil
}

// everywhere runs a cache in all processes, and not only in the leader.
type everywhere struct{ ctrlcache.Cache }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// podChanged drops updates of what the cache does not keep.
func podChanged() predicate.TypedPredicate[*corev1.Pod] {
	return predicate.TypedFuncs[*corev1.Pod]{UpdateFunc: func(u event.TypedUpdateEvent[*corev1.Pod]) bool {
		before, after := *u.ObjectOld, *u.ObjectNew
		before.ResourceVersion, before.Generation = after.ResourceVersion, after.Generation
		return !reflect.DeepEqual(before, after)
	}}
}

// Reconcile decides about the gate of a pod, and opens it.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := r.cfg.Pods.Get(ctx, req.NamespacedName, pod); err != nil {
		r.forget(req.NamespacedName)
		return k8s.ReconcileResult(ctx, client.IgnoreNotFound(err), 0)
	}
	if !needsDecision(pod) {
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if !r.cfg.IsSynced() {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	d := r.decide(pod, time.Now())
	if !d.Opens {
		return reconcile.Result{RequeueAfter: d.RecheckAfter}, nil
	}
	err := r.openGate(ctx, pod, d)
	if err == nil {
		r.forget(req.NamespacedName)
	}
	return k8s.ReconcileResult(ctx, err, 0)
}

// needsDecision reports whether a pod has a closed gate that can matter.
func needsDecision(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed &&
		!cache.HasOpenGate(pod) && cache.HasGate(pod) && pod.Spec.NodeName != ""
}

func (r *Reconciler) decide(pod *corev1.Pod, now time.Time) Decision {
	isLeader, since := r.cfg.Leader()
	leader := Leader{Leads: isLeader, RenewedAt: now.Add(-since)}
	var services []Service
	var refs []schedule.Ref
	if isLeader {
		services, refs = r.inputs.services(pod, now)
	}
	seen, waiting := r.recordWaiting(pod, refs, now)
	p := Pod{Node: pod.Spec.NodeName, SeenSince: seen, WaitingSince: waiting}
	return Decide(p, services, leader, now)
}

// recordWaiting records a gate that is not open yet, and returns since when it is known, and since when only the gate keeps the pod from being ready.
// The clock of the node may differ from this one's, so the earlier of both times counts.
func (r *Reconciler) recordWaiting(pod *corev1.Pod, refs []schedule.Ref, now time.Time) (seen, waiting time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := client.ObjectKeyFromObject(pod)
	gate := r.waiting[name]
	if gate.uid != pod.UID {
		gate = waitingGate{uid: pod.UID, seenSince: now}
	}
	gate.pools = refs
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.ContainersReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case at < 0:
		gate.readySince = time.Time{}
	case gate.readySince.IsZero():
		gate.readySince = now
	}
	r.waiting[name] = gate
	if at < 0 {
		return gate.seenSince, time.Time{}
	}
	if shown := pod.Status.Conditions[at].LastTransitionTime.Time; !shown.IsZero() && shown.Before(gate.readySince) {
		return gate.seenSince, shown
	}
	return gate.seenSince, gate.readySince
}

func (r *Reconciler) forget(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, name)
}

// RequeueWaiting requeues the pods with gates that wait for a pool that was read.
func (r *Reconciler) RequeueWaiting(pool schedule.Ref) {
	for _, name := range r.waitingFor(pool) {
		r.queue.Add(name)
	}
}

func (r *Reconciler) waitingFor(pool schedule.Ref) (names []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, gate := range r.waiting {
		if slices.Contains(gate.pools, pool) {
			names = append(names, name)
		}
	}
	return names
}

// RetryFailed requeues what failed because of the API server.
func (r *Reconciler) RetryFailed(now time.Time) { r.queue.RetryFailed(now) }

// CountWaiting returns the number of closed gates that this process decides about.
func (r *Reconciler) CountWaiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// openGate sets the condition of one pod to true. The UID in the patch protects a recreated pod.
func (r *Reconciler) openGate(ctx context.Context, pod *corev1.Pod, d Decision) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: metadata.GateInPool, Status: corev1.ConditionTrue, Reason: string(d.Reason), Message: d.Message, LastTransitionTime: metav1.Now(),
		}}},
	})
	if err != nil {
		return err
	}
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	err = r.cfg.Status.Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another pod of its name is an event of its own
		return nil
	}
	if err != nil {
		return fmt.Errorf("readiness gate of pod %s: %w", metadata.Key(pod.Namespace, pod.Name), err)
	}
	r.cfg.CountOpened(d.Reason)
	level := slog.LevelDebug
	if d.Reason.FailsOpen() {
		level = slog.LevelInfo
	}
	r.cfg.Log.Log(ctx, level, "readiness gate opened", "pod", metadata.Key(pod.Namespace, pod.Name), "reason", string(d.Reason), "why", d.Message)
	return nil
}
