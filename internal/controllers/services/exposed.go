// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// ExposedServices implements loadbalancer.Cluster.
func (r *Reconciler) ExposedServices() []loadbalancer.ExposedService {
	var services []loadbalancer.ExposedService
	for _, obj := range r.view.Services.List() {
		s, ok := obj.(*corev1.Service)
		if !ok || s.Spec.Type != corev1.ServiceTypeLoadBalancer && !cache.HasFinalizer(s) {
			continue
		}
		r := loadbalancer.ExposedService{Owner: service.OwnerNameOf(string(s.UID)), Service: metadata.Key(s.Namespace, s.Name), Addresses: cache.IngressAddresses(s)}
		r.Requested = service.RequestedPlaces(s.Annotations, s.Spec.LoadBalancerIP)
		r.GatewayLoadBalancers = service.RequestedGatewayLoadBalancers(s.Annotations)
		if text := s.Annotations[service.AdditionalIPs]; text != "" {
			r.Additional = service.ParseAdditional(text)
		}
		for _, p := range s.Spec.Ports {
			if p.NodePort != 0 {
				r.NodePorts = append(r.NodePorts, p.NodePort)
			}
		}
		services = append(services, r)
	}
	return services
}

// NamespaceBounds implements loadbalancer.Cluster.
func (r *Reconciler) NamespaceBounds(namespace string) service.NamespaceSettings {
	ns := cache.Get[corev1.Namespace](r.view.Namespaces, namespace)
	if ns == nil {
		return service.NamespaceSettings{Namespace: namespace}
	}
	return service.ParseNamespaceSettings(namespace, ns.Annotations)
}

// NodeAddresses implements loadbalancer.Cluster.
func (r *Reconciler) NodeAddresses() []netip.Addr {
	var addresses []netip.Addr
	for _, obj := range r.view.Nodes.List() {
		if n, ok := obj.(*corev1.Node); ok {
			addresses = append(addresses, cache.InternalIPs(n)...)
		}
	}
	return addresses
}

// NodesOf implements loadbalancer.Cluster. It includes nodes without endpoints: those with endpoints change with
// each rollout, and nodes without one take no flows.
func (r *Reconciler) NodesOf(on lb.LoadBalancerID, allNodes bool) ([]netip.Addr, bool) {
	if !allNodes && len(r.options.Configurations) > 0 && r.CheckAllPlaced() != nil {
		return nil, false
	}
	var addresses []netip.Addr
	for i, name := range r.options.Settings.SharedPools() {
		family := []lb.Family{lb.IPv4, lb.IPv6}[i]
		interfaces := r.options.Settings.UsesInterfaces(r.MemberKind(lb.PoolID{LoadBalancer: on, Name: name}))
		shared := r.ownership.NewBackendPool(nil, on, service.Pool{Name: name, Family: family, Shared: true, Interfaces: interfaces})
		if allNodes {
			shared.Spec.Nodes.Selector = metav1.LabelSelector{}
		}
		set, err := r.view.Members(shared)
		if err != nil {
			return nil, false
		}
		for _, a := range set.Addresses {
			addresses = append(addresses, a.IP)
		}
		addresses = append(addresses, set.PendingAddresses...) // their machines may still be members
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses), true
}

func (r *Reconciler) servicesAtNodes(_ context.Context, _ client.Object) []reconcile.Request {
	var requests []reconcile.Request
	if !r.options.Guarded {
		return nil
	}
	for _, s := range cache.List[corev1.Service](r.view.Services, cache.ServicesBalanced, "") {
		if s.Annotations[service.DisableFloatingIP] != "" {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}

// ServiceOwners implements loadbalancer.Cluster.
func (r *Reconciler) ServiceOwners() []string {
	var owners []string
	for _, s := range cache.List[corev1.Service](r.view.Services, cache.ServicesBalanced, "") {
		owners = append(owners, service.OwnerNameOf(string(s.UID)))
	}
	slices.Sort(owners)
	return owners
}

// NeedsMembers implements loadbalancer.Cluster. A pool must have nine tenths of its members, not counting those that
// are Down or cannot join, because a machine may hang. Rules always wait while the BackendPool removes the
// members or the members are unknown. A pool that Weir leaves unchanged must have at least one member.
func (r *Reconciler) NeedsMembers(name string, on lb.LoadBalancerID, pool service.Pool, got lb.Pool) bool {
	s := cache.Get[corev1.Service](r.view.Services, name)
	if s == nil {
		return false
	}
	p, frozen := r.ownership.NewBackendPool(s, on, pool), false
	holder := r.pools.PoolOwner(lb.PoolID{LoadBalancer: on, Name: pool.Name})
	if holder != nil {
		binding := r.pools.ResolveBinding(holder, time.Now())
		frozen = !binding.AllowsUpdates()
		if !binding.Deleting && !cache.SelectsNoNodes(holder) {
			p = holder
		}
	}
	set, err := r.view.Members(p)
	if holder != nil {
		set = backendpool.WithoutUnusable(set, backendpool.UnusableNodes(r.ownership.Statuses.GetEntry(backendpool.RefOf(holder))))
	}
	set.Addresses = slices.DeleteFunc(slices.Clone(set.Addresses), func(a lb.Address) bool { return a.AdminState == lb.Down })
	switch n := len(set.Addresses); {
	case err != nil:
		return true
	case n == 0:
		return false
	case holder != nil && (holder.DeletionTimestamp != nil || cache.SelectsNoNodes(holder)):
		return true
	case frozen:
		return len(got.Addresses) == 0
	case got.NIC: // addresses are not shown
		return n-len(got.Addresses) > n/10
	default:
		return countMissing(set.Addresses, got.Addresses) > n/10
	}
}

func countMissing(want, got []lb.Address) int {
	present := make(map[netip.Addr]bool, len(got))
	for _, a := range got {
		present[a.IP] = true
	}
	n := 0
	for _, a := range want {
		if !present[a.IP] {
			n++
		}
	}
	return n
}

// ForeignMembers implements loadbalancer.Cluster. An address is Weir's if it is in the record of a BackendPool, or would
// be when the pool is taken. In a pool without a BackendPool, node addresses are Weir's: it is not created
// yet, or was deleted with its recorded members.
//
// In a pool of network interfaces, those of nodes are Weir's.
func (r *Reconciler) ForeignMembers(ctx context.Context, pool lb.Pool) ([]string, error) {
	if pool.NIC {
		return r.foreignInterfaces(pool), nil
	}
	holders := r.view.PoolsAt(pool.ID.Key())
	if len(holders) == 0 {
		return foreignAddresses(pool, r.view.IsNodeAddress), nil
	}
	var ours []func(netip.Addr) bool
	for _, p := range holders {
		e, err := r.ownership.Statuses.LoadEntry(ctx, p, time.Now())
		if errors.Is(err, metadata.ErrDeleted) {
			ours = append(ours, r.view.IsNodeAddress)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("what others have put into pool %s: %w", pool.ID.Name, err)
		}
		if record := e.MemberRecord(); record.Adopted {
			ours = append(ours, isOneOf(record.Written))
		} else {
			ours = append(ours, r.pools.ManagedAddresses(p))
		}
	}
	return foreignAddresses(pool, ours...), nil
}

// foreignAddresses returns the addresses of a pool that none of these functions accepts.
func foreignAddresses(pool lb.Pool, ours ...func(netip.Addr) bool) []string {
	var addresses []string
	for _, a := range pool.Addresses {
		isOurs := !a.IP.IsValid()
		for _, accepts := range ours {
			isOurs = isOurs || accepts(a.IP)
		}
		if !isOurs {
			addresses = append(addresses, a.IP.String())
		}
	}
	return addresses
}

func isOneOf(ips []netip.Addr) func(netip.Addr) bool {
	set := make(map[netip.Addr]bool, len(ips))
	for _, ip := range ips {
		set[ip] = true
	}
	return func(ip netip.Addr) bool { return set[ip] }
}
