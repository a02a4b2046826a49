// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// excludeLabel is Kubernetes' label that excludes a node from load balancers.
const excludeLabel = "node.kubernetes.io/exclude-from-external-load-balancers"

// desiredState computes the desired pool members from the Kubernetes API. It shares no code with the
// controller, so it is an independent check.
type desiredState struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	nodes    corelisters.NodeLister

	mu      sync.Mutex // informers call from different goroutines
	changed func(service string, at time.Time, wanted addresses)
}

// watchDesired watches Services, EndpointSlices and Nodes until ctx is done. changed is called
// serially, for each named Service after each event, with the desired members of its pool, changed
// or not.
func watchDesired(ctx context.Context, config *rest.Config, changed func(service string, at time.Time, wanted addresses)) (*desiredState, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	core, discovery := factory.Core().V1(), factory.Discovery().V1()
	t := &desiredState{
		services: core.Services().Lister(), slices: discovery.EndpointSlices().Lister(), nodes: core.Nodes().Lister(),
		changed: changed,
	}
	look := func(any) { t.reportDesired(time.Now()) }
	var synced []cache.InformerSynced
	for _, informer := range []cache.SharedIndexInformer{
		core.Services().Informer(), discovery.EndpointSlices().Informer(), core.Nodes().Informer(),
	} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: look,
		})
		if err != nil {
			return nil, err
		}
		synced = append(synced, registration.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, errors.New("watching the cluster ended before it began")
	}
	return t, nil
}

func (d *desiredState) loadBalancerServices() ([]*corev1.Service, error) {
	services, err := d.services.Services(namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(services, func(a, b *corev1.Service) int { return strings.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(services, func(s *corev1.Service) bool { return s.Spec.Type != corev1.ServiceTypeLoadBalancer }), nil
}

// reportDesired reports the desired members of each Service's pool.
func (d *desiredState) reportDesired(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range allWorkloads {
		d.changed(w.name, now, d.desiredAddresses(w.name))
	}
}

func (d *desiredState) desiredAddresses(name string) addresses {
	service, err := d.services.Services(namespace).Get(name)
	if err != nil || service.DeletionTimestamp != nil {
		return addresses{}
	}
	of := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: name})
	published, err := d.slices.EndpointSlices(namespace).List(of)
	if err != nil {
		return addresses{}
	}
	return endpointHosts(published, func(node string) *corev1.Node {
		n, err := d.nodes.Get(node)
		if err != nil {
			return nil
		}
		return n
	})
}

// endpointHosts returns the IPv4 addresses of nodes with an endpoint that takes traffic: ready, or
// terminating but still serving.
func endpointHosts(published []*discoveryv1.EndpointSlice, node func(name string) *corev1.Node) addresses {
	found := addresses{}
	for _, slice := range published {
		if slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			if endpoint.NodeName == nil || !takesTraffic(endpoint.Conditions) {
				continue
			}
			n := node(*endpoint.NodeName)
			if n == nil {
				continue
			}
			if _, excluded := n.Labels[excludeLabel]; excluded {
				continue
			}
			if ip, ok := internalIPv4(n); ok {
				found[ip] = n.Name
			}
		}
	}
	return found
}

// takesTraffic applies the API's defaults for unset conditions: ready and serving are true,
// terminating is false.
func takesTraffic(c discoveryv1.EndpointConditions) bool {
	ready := c.Ready == nil || *c.Ready
	serving := c.Serving == nil || *c.Serving
	terminating := c.Terminating != nil && *c.Terminating
	return ready || serving && terminating
}

func internalIPv4(node *corev1.Node) (netip.Addr, bool) {
	for _, a := range node.Status.Addresses {
		if a.Type != corev1.NodeInternalIP {
			continue
		}
		if ip, err := netip.ParseAddr(a.Address); err == nil && ip.Is4() {
			return ip, true
		}
	}
	return netip.Addr{}, false
}
