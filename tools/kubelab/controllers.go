// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/endpointslice"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

const (
	// workers is the concurrency of each controller, kube-controller-manager's default for Deployments.
	workers = 5
	// maxEndpointsPerSlice and burstReplicas are kube-controller-manager's defaults.
	maxEndpointsPerSlice = 100
	burstReplicas        = replicaset.BurstReplicas
	// discoveryPeriod is how often the garbage collector discovers new CRDs; 30 s in production.
	discoveryPeriod = 5 * time.Second
)

// startControllers starts the controllers and the fake kubelet. They run until ctx is done. It returns
// when their caches are synced, or when starting is done.
func startControllers(ctx, starting context.Context, config *rest.Config, dualStack bool) error {
	client, err := kubernetes.NewForConfig(withoutRateLimits(config, "kubelab-controllers"))
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	core, apps := shared.Core().V1(), shared.Apps().V1()

	deployments, err := deployment.NewDeploymentController(ctx, apps.Deployments(), apps.ReplicaSets(), core.Pods(), client)
	if err != nil {
		return err
	}
	replicaSets := replicaset.NewReplicaSetController(ctx, apps.ReplicaSets(), core.Pods(), client, burstReplicas)
	jobs, err := newJobController(ctx, client, shared)
	if err != nil {
		return fmt.Errorf("Job controller: %w", err)
	}
	endpointSlices := endpointslice.NewController(ctx, core.Pods(), core.Services(), core.Nodes(),
		shared.Discovery().V1().EndpointSlices(), maxEndpointsPerSlice, client, 0)
	runNamespaces, err := newNamespaceController(ctx, config, shared)
	if err != nil {
		return fmt.Errorf("namespace controller: %w", err)
	}
	runGarbage, err := newGarbageCollector(ctx, config, shared)
	if err != nil {
		return fmt.Errorf("garbage collector: %w", err)
	}
	kubelets, err := newKubelet(client, core.Pods(), core.Nodes(), dualStack)
	if err != nil {
		return fmt.Errorf("fake kubelet: %w", err)
	}

	shared.Start(ctx.Done())
	if err := waitSynced(starting, shared); err != nil {
		return err
	}
	go deployments.Run(ctx, workers)
	go replicaSets.Run(ctx, workers)
	go jobs.Run(ctx, workers)
	go endpointSlices.Run(ctx, workers)
	go runNamespaces(ctx)
	go runGarbage(ctx)
	return kubelets.start(ctx, starting)
}

func waitSynced(ctx context.Context, shared informers.SharedInformerFactory) error {
	for kind, synced := range shared.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the list of %s did not arrive in time", kind)
		}
	}
	return nil
}

// newNamespaceController returns the controller that finalizes deleted namespaces.
func newNamespaceController(ctx context.Context, config *rest.Config, shared informers.SharedInformerFactory) (func(context.Context), error) {
	config = withoutRateLimits(config, "kubelab-namespaces")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	c := namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		shared.Core().V1().Namespaces(), 5*time.Minute, corev1.FinalizerKubernetes)
	return func(ctx context.Context) { c.Run(ctx, workers) }, nil
}

// newGarbageCollector returns the controller that deletes the dependents of deleted owners, such as the
// EndpointSlices of a Service.
func newGarbageCollector(ctx context.Context, config *rest.Config, shared informers.SharedInformerFactory) (func(context.Context), error) {
	config = withoutRateLimits(config, "kubelab-garbage-collector")
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// The collector adds its own informers and waits for started before it uses the shared ones.
	started := make(chan struct{})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	c, err := garbagecollector.NewGarbageCollector(ctx, client, objects, mapper,
		garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(shared, metadatainformer.NewSharedInformerFactory(objects, 0)), started)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		close(started)
		go c.Sync(ctx, client.Discovery(), discoveryPeriod)
		c.Run(ctx, workers, discoveryPeriod)
	}, nil
}
