// SPDX-License-Identifier: Apache-2.0

package services

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// serviceCluster implements servicelb.Cluster.
type serviceCluster struct{ *Reconciler }

// Service implements servicelb.Cluster.
func (c serviceCluster) Service(name string) (servicelb.Service, bool) {
	s := cache.Get[corev1.Service](c.view.Services, name)
	if s == nil {
		return servicelb.Service{}, false
	}
	return cache.ServiceLB(s), true
}

// Exists implements servicelb.Cluster.
func (c serviceCluster) Exists(ctx context.Context, name, uid string) (bool, error) {
	if cache.IsGatewayKey(name) {
		return c.gateways.Exists(ctx, name, uid)
	}
	s := &corev1.Service{}
	err := c.cfg.API.Reader.Get(ctx, cache.NamespacedName(name), s)
	return err == nil && string(s.UID) == uid, client.IgnoreNotFound(err)
}

// NamespaceLabels implements servicelb.Cluster.
func (c serviceCluster) NamespaceLabels(ctx context.Context, name string) (map[string]string, error) {
	ns := &corev1.Namespace{}
	if err := c.cfg.API.Cached.Get(ctx, client.ObjectKey{Name: name}, ns); err != nil {
		return nil, fmt.Errorf("labels of namespace %s: %w", name, err)
	}
	return ns.Labels, nil
}

// AllowsGatewayLoadBalancer implements servicelb.Cluster.
func (c serviceCluster) AllowsGatewayLoadBalancer(namespace string, balancer lb.LoadBalancerID) (allowed, known bool) {
	return c.ownership.AllowsGatewayLoadBalancer(namespace, balancer)
}

// PoolNames implements servicelb.Cluster.
func (c serviceCluster) PoolNames(s servicelb.Service) []string {
	return c.ownership.PoolNames(c.view.ServiceObject(s))
}

// RecordedPools implements servicelb.Cluster.
func (c serviceCluster) RecordedPools(s servicelb.Service, names []string, on []lb.LoadBalancerID) (recorded, created []lb.PoolID) {
	return c.ownership.RecordedPools(c.view.ServiceObject(s), names, on)
}

// ProxyProtocolNeighbor implements servicelb.Cluster.
func (c serviceCluster) ProxyProtocolNeighbor(s servicelb.Service) string {
	for _, other := range cache.List[corev1.Service](c.view.Services, cache.ServicesProxied, "") {
		svc := cache.ServiceLB(other)
		if svc.Name != s.Name && len(svc.Record.LoadBalancers) > 0 && len(s.Record.LoadBalancers) > 0 && strings.EqualFold(svc.Record.LoadBalancers[0], s.Record.LoadBalancers[0]) {
			return svc.Name
		}
	}
	return ""
}

// SharesAddress implements servicelb.Cluster.
func (c serviceCluster) SharesAddress(s servicelb.Service) bool {
	return c.view.SharesAddress(c.view.ServiceObject(s))
}

// HasEndpoints implements servicelb.Cluster.
func (c serviceCluster) HasEndpoints(name string) bool {
	return cache.IsGatewayKey(name) || c.view.HasEndpoints(name)
}

// EmptyPool implements servicelb.Cluster.
func (c serviceCluster) EmptyPool(on lb.LoadBalancerID, pools []service.Pool) string {
	for _, pool := range pools {
		holder := c.pools.PoolOwner(lb.PoolID{LoadBalancer: on, Name: pool.Name})
		if holder != nil && c.ownership.Statuses.LacksMembers(holder) {
			return pool.Name
		}
	}
	return ""
}

// ServicesWithAddress implements servicelb.Cluster.
func (c serviceCluster) ServicesWithAddress() []string {
	var names []string
	for _, s := range cache.List[corev1.Service](c.view.Services, cache.ServicesBalanced, "") {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			names = append(names, metadata.Key(s.Namespace, s.Name))
		}
	}
	return names
}
