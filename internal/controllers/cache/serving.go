// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/service"
)

// Serving determines the Services with a load balancer of Weir.
type Serving struct {
	// LoadBalancers is true if Weir creates load balancers.
	LoadBalancers bool
	// Class is the spec.loadBalancerClass of these Services; empty means those without one.
	Class string
}

// IsManaged reports whether Weir manages the load balancer of a Service.
func (sv Serving) IsManaged(s *corev1.Service) bool {
	return sv.LoadBalancers && OwnershipOf(s).IsManaged(sv.Class)
}

// NeedsCleanup reports whether Azure may have resources of a Service that Weir must delete.
func (sv Serving) NeedsCleanup(s *corev1.Service) bool {
	return HasFinalizer(s) || sv.LoadBalancers && OwnershipOf(s).MayHaveResources(sv.Class)
}

// IsResponsible reports whether Weir is responsible for the load balancer of a Service.
func (sv Serving) IsResponsible(s *corev1.Service) bool { return sv.IsManaged(s) || sv.NeedsCleanup(s) }

// RetainsResources reports whether a Service served under another class keeps its Azure resources.
func (sv Serving) RetainsResources(s *corev1.Service) bool {
	return sv.LoadBalancers && OwnershipOf(s).IsRetained(sv.Class, RecordedClass(s))
}

// OwnershipOf returns the ownership inputs of a Service.
func OwnershipOf(s *corev1.Service) servicelb.Ownership {
	return servicelb.Ownership{
		LoadBalancer: s.Spec.Type == corev1.ServiceTypeLoadBalancer, Class: s.Spec.LoadBalancerClass, Deleting: s.DeletionTimestamp != nil,
		Finalizer: HasFinalizer(s), Cleanup: controllerutil.ContainsFinalizer(s, metadata.CleanupFinalizer),
	}
}

// HasFinalizer reports whether the Service has Weir's finalizer.
func HasFinalizer(s *corev1.Service) bool {
	return controllerutil.ContainsFinalizer(s, metadata.ServiceFinalizer)
}

// RecordedClass returns the recorded class; nil if none.
func RecordedClass(s *corev1.Service) *string {
	if class, recorded := s.Annotations[metadata.ClassAnnotation]; recorded {
		return &class
	}
	return nil
}

// IngressAddresses returns the addresses in the status of a Service.
func IngressAddresses(s *corev1.Service) []netip.Addr {
	var addresses []netip.Addr
	for _, in := range s.Status.LoadBalancer.Ingress {
		if ip, err := netip.ParseAddr(in.IP); err == nil {
			addresses = append(addresses, ip)
		}
	}
	return addresses
}

// PrivateAddresses returns the index keys of the addresses that an internal Service requests, per namespace,
// and of those in its status.
func PrivateAddresses(s *corev1.Service) (requested, shown []string) {
	if s.Annotations[service.Internal] == "" {
		return nil, nil
	}
	addresses, internal := ServiceOf(s).PrivateAddresses()
	if !internal {
		return nil, nil
	}
	for _, address := range addresses {
		requested = append(requested, "asked "+s.Namespace+" "+address)
	}
	for _, ip := range IngressAddresses(s) {
		shown = append(shown, "shown "+ip.String())
	}
	return requested, shown
}

// SharesAddress reports whether another Service requests or has a private address of svc.
func (s *Snapshot) SharesAddress(svc *corev1.Service) bool {
	return len(s.ServicesSharingAddress(svc)) > 0
}

// ServicesSharingAddress returns the other Services that request or have a private address of svc.
func (s *Snapshot) ServicesSharingAddress(svc *corev1.Service) (neighbors []*corev1.Service) {
	requested, shown := PrivateAddresses(svc)
	for _, key := range append(requested, shown...) {
		for _, other := range List[corev1.Service](s.Services, ServicesByAddress, key) {
			if metadata.Key(other.Namespace, other.Name) != metadata.Key(svc.Namespace, svc.Name) && !slices.Contains(neighbors, other) {
				neighbors = append(neighbors, other)
			}
		}
	}
	return neighbors
}

// DedicatedPools returns the possible names of a Service's dedicated pools.
func DedicatedPools(s *corev1.Service) []string {
	names := ServiceOf(s).DedicatedPools()
	for _, defaultName := range names[:2:2] {
		names = append(names, service.HashedPoolName(defaultName, metadata.Key(s.Namespace, s.Name)))
	}
	return names
}
