// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	nodeNameIndex  = "spec.nodeName"
	kubeletWorkers = 8
)

// objectRef identifies a pod, or a node if namespace is empty.
type objectRef struct{ namespace, name string }

// kubelet replaces the scheduler and every node's kubelet. It processes one object at a time
// and applies nextPodStep and desiredNode.
type kubelet struct {
	client     kubernetes.Interface
	dualStack  bool
	pods       corelisters.PodLister
	podsByNode cache.Indexer
	nodes      corelisters.NodeLister
	queue      workqueue.TypedRateLimitingInterface[objectRef]
	handlers   []cache.ResourceEventHandlerRegistration

	mu        sync.Mutex // guards the fields below
	lastNode  string     // node of the last scheduled pod
	addresses *podAddresses
	// since is when a pod's deletion or a node's loss was first observed; deletionTimestamp has a
	// resolution of only 1 s.
	since map[types.UID]time.Time
	// orphanedPods are pods of a deleted node, to be removed even if a new node reuses the name.
	orphanedPods map[types.UID]bool
}

func newKubelet(client kubernetes.Interface, pods coreinformers.PodInformer, nodes coreinformers.NodeInformer, dualStack bool) (*kubelet, error) {
	k := &kubelet{
		client: client, dualStack: dualStack,
		pods: pods.Lister(), podsByNode: pods.Informer().GetIndexer(), nodes: nodes.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[objectRef](10*time.Millisecond, 5*time.Second)),
		addresses:    newPodAddresses(),
		since:        map[types.UID]time.Time{},
		orphanedPods: map[types.UID]bool{},
	}
	err := pods.Informer().AddIndexers(cache.Indexers{nodeNameIndex: func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}})
	if err != nil {
		return nil, err
	}
	podHandler, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.podSeen(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { k.podSeen(obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if pod, ok := deletedObject[*corev1.Pod](obj); ok {
				k.podDeleted(pod.UID)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	nodeHandler, err := nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { k.nodeSeen(obj.(*corev1.Node).Name) },
		UpdateFunc: func(old, obj any) {
			if before, now := old.(*corev1.Node), obj.(*corev1.Node); before.UID != now.UID {
				k.nodeDeleted(before)
			}
			k.nodeSeen(obj.(*corev1.Node).Name)
		},
		DeleteFunc: func(obj any) {
			if node, ok := deletedObject[*corev1.Node](obj); ok {
				k.nodeDeleted(node)
			}
		},
	})
	k.handlers = []cache.ResourceEventHandlerRegistration{podHandler, nodeHandler}
	return k, err
}

// deletedObject unwraps the object of a delete event, which may be a tombstone.
func deletedObject[T any](obj any) (T, bool) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	object, ok := obj.(T)
	return object, ok
}

// start runs the workers until ctx is done. It returns when all existing pods and nodes are queued, or
// when starting is done.
func (k *kubelet) start(ctx, starting context.Context) error {
	for _, h := range k.handlers {
		if !cache.WaitForCacheSync(starting.Done(), h.HasSynced) {
			return errors.New("pods and nodes did not arrive in time")
		}
	}
	context.AfterFunc(ctx, k.queue.ShutDown)
	for range kubeletWorkers {
		go func() {
			for k.work(ctx) {
			}
		}()
	}
	return nil
}

func (k *kubelet) work(ctx context.Context) bool {
	ref, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(ref)
	var err error
	if ref.namespace == "" {
		err = k.syncNode(ctx, ref.name)
	} else {
		err = k.syncPod(ctx, ref)
	}
	switch {
	case err == nil:
		k.queue.Forget(ref)
	case ctx.Err() == nil:
		// Conflict and NotFound mean that the cache is stale.
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			klog.ErrorS(err, "Fake kubelet tries again", "namespace", ref.namespace, "name", ref.name)
		}
		k.queue.AddRateLimited(ref)
	}
	return true
}

func (k *kubelet) podSeen(pod *corev1.Pod) {
	if pod.Status.PodIP != "" {
		k.mu.Lock()
		k.addresses.reserve(pod.UID, pod.Status.PodIP)
		k.mu.Unlock()
	}
	k.queue.Add(objectRef{pod.Namespace, pod.Name})
}

func (k *kubelet) podDeleted(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.addresses.release(uid)
	delete(k.since, uid)
	delete(k.orphanedPods, uid)
}

// nodeSeen queues a node, its pods, and all unscheduled pods.
func (k *kubelet) nodeSeen(name string) {
	k.queue.Add(objectRef{name: name})
	for _, pod := range append(k.podsOn(name), k.podsOn("")...) {
		k.queue.Add(objectRef{pod.Namespace, pod.Name})
	}
}

func (k *kubelet) nodeDeleted(node *corev1.Node) {
	pods := k.podsOn(node.Name)
	k.mu.Lock()
	delete(k.since, node.UID)
	for _, pod := range pods {
		k.orphanedPods[pod.UID] = true
	}
	k.mu.Unlock()
	for _, pod := range pods {
		k.queue.Add(objectRef{pod.Namespace, pod.Name})
	}
}

func (k *kubelet) podsOn(node string) []*corev1.Pod {
	objects, err := k.podsByNode.ByIndex(nodeNameIndex, node)
	if err != nil {
		panic(err) // newKubelet adds the index
	}
	pods := make([]*corev1.Pod, len(objects))
	for i, obj := range objects {
		pods[i] = obj.(*corev1.Pod)
	}
	return pods
}

func (k *kubelet) syncPod(ctx context.Context, ref objectRef) error {
	pod, err := k.pods.Pods(ref.namespace).Get(ref.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	situation, err := k.situation(ctx, pod)
	if err != nil {
		return err
	}
	step, requeue := nextPodStep(situation)
	if requeue > 0 {
		k.queue.AddAfter(ref, requeue)
	}
	switch step {
	case podBind:
		return k.bindPod(ctx, pod)
	case podServe:
		return k.reportRunning(ctx, pod, situation.node)
	case podTerminate:
		return k.reportTerminated(ctx, pod)
	case podNotReady:
		return k.patchPod(ctx, pod, corev1.PodStatus{Conditions: []corev1.PodCondition{
			condition(corev1.PodReady, corev1.ConditionFalse, "NodeStatusUnknown"),
		}})
	case podRemove:
		err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
		return ignoreNotFound(err)
	}
	return nil
}

func (k *kubelet) situation(ctx context.Context, pod *corev1.Pod) (podState, error) {
	s := podState{pod: pod}
	if name := pod.Spec.NodeName; name != "" {
		node, err := k.nodes.Get(name)
		if apierrors.IsNotFound(err) {
			// The node may be missing only from the cache: check the API server before deleting the pod.
			_, err = k.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
			if s.nodeDeleted = apierrors.IsNotFound(err); s.nodeDeleted {
				err = nil
			}
			node = nil
		}
		if err != nil {
			return s, fmt.Errorf("node %s of pod %s/%s: %w", name, pod.Namespace, pod.Name, err)
		}
		s.node = node
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s.nodeDeleted = s.nodeDeleted || k.orphanedPods[pod.UID]
	if pod.DeletionTimestamp != nil {
		s.terminating = k.sinceFirst(pod.UID)
	}
	if s.node != nil && isDead(s.node) {
		s.nodeDead = k.sinceFirst(s.node.UID)
	}
	return s, nil
}

// sinceFirst returns the time since its first call for uid. The caller must hold k.mu.
func (k *kubelet) sinceFirst(uid types.UID) time.Duration {
	first, ok := k.since[uid]
	if !ok {
		first = time.Now()
		k.since[uid] = first
	}
	return time.Since(first)
}
