// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// workloads acts as the controllers of Deployments and EndpointSlices, the scheduler and the kubelets, which do not run.
type workloads struct {
	kubernetes.Interface
	factory informers.SharedInformerFactory
	nodes   []string
	last    netip.Addr // pod address
	failed  func(error)
}

// startWorkloads creates the nodes and runs their pods.
func startWorkloads(ctx context.Context, config *rest.Config, nodes map[string]string, failed func(error)) (stop func(), err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	w := &workloads{Interface: client, factory: informers.NewSharedInformerFactory(client, 0), last: netip.MustParseAddr("10.244.0.0"), failed: failed}
	for name, ip := range nodes {
		node, err := client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			return nil, err
		}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
		w.nodes = append(w.nodes, name)
	}
	ctx, cancel := context.WithCancel(ctx)
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range []cache.SharedIndexInformer{
		w.factory.Apps().V1().Deployments().Informer(), w.factory.Core().V1().Services().Informer(),
		w.factory.Core().V1().Pods().Informer(), w.factory.Discovery().V1().EndpointSlices().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
		}); err != nil {
			cancel()
			return nil, err
		}
	}
	w.factory.Start(ctx.Done())
	w.factory.WaitForCacheSync(ctx.Done())
	var running sync.WaitGroup
	running.Go(func() { w.run(ctx, changed) })
	return func() {
		cancel()
		running.Wait()
		w.factory.Shutdown()
	}, nil
}

func (w *workloads) run(ctx context.Context, changed <-chan struct{}) {
	for {
		second := w.reconcile(ctx)
		var retry <-chan time.Time
		if second {
			retry = time.After(100 * time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-retry:
		}
	}
}

// reconcile reports whether the cache was stale.
func (w *workloads) reconcile(ctx context.Context) (retry bool) {
	var errs []error
	errs = append(errs, w.reconcilePods(ctx)...)
	errs = append(errs, w.reconcileSlices(ctx)...)
	for _, err := range errs {
		switch {
		case err == nil || ctx.Err() != nil:
		case apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err):
			retry = true
		default:
			w.failed(err)
			retry = true
		}
	}
	return retry
}

func (w *workloads) reconcilePods(ctx context.Context) (errs []error) {
	deployments, err := w.factory.Apps().V1().Deployments().Lister().List(labels.Everything())
	if err != nil {
		return []error{err}
	}
	pods, err := w.factory.Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		return []error{err}
	}
	existing := map[types.NamespacedName]bool{}
	for _, pod := range pods {
		existing[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = true
	}
	desired := map[types.NamespacedName]bool{}
	for _, d := range deployments {
		if d.Namespace == weirNamespace { // the test runs its process
			continue
		}
		for i := range *d.Spec.Replicas {
			pod := w.podOf(d, i)
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			desired[name] = true
			if !existing[name] {
				_, err := w.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
				errs = append(errs, err)
			}
		}
	}
	for _, pod := range pods {
		switch {
		case !desired[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]:
			errs = append(errs, w.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		case pod.Status.PodIP == "":
			errs = append(errs, w.reportRunning(ctx, pod.DeepCopy()))
		}
	}
	return errs
}

func (w *workloads) podOf(d *appsv1.Deployment, i int32) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			// Tests derive the backend from a name of this form.
			Name: fmt.Sprintf("%s-%s-%d", d.Name, d.UID[:8], i), Namespace: d.Namespace, Labels: d.Spec.Template.Labels,
		},
		Spec: *d.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = w.nodes[int(i)%len(w.nodes)]
	return pod
}

func (w *workloads) reportRunning(ctx context.Context, pod *corev1.Pod) error {
	w.last = w.last.Next()
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, w.last.String()
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	_, err := w.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

func (w *workloads) reconcileSlices(ctx context.Context) (errs []error) {
	services, err1 := w.factory.Core().V1().Services().Lister().List(labels.Everything())
	pods, err2 := w.factory.Core().V1().Pods().Lister().List(labels.Everything())
	slices, err3 := w.factory.Discovery().V1().EndpointSlices().Lister().List(labels.Everything())
	if err := errors.Join(err1, err2, err3); err != nil {
		return []error{err}
	}
	existing := map[types.NamespacedName]*discoveryv1.EndpointSlice{}
	for _, s := range slices {
		existing[types.NamespacedName{Namespace: s.Namespace, Name: s.Name}] = s
	}
	desired := map[types.NamespacedName]bool{}
	for _, s := range services {
		if len(s.Spec.Selector) == 0 {
			continue
		}
		slice := sliceOf(s, pods)
		name := types.NamespacedName{Namespace: slice.Namespace, Name: slice.Name}
		desired[name] = true
		switch before := existing[name]; {
		case before == nil:
			_, err := w.DiscoveryV1().EndpointSlices(slice.Namespace).Create(ctx, slice, metav1.CreateOptions{})
			errs = append(errs, err)
		case !equality.Semantic.DeepEqual(before.Endpoints, slice.Endpoints) || !equality.Semantic.DeepEqual(before.Ports, slice.Ports):
			slice.ResourceVersion = before.ResourceVersion
			_, err := w.DiscoveryV1().EndpointSlices(slice.Namespace).Update(ctx, slice, metav1.UpdateOptions{})
			errs = append(errs, err)
		}
	}
	for name, s := range existing {
		if s.Labels[discoveryv1.LabelManagedBy] == managedBy && !desired[name] {
			errs = append(errs, w.DiscoveryV1().EndpointSlices(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{}))
		}
	}
	return errs
}

const managedBy = "conformance"

// sliceOf lists the ready pods of a Service. Every target port of the suite is a number.
func sliceOf(s *corev1.Service, pods []*corev1.Pod) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name, Namespace: s.Namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: managedBy},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{},
	}
	for _, p := range s.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), Port: new(p.TargetPort.IntVal), AppProtocol: p.AppProtocol})
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	for _, pod := range pods {
		if pod.Namespace == s.Namespace && pod.Status.PodIP != "" && selector.Matches(labels.Set(pod.Labels)) {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
				Addresses: []string{pod.Status.PodIP}, NodeName: new(pod.Spec.NodeName),
				Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
				TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			})
		}
	}
	sortEndpoints(slice.Endpoints)
	return slice
}

// sortEndpoints makes slices of the same pods equal; a lister has no order.
func sortEndpoints(endpoints []discoveryv1.Endpoint) {
	slices.SortFunc(endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(a.Addresses[0], b.Addresses[0]) })
}
