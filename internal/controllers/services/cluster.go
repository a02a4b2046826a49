// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// serviceCluster implements servicelb.Cluster.
type serviceCluster struct{ *Reconciler }

// Service implements servicelb.Cluster.
func (v serviceCluster) Service(name string) (servicelb.Service, bool) {
	s := cache.Get[corev1.Service](v.view.Services, name)
	if s == nil {
		return servicelb.Service{}, false
	}
	return cache.ServiceLB(s), true
}

// Exists implements servicelb.Cluster.
func (v serviceCluster) Exists(ctx context.Context, name, uid string) (bool, error) {
	if cache.IsGatewayKey(name) {
		return v.gateways.Exists(ctx, name, uid)
	}
	s := &corev1.Service{}
	err := v.cfg.API.Reader.Get(ctx, cache.NamespacedName(name), s)
	return err == nil && string(s.UID) == uid, client.IgnoreNotFound(err)
}

// NamespaceLabels implements servicelb.Cluster.
func (v serviceCluster) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	ns := &corev1.Namespace{}
	if err := v.cfg.API.Cached.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return nil, fmt.Errorf("labels of namespace %s: %w", name, err)
	}
	return ns.Labels, nil
}

// AllowsGatewayLoadBalancer implements servicelb.Cluster.
func (v serviceCluster) AllowsGatewayLoadBalancer(namespace string, balancer lb.LoadBalancerID) (allowed, known bool) {
	return v.ownership.AllowsGatewayLoadBalancer(namespace, balancer)
}

// PoolNames implements servicelb.Cluster.
func (v serviceCluster) PoolNames(s servicelb.Service) []string {
	return v.ownership.PoolNames(v.view.ServiceObject(s))
}

// RecordedPools implements servicelb.Cluster.
func (v serviceCluster) RecordedPools(s servicelb.Service, names []string, on []lb.LoadBalancerID) (recorded, created []lb.PoolID) {
	return v.ownership.RecordedPools(v.view.ServiceObject(s), names, on)
}

// ProxyProtocolNeighbor implements servicelb.Cluster.
func (v serviceCluster) ProxyProtocolNeighbor(s servicelb.Service) string {
	for _, other := range cache.List[corev1.Service](v.view.Services, cache.ServicesProxied, "") {
		svc := cache.ServiceLB(other)
		if svc.Name != s.Name && len(svc.Record.LoadBalancers) > 0 && len(s.Record.LoadBalancers) > 0 && strings.EqualFold(svc.Record.LoadBalancers[0], s.Record.LoadBalancers[0]) {
			return svc.Name
		}
	}
	return ""
}

// SharesAddress implements servicelb.Cluster.
func (v serviceCluster) SharesAddress(s servicelb.Service) bool {
	return v.view.SharesAddress(v.view.ServiceObject(s))
}

// HasEndpoints implements servicelb.Cluster.
func (v serviceCluster) HasEndpoints(name string) bool {
	return cache.IsGatewayKey(name) || v.view.HasEndpoints(name)
}

// EmptyPool implements servicelb.Cluster. The cache lacks the counts of BackendPools.
func (v serviceCluster) EmptyPool(on lb.LoadBalancerID, pools []service.Pool) (name string, known bool) {
	for _, pool := range pools {
		var entry *backendpool.Entry
		if holder := v.pools.PoolOwner(lb.PoolID{LoadBalancer: on, Name: pool.Name}); holder != nil {
			entry = v.ownership.Statuses.GetEntry(backendpool.RefOf(holder))
		}
		switch empty, isKnown := backendpool.IsPoolEmpty(entry); {
		case empty:
			return pool.Name, true
		case !isKnown:
			name = pool.Name
		}
	}
	return name, false
}

// ServicesWithAddress implements servicelb.Cluster.
func (v serviceCluster) ServicesWithAddress() []string {
	var names []string
	for _, s := range cache.List[corev1.Service](v.view.Services, cache.ServicesBalanced, "") {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			names = append(names, metadata.Key(s.Namespace, s.Name))
		}
	}
	return names
}
