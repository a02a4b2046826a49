// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/servicelb"
)

// What Weir writes on a Service.
const (
	// ServiceFinalizer keeps a Service until nothing of it is left in Azure.
	ServiceFinalizer = "weir.dev/azure-load-balancer"
	// PlaceAnnotation records on a Service the names of the load balancers that may hold parts
	// of it, the one where it belongs first.
	PlaceAnnotation = "weir.dev/load-balancer"
	// GroupsAnnotation records the further resource groups that may have a public IP which was
	// made for a Service; it is absent where there are none.
	GroupsAnnotation = "weir.dev/public-ip-resource-groups"
	// ClassAnnotation records on a Service the spec.loadBalancerClass under which Weir serves it;
	// it is empty for none.
	ClassAnnotation = "weir.dev/load-balancer-class"
)

// What people write on a Service.
const (
	// AllowRemovalAnnotation lets its own addresses be taken away, however many others would lose
	// theirs.
	AllowRemovalAnnotation = servicelb.AllowRemovalAnnotation
	// WriteAgainAnnotation has Weir write at once what somebody else has undone, whenever its
	// value becomes another one.
	WriteAgainAnnotation = "weir.dev/write-again"
)

// CleanupFinalizer is that of Kubernetes' service controller, which cloud providers run: it
// keeps a Service until nothing of its load balancer is left.
const CleanupFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// serviceCluster implements servicelb.Cluster.
type serviceCluster struct{ c *Cluster }

// Service implements servicelb.Cluster.
func (v serviceCluster) Service(name string) (servicelb.Service, bool) {
	s := get[corev1.Service](v.c.snap.services, name)
	if s == nil {
		return servicelb.Service{}, false
	}
	return viewOf(s), true
}

// NamespaceLabels implements servicelb.Cluster.
func (v serviceCluster) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	ns := &corev1.Namespace{}
	if err := v.c.cached.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return nil, fmt.Errorf("labels of namespace %s: %w", name, err)
	}
	return ns.Labels, nil
}

// PoolNames implements servicelb.Cluster.
func (v serviceCluster) PoolNames(s servicelb.Service) []string {
	return v.c.poolNames(v.c.serviceObject(s))
}

// HeldPools implements servicelb.Cluster.
func (v serviceCluster) HeldPools(s servicelb.Service, names []string, on []lb.LoadBalancerID) (held, made []lb.PoolID) {
	return v.c.heldPools(v.c.serviceObject(s), names, on)
}

// NodesOf implements servicelb.Cluster.
func (v serviceCluster) NodesOf(on lb.LoadBalancerID) ([]netip.Addr, bool) { return v.c.NodesOf(on) }

// Addressed implements servicelb.Cluster.
func (v serviceCluster) Addressed() []string {
	var names []string
	for _, s := range list[corev1.Service](v.c.snap.services, servicesBalanced, "") {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			names = append(names, key(s.Namespace, s.Name))
		}
	}
	return names
}

// viewOf converts a Service.
func viewOf(s *corev1.Service) servicelb.Service {
	return servicelb.Service{
		Name: key(s.Namespace, s.Name), UID: string(s.UID), Ownership: ownership(s),
		Record: servicelb.Record{
			Places: servicelb.Names(s.Annotations[PlaceAnnotation]), Groups: servicelb.Groups(s.Annotations[GroupsAnnotation]),
			Class: recordedClass(s),
		},
		Shown: shownBy(s), Object: wishing(s),
		DryRun: dryRun(s), Problems: dryRunProblems(s), AllowRemoval: allowsRemoval(s), WriteAgain: s.Annotations[WriteAgainAnnotation],
	}
}

// serviceObject returns the Service of a view, or what stands in for one that is gone.
func (c *Cluster) serviceObject(v servicelb.Service) *corev1.Service {
	if s := get[corev1.Service](c.snap.services, v.Name); s != nil && string(s.UID) == v.UID {
		return s
	}
	name := namespaced(v.Name)
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: types.UID(v.UID)}}
}

// ownership says whose a Service is.
func ownership(s *corev1.Service) servicelb.Ownership {
	return servicelb.Ownership{
		LoadBalancer: s.Spec.Type == corev1.ServiceTypeLoadBalancer, Class: s.Spec.LoadBalancerClass, Deleting: s.DeletionTimestamp != nil,
		Finalizer: bound(s), Cleanup: controllerutil.ContainsFinalizer(s, CleanupFinalizer),
	}
}

// recordedClass is the class on record; nil if there is none.
func recordedClass(s *corev1.Service) *string {
	if class, recorded := s.Annotations[ClassAnnotation]; recorded {
		return &class
	}
	return nil
}

// ours reports whether a Service has a load balancer of Weir's, or is to have one.
func (c *Cluster) ours(s *corev1.Service) bool {
	return c.balancers != nil && ownership(s).Ours(c.balancing.Class)
}

// bound reports whether Azure may hold something of a Service.
func bound(s *corev1.Service) bool { return controllerutil.ContainsFinalizer(s, ServiceFinalizer) }

// held reports whether Azure may hold something of a Service that Weir has to remove.
func (c *Cluster) held(s *corev1.Service) bool {
	return bound(s) || c.balancers != nil && ownership(s).Held(c.balancing.Class)
}

// keeps reports whether a Service that Weir has served under another class keeps what it has in
// Azure.
func (c *Cluster) keeps(s *corev1.Service) bool {
	return c.balancers != nil && ownership(s).Kept(c.balancing.Class, recordedClass(s))
}

// shownBy are the addresses that the status of a Service shows.
func shownBy(s *corev1.Service) []netip.Addr {
	var all []netip.Addr
	for _, in := range s.Status.LoadBalancer.Ingress {
		if ip, err := netip.ParseAddr(in.IP); err == nil {
			all = append(all, ip)
		}
	}
	return all
}
