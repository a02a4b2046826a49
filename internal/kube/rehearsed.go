// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
)

// served are the Services that have a load balancer of Weir's, or are to have one, by name.
func (o *Offline) served() []*corev1.Service {
	all := list[corev1.Service](o.snap.services, servicesBalanced, "")
	slices.SortFunc(all, func(a, b *corev1.Service) int {
		return strings.Compare(key(a.Namespace, a.Name), key(b.Namespace, b.Name))
	})
	return all
}

// Addressed counts the Services of Weir's whose status shows an address.
func (o *Offline) Addressed() int {
	n := 0
	for _, s := range o.served() {
		if len(s.Status.LoadBalancer.Ingress) > 0 {
			n++
		}
	}
	return n
}

// Services implements rehearse.Cluster.
func (o *Offline) Services() []rehearse.Service {
	var all []rehearse.Service
	for _, s := range o.served() {
		is := rehearse.Service{Namespace: s.Namespace, Name: s.Name, Owner: service.Owner(string(s.UID)), Kept: o.serviceLBs.WhyKept(viewOf(s))}
		if o.ours(s) {
			is.NoEffect = wishing(s).Unenforced(o.balancing.Guarded)
		}
		if IsDryRun(s) {
			is.Held = DryRunAnnotation + " is set, and nothing is changed for it; name the Service to see its plan"
		}
		all = append(all, is)
	}
	return all
}

// NotServed implements rehearse.Cluster.
func (o *Offline) NotServed(namespace, name string) error {
	called := key(namespace, name)
	s := get[corev1.Service](o.snap.services, called)
	switch {
	case s == nil && namespace == metav1.NamespaceDefault:
		return fmt.Errorf("there is no Service %s: -n names another namespace", called)
	case s == nil:
		return fmt.Errorf("there is no Service %s", called)
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
		return fmt.Errorf("Service %s has type %s: a load balancer is planned for type LoadBalancer", called, s.Spec.Type)
	}
	return fmt.Errorf("Service %s has the load balancer class %s, and --load-balancer-class is %q: the controller serves that one alone",
		called, orElse(s.Spec.LoadBalancerClass, "none"), o.balancing.Class)
}

// Ask implements rehearse.Cluster.
func (o *Offline) Ask(ctx context.Context, name string) (req balancer.Request, refused string, err error) {
	s := get[corev1.Service](o.snap.services, name)
	if s == nil {
		return req, "", nil
	}
	req, refused, err = o.serviceLBs.Request(ctx, o.balancers, viewOf(s))
	if err == nil {
		return req, refused, nil
	}
	if _, ofAzure := errors.AsType[*fault.Fault](err); ofAzure {
		return req, "", err
	}
	return req, textOf(err), nil
}

// Pools implements rehearse.Cluster.
func (o *Offline) Pools() []rehearse.Pool {
	var all []rehearse.Pool
	for _, obj := range o.snap.pools.List() {
		p, ok := obj.(*v1alpha1.BackendPool)
		if !ok || o.allowsUnseen && o.unseenMembers(p) {
			continue
		}
		is := o.pools.Entitlement(p)
		e := o.statuses.Adopt(p)
		if is.Deleting && (!is.Removes() || e.Released() || o.needed(p)) {
			continue
		}
		pool := rehearse.Pool{BackendPool: key(p.Namespace, p.Name), ID: is.Pool, Ref: refOf(p)}
		if p.Spec.ServiceRef != nil {
			pool.Service = key(p.Namespace, p.Spec.ServiceRef.Name)
		}
		if !is.Works() {
			pool.Left = is.Why
		}
		all = append(all, pool)
	}
	slices.SortFunc(all, func(a, b rehearse.Pool) int { return strings.Compare(a.BackendPool, b.BackendPool) })
	return all
}

// unseenMembers reports whether the objects do not say who the members of a pool are.
func (o *Offline) unseenMembers(p *v1alpha1.BackendPool) bool {
	return len(o.snap.nodes.ListKeys()) == 0 || p.Spec.ServiceRef != nil && len(o.snap.slices.ListKeys()) == 0
}
