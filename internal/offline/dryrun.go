// SPDX-License-Identifier: Apache-2.0

package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/service"
)

// managedServices returns the Services that have, or should have, a managed load balancer.
func (c *Cluster) managedServices() []*corev1.Service {
	services := cache.List[corev1.Service](c.Controllers.View.Services, cache.ServicesBalanced, "")
	slices.SortFunc(services, func(a, b *corev1.Service) int {
		return strings.Compare(metadata.Key(a.Namespace, a.Name), metadata.Key(b.Namespace, b.Name))
	})
	return services
}

// CountAddresses returns the number of served Services with an address in their status.
func (c *Cluster) CountAddresses() int {
	n := 0
	for _, s := range c.managedServices() {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			n++
		}
	}
	return n
}

// Services implements dryrun.Cluster.
func (c *Cluster) Services() []dryrun.Service {
	var services []dryrun.Service
	for _, s := range c.managedServices() {
		svc := dryrun.Service{Namespace: s.Namespace, Name: s.Name, Owner: service.OwnerNameOf(string(s.UID)), RetainedReason: c.Controllers.Services.RetainReason(s)}
		if c.Controllers.View.Serving.IsManaged(s) {
			svc.NoEffect = cache.ServiceOf(s).UnenforcedReason(c.Controllers.Services.Options().Guarded)
		}
		if cache.DryRunValid(s) {
			svc.BlockedReason = metadata.DryRunAnnotation + " is set, and nothing is changed for it; name the Service to see its plan"
		}
		services = append(services, svc)
	}
	return services
}

// UnmanagedReason implements dryrun.Cluster.
func (c *Cluster) UnmanagedReason(namespace, name string) error {
	key := metadata.Key(namespace, name)
	called := service.DescribeOwner(key)
	s := cache.Get[corev1.Service](c.Controllers.View.Services, key)
	_, isGateway := service.GatewayOf(name)
	switch {
	case s == nil && isGateway:
		return fmt.Errorf("there is no %s with a GatewayClass of Weir: -n names another namespace", called)
	case s == nil && namespace == metav1.NamespaceDefault:
		return fmt.Errorf("there is no %s: -n names another namespace", called)
	case s == nil:
		return fmt.Errorf("there is no %s", called)
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return fmt.Errorf("%s has type %s: a load balancer is planned for type LoadBalancer", called, s.Spec.Type)
	}
	return fmt.Errorf("%s has the load balancer class %s, and --load-balancer-class is %q: the controller serves that one alone",
		called, ptr.Deref(s.Spec.LoadBalancerClass, "none"), c.Controllers.Services.Options().Class)
}

// BuildRequest implements dryrun.Cluster.
func (c *Cluster) BuildRequest(ctx context.Context, name string) (req loadbalancer.Request, refused string, err error) {
	s := cache.Get[corev1.Service](c.Controllers.View.Services, name)
	if s == nil {
		return req, "", nil
	}
	req, refused, err = c.Controllers.Services.BuildRequest(ctx, s)
	if reason, ok := errors.AsType[*servicelb.RejectedError](err); ok {
		return req, humanize.FormatError(reason, time.Now()), nil
	}
	return req, refused, err
}

// Pools implements dryrun.Cluster.
func (c *Cluster) Pools() []dryrun.Pool {
	var pools []dryrun.Pool
	for _, obj := range c.Controllers.View.Pools.List() {
		p, ok := obj.(*v1alpha1.BackendPool)
		if !ok || c.Controllers.Ownership.AllowUnknown && c.hasUnknownMembers(p) {
			continue
		}
		binding := c.Controllers.Pools.ResolveBinding(p, time.Now())
		e := c.Controllers.Ownership.Statuses.AdoptPool(p)
		if binding.Deleting && (!binding.RemovesMembers() || e.IsReleased() || c.Controllers.Ownership.IsInUse(p)) {
			continue
		}
		pool := dryrun.Pool{BackendPool: metadata.Key(p.Namespace, p.Name), ID: binding.Pool, Ref: backendpool.RefOf(p), Interfaces: c.Controllers.Ownership.UsesInterfaces(p)}
		if p.Spec.ServiceRef != nil {
			pool.Service = metadata.Key(p.Namespace, p.Spec.ServiceRef.Name)
		}
		if !binding.AllowsUpdates() {
			pool.SkippedReason = binding.Message
		}
		pools = append(pools, pool)
	}
	slices.SortFunc(pools, func(a, b dryrun.Pool) int { return strings.Compare(a.BackendPool, b.BackendPool) })
	return pools
}

func (c *Cluster) hasUnknownMembers(p *v1alpha1.BackendPool) bool {
	return len(c.Controllers.View.Nodes.ListKeys()) == 0 || p.Spec.ServiceRef != nil && len(c.Controllers.View.Slices.ListKeys()) == 0
}
