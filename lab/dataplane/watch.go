// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// WatchCluster calls apply with the state of the API server, serially, after each change, until ctx is done. It
// returns after the first call; stop waits until no other one follows.
func WatchCluster(ctx context.Context, config *rest.Config, apply func(*ClusterState)) (stop func(), err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactory(client, 0)
	core, discovery := factory.Core().V1(), factory.Discovery().V1()
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{
		core.Services().Informer(), discovery.EndpointSlices().Informer(), core.Nodes().Informer(), core.Pods().Informer(),
	} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: notify, UpdateFunc: func(_, obj any) { notify(obj) }, DeleteFunc: notify,
		})
		if err != nil {
			cancel()
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		cancel()
		factory.Shutdown()
		return nil, errors.New("watching the cluster ended before it began")
	}
	read := func() {
		var state ClusterState
		var errs [4]error
		state.Services, errs[0] = core.Services().Lister().List(labels.Everything())
		state.Slices, errs[1] = discovery.EndpointSlices().Lister().List(labels.Everything())
		state.Nodes, errs[2] = core.Nodes().Lister().List(labels.Everything())
		state.Pods, errs[3] = core.Pods().Lister().List(labels.Everything())
		if errors.Join(errs[:]...) == nil { // listers of a cache do not fail
			apply(&state)
		}
	}
	read()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				read()
			}
		}
	}()
	return func() {
		cancel()
		<-done
		factory.Shutdown()
	}, nil
}
