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
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
	"weir.dev/weir/internal/words"
)

// served returns the Services that have, or should have, a managed load balancer.
func (c *Cluster) served() []*corev1.Service {
	all := view.List[corev1.Service](c.Rooms.View.Services, view.ServicesBalanced, "")
	slices.SortFunc(all, func(a, b *corev1.Service) int {
		return strings.Compare(view.Key(a.Namespace, a.Name), view.Key(b.Namespace, b.Name))
	})
	return all
}

// Addressed returns the number of served Services with an address in their status.
func (c *Cluster) Addressed() int {
	n := 0
	for _, s := range c.served() {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			n++
		}
	}
	return n
}

// Services implements rehearse.Cluster.
func (c *Cluster) Services() []rehearse.Service {
	var all []rehearse.Service
	for _, s := range c.served() {
		is := rehearse.Service{Namespace: s.Namespace, Name: s.Name, Owner: service.Owner(string(s.UID)), Kept: c.Rooms.Services.WhyKept(s)}
		if c.Rooms.View.Serving.Ours(s) {
			is.NoEffect = view.ServiceOf(s).Unenforced(c.Rooms.Services.Options().Guarded)
		}
		if view.DryRunValid(s) {
			is.Held = view.DryRunAnnotation + " is set, and nothing is changed for it; name the Service to see its plan"
		}
		all = append(all, is)
	}
	return all
}

// NotServed implements rehearse.Cluster.
func (c *Cluster) NotServed(namespace, name string) error {
	called := view.Key(namespace, name)
	s := view.Get[corev1.Service](c.Rooms.View.Services, called)
	switch {
	case s == nil && namespace == metav1.NamespaceDefault:
		return fmt.Errorf("there is no Service %s: -n names another namespace", called)
	case s == nil:
		return fmt.Errorf("there is no Service %s", called)
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return fmt.Errorf("%s has type %s: a load balancer is planned for type LoadBalancer", "Service "+called, s.Spec.Type)
	}
	return fmt.Errorf("%s has the load balancer class %s, and --load-balancer-class is %q: the controller serves that one alone",
		"Service "+called, ptr.Deref(s.Spec.LoadBalancerClass, "none"), c.Rooms.Services.Options().Class)
}

// Ask implements rehearse.Cluster.
func (c *Cluster) Ask(ctx context.Context, name string) (req balancer.Request, refused string, err error) {
	s := view.Get[corev1.Service](c.Rooms.View.Services, name)
	if s == nil {
		return req, "", nil
	}
	req, refused, err = c.Rooms.Services.Request(ctx, s)
	if why, is := errors.AsType[*servicelb.RefusedError](err); is {
		return req, words.OfError(why, time.Now()), nil
	}
	return req, refused, err
}

// Pools implements rehearse.Cluster.
func (c *Cluster) Pools() []rehearse.Pool {
	var all []rehearse.Pool
	for _, obj := range c.Rooms.View.Pools.List() {
		p, ok := obj.(*v1alpha1.BackendPool)
		if !ok || c.Rooms.Own.AllowUnseen && c.unseenMembers(p) {
			continue
		}
		is := c.Rooms.Pools.Entitlement(p, time.Now())
		e := c.Rooms.Own.Statuses.Adopt(p)
		if is.Deleting && (!is.Removes() || e.Released() || c.Rooms.Own.Needed(p)) {
			continue
		}
		pool := rehearse.Pool{BackendPool: view.Key(p.Namespace, p.Name), ID: is.Pool, Ref: backendpool.RefOf(p), Interfaces: c.Rooms.Own.ByMachine(p)}
		if p.Spec.ServiceRef != nil {
			pool.Service = view.Key(p.Namespace, p.Spec.ServiceRef.Name)
		}
		if !is.Works() {
			pool.Left = is.Why
		}
		all = append(all, pool)
	}
	slices.SortFunc(all, func(a, b rehearse.Pool) int { return strings.Compare(a.BackendPool, b.BackendPool) })
	return all
}

func (c *Cluster) unseenMembers(p *v1alpha1.BackendPool) bool {
	return len(c.Rooms.View.Nodes.ListKeys()) == 0 || p.Spec.ServiceRef != nil && len(c.Rooms.View.Slices.ListKeys()) == 0
}
