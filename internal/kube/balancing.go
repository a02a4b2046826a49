// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/servicelb"
)

// Balancers make load balancers what Services want; see balancer.Balancers.
type Balancers interface {
	// Run works until the context is done, and returns when nothing is under way any more.
	Run(ctx context.Context)
	// Ensure queues a request; Ensured hears what came of it.
	Ensure(req balancer.Request)
	Locate(ctx context.Context, p balancer.Placing) (on string, leave []string, err error)
	ID(name string) lb.LoadBalancerID
	// Names are those of all load balancers that are the cluster's.
	Names() []string
	// Reads returns nil if the public IPs of a resource group can be read.
	Reads(ctx context.Context, group string) error
	// Leftovers returns what is named in Azure as a Service's, and no Service has it.
	Leftovers(ctx context.Context) ([]balancer.Leftover, error)
	// NodePlaces returns by address on which configuration Azure showed the nodes at first.
	NodePlaces(ctx context.Context) (map[netip.Addr]string, error)
}

// Balancing says which Services have a load balancer of Weir's.
type Balancing struct {
	// Class is the spec.loadBalancerClass of those Services; empty means those without one.
	Class string
	// AllowRemoval lets addresses be taken away, however many.
	AllowRemoval bool
	// Settings are what load balancers are made from.
	Settings service.Settings
	// Namespace is where the BackendPools of all nodes are.
	Namespace string
	// Guarded is true if a security group says who may connect.
	Guarded bool
	// RequireEffectiveRestrictions refuses Services whose restrictions have no effect.
	RequireEffectiveRestrictions bool
	// LookAgainAfter is how often a load balancer is compared though nothing changed; 0 is
	// never.
	LookAgainAfter time.Duration
	// Several are the load balancers on which nodes and Services are placed; empty where
	// there is one, which has all of them.
	Several []service.Configuration
	// AvailabilitySet returns the name of the availability set of a node's virtual machine,
	// by its providerID; see azure.Client. It is called where a configuration has a
	// PrimaryVMSet.
	AvailabilitySet func(ctx context.Context, providerID string) (string, error)
	// Rehearse returns a rehearsal for a Service that is only to be planned.
	Rehearse func() *rehearse.Rehearsal
}

// Balance has Setup run a controller of Services that have a load balancer.
func (c *Cluster) Balance(b Balancers, o Balancing) {
	c.balancers, c.balancing = b, o
	c.places.several, c.places.names = o.Several, placeNames(o.Several)
	c.serviceLBs = servicelb.New(servicelb.Config{
		Settings: servicelb.Settings{
			Class: o.Class, AllowRemoval: o.AllowRemoval, Service: o.Settings, Guarded: o.Guarded,
			RequireEffectiveRestrictions: o.RequireEffectiveRestrictions, LookAgainAfter: o.LookAgainAfter, Several: o.Several,
		},
		Cluster: serviceCluster{c}, Ledger: serviceLedger{c}, Reporter: serviceEvents{c}, Rehearser: serviceRehearser{c},
		Balancers: b, Pace: c.opts.Requeue.pace(), Log: c.opts.Log,
	})
}

func (c *Cluster) setupBalancing() error {
	return c.watchNamespaces(builder.ControllerManagedBy(c.mgr).Named("loadbalancer")).
		Watches(&corev1.Service{}, mapped(c.balancedService), builder.WithPredicates(balancedChanged())).
		Watches(&v1alpha1.BackendPool{}, mapped(c.serviceOfPool), builder.WithPredicates(poolGoes())).
		Watches(&corev1.Node{}, mapped(c.servicesAtNodes), builder.WithPredicates(c.nodeOrLabelsChanged())).
		WatchesRawSource(c.balanced.source()).
		WithOptions(controller.Options{RateLimiter: c.opts.Requeue.limiter(), NewQueue: newFairQueue, MaxConcurrentReconciles: 4}).
		Complete(c.balanced.noting(c.reconcileBalanced))
}

// reconcileBalanced has Azure hold what a Service wants, and says how far that is.
func (c *Cluster) reconcileBalanced(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	again, err := c.serviceLBs.Reconcile(ctx, req.String(), time.Now())
	if errors.Is(err, servicelb.ErrGone) {
		return reconcile.Result{}, nil
	}
	return outcome(ctx, err, again)
}

// Ensured is told what came of a request. It may be called from any goroutine.
func (c *Cluster) Ensured(r balancer.Result) {
	if c.serviceLBs.States.Ensured(r) {
		c.balanced.addName(namespaced(r.Service))
	}
}

// balancedService maps a Service to itself, if it has or had a load balancer of Weir's.
func (c *Cluster) balancedService(_ context.Context, obj client.Object) []reconcile.Request {
	name := client.ObjectKeyFromObject(obj)
	s, ok := obj.(*corev1.Service)
	_, known := c.serviceLBs.States.Known(name.String())
	if !ok || !c.ours(s) && !c.held(s) && !known {
		return nil
	}
	return []reconcile.Request{{NamespacedName: name}}
}

// serviceOfPool maps a BackendPool to its Service: it may have filled the pool that this needs.
func (c *Cluster) serviceOfPool(_ context.Context, obj client.Object) []reconcile.Request {
	p, ok := obj.(*v1alpha1.BackendPool)
	if !ok || p.Spec.ServiceRef == nil {
		return nil
	}
	name := client.ObjectKey{Namespace: p.Namespace, Name: p.Spec.ServiceRef.Name}
	c.serviceLBs.States.PoolLost(name.String(), lostPool(p))
	return []reconcile.Request{{NamespacedName: name}}
}

func lostPool(p *v1alpha1.BackendPool) servicelb.LostPool {
	return servicelb.LostPool{LoadBalancer: p.Spec.LoadBalancer.Name, Pool: p.Spec.PoolName}
}

// poolGoes lets the end of a BackendPool through alone.
func poolGoes() predicate.Predicate {
	none := func(event.CreateEvent) bool { return false }
	return predicate.Funcs{CreateFunc: none, UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// balancedChanged drops updates that change nothing of what is wanted or shown.
func balancedChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
		before, ok1 := u.ObjectOld.(*corev1.Service)
		after, ok2 := u.ObjectNew.(*corev1.Service)
		if !ok1 || !ok2 {
			return false
		}
		return before.UID != after.UID || !reflect.DeepEqual(wishing(before), wishing(after)) ||
			!reflect.DeepEqual(before.Status.LoadBalancer, after.Status.LoadBalancer) || before.Spec.Type != after.Spec.Type ||
			orElse(before.Spec.LoadBalancerClass, "") != orElse(after.Spec.LoadBalancerClass, "") ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			before.Annotations[DryRunAnnotation] != after.Annotations[DryRunAnnotation] || bound(before) != bound(after) ||
			allowsRemoval(before) != allowsRemoval(after) ||
			before.Annotations[WriteAgainAnnotation] != after.Annotations[WriteAgainAnnotation]
	}}
}

// Owners implements balancer.Cluster.
func (c *Cluster) Owners() []string {
	var owners []string
	for _, s := range list[corev1.Service](c.snap.services, servicesBalanced, "") {
		owners = append(owners, service.Owner(string(s.UID)))
	}
	slices.Sort(owners)
	return owners
}

func allowsRemoval(s *corev1.Service) bool {
	return strings.EqualFold(strings.TrimSpace(s.Annotations[AllowRemovalAnnotation]), "true")
}

func namespaced(service string) types.NamespacedName {
	namespace, name, _ := strings.Cut(service, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
