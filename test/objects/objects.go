// SPDX-License-Identifier: Apache-2.0

// Package objects has common BackendPools, Services and Nodes for tests.
package objects

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
)

// NewBackendPool returns a NewBackendPool of the Service shop/web, created at the given minute.
func NewBackendPool(name string, minute int, edits ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Finalizers: []string{v1alpha1.Finalizer},
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)),
	}, Spec: v1alpha1.BackendPoolSpec{
		ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, IPFamily: "IPv4",
		LoadBalancer: v1alpha1.LoadBalancerReference{Name: "lb"}, PoolName: "web",
	}}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

// NewService returns shop/web.
func NewService(kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "svc"}, Spec: corev1.ServiceSpec{Type: kind}}
}

// NewNode returns node n<n> with address 10.0.0.<n>; n is below 250.
func NewNode(n int) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", n)}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprint("10.0.0.", n)}}
	return node
}

// UIDs of the Service of the managed NewBackendPool, and of a deleted Service.
const (
	WebUID     = "01234567-89ab-cdef-0123-456789abcdef"
	DeletedUID = "89abcdef-0123-4567-89ab-cdef01234567"
)

// ManagedPool returns the NewBackendPool that Weir creates for the Service shop/web on the load balancer
// kubernetes.
func ManagedPool(edits ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
	return NewBackendPool("web.kubernetes", 0, append([]func(*v1alpha1.BackendPool){OnLoadBalancer("kubernetes", ""), OfPool("shop-web"), func(p *v1alpha1.BackendPool) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: WebUID, Controller: new(true)}}
	}}, edits...)...)
}

// ManagedNodePool returns the NewBackendPool that Weir creates for all nodes.
func ManagedNodePool(edits ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
	return ManagedPool(append([]func(*v1alpha1.BackendPool){func(p *v1alpha1.BackendPool) {
		p.Namespace, p.Name, p.OwnerReferences = "weir-system", "nodes.kubernetes", nil
		p.Spec.ServiceRef, p.Spec.Nodes, p.Spec.PoolName = nil, &v1alpha1.NodeMembers{}, "kubernetes"
	}}, edits...)...)
}

// WithAzurePool gives the NewBackendPool the pool in its spec, in subscription s0 and resource group rg0.
func WithAzurePool(p *v1alpha1.BackendPool) {
	p.Status.PoolID = "/subscriptions/s0/resourceGroups/rg0/providers/Microsoft.Network/loadBalancers/" + p.Spec.LoadBalancer.Name + "/backendAddressPools/" + p.Spec.PoolName
}

// WithDeletion sets a deletion timestamp.
func WithDeletion(p *v1alpha1.BackendPool) { p.DeletionTimestamp = new(metav1.Now()) }

// RecordedAs records in the status the Service UID that Weir created it for.
func RecordedAs(uid string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Status.MadeFor = uid }
}

// OnLoadBalancer selects another load balancer; an empty resource group is the cluster's.
func OnLoadBalancer(loadBalancer, group string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) {
		p.Spec.LoadBalancer.Name, p.Spec.LoadBalancer.ResourceGroup = loadBalancer, group
	}
}

// OfPool selects another pool.
func OfPool(name string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Spec.PoolName = name }
}

// InNamespace sets the namespace.
func InNamespace(namespace string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Namespace = namespace }
}

// WithName sets the name.
func WithName(name string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Name = name }
}

// OfService sets the Service.
func OfService(name string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: name} }
}

// OwnedBy sets the UID of the first owner.
func OwnedBy(uid types.UID) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.OwnerReferences[0].UID = uid }
}
