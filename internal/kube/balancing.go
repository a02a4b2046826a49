// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/service"
)

// ServiceFinalizer keeps a Service until nothing of it is left in Azure.
const ServiceFinalizer = "weir.dev/azure-load-balancer"

// PlaceAnnotation records on a Service the names of the load balancers that may hold parts
// of it, the one where it belongs first.
const PlaceAnnotation = "weir.dev/load-balancer"

// GroupsAnnotation records the further resource groups that may have a public IP which was
// made for a Service; it is absent where there are none.
const GroupsAnnotation = "weir.dev/public-ip-resource-groups"

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
	// Settings are what wishes are made from.
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
}

// ours reports whether a Service has a load balancer of Weir's, or is to have one.
func (c *Cluster) ours(s *corev1.Service) bool {
	return c.balancers != nil && s.DeletionTimestamp == nil && s.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		orElse(s.Spec.LoadBalancerClass, "") == c.balancing.Class
}

// bound reports whether Azure may hold something of a Service.
func bound(s *corev1.Service) bool { return controllerutil.ContainsFinalizer(s, ServiceFinalizer) }

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
	is := get[corev1.Service](c.snap.services, key(req.Namespace, req.Name))
	s := is
	if s == nil {
		s = c.ghost(req.NamespacedName)
	}
	if s == nil || !c.ours(s) && !c.held(s) {
		c.claims.drop(req.NamespacedName)
		c.failing.Forget(req)
		c.removals.Stays(req.String())
		return reconcile.Result{}, nil
	}
	cl := c.claims.of(s)
	cl.mu.Lock()
	defer cl.mu.Unlock()
	now := time.Now()
	if is != nil {
		if cl.ghost { // a list that was empty had us take it for gone
			cl.level = nil
		}
		cl.ghost, cl.deleting = false, is.DeletionTimestamp != nil
	}
	defer cl.judge(c.ours(s), now)
	if c.keeps(s) {
		c.tellKept(ctx, s, cl)
		return reconcile.Result{}, nil // until it leaves, or another process serves its class
	}
	cl.loses(cl.poolLost.Swap(nil))
	if cl.running {
		return reconcile.Result{}, nil // its end comes back here
	}
	if r := cl.result; r != nil {
		if err := c.settleResult(ctx, s, cl, *r, now); err != nil {
			return outcome(ctx, err, 0)
		}
		if _, spared := errors.AsType[*balancer.RemovalError](r.Err); r.Err != nil && !spared {
			return reconcile.Result{RequeueAfter: c.again(req, cl, r.Err, now)}, nil
		}
		c.failing.Forget(req)
	}
	if wait := cl.notBefore.Sub(now); wait > 0 { // an event does not end what Azure asked for
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if err := c.ask(ctx, s, cl, now); err != nil {
		return c.unasked(ctx, req, s, cl, err, now)
	}
	if cl.ghost && cl.free {
		c.claims.drop(req.NamespacedName)
		c.failing.Forget(req)
		c.removals.Stays(req.String())
	}
	return reconcile.Result{RequeueAfter: cl.wait(now)}, nil
}

// again is when a Service is tried again after an error that was Azure's, or the plan's.
// It is the work queue's back-off, kept here: each try ends in the middle of its request,
// which would be a success to the queue itself.
func (c *Cluster) again(req reconcile.Request, cl *claim, err error, now time.Time) time.Duration {
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.RetryAt.After(now) { // whatever became of the try
		cl.notBefore = f.RetryAt
		return f.RetryAt.Sub(now)
	}
	return c.failing.When(req)
}

// settleResult makes what came of a request known. An error is that of writing it down.
func (c *Cluster) settleResult(ctx context.Context, s *corev1.Service, cl *claim, r balancer.Result, now time.Time) error {
	for _, id := range r.Gone {
		if err := c.dropNodePools(ctx, id); err != nil {
			return err
		}
	}
	if c.heldBack(cl, r, now) {
		return nil
	}
	c.tellKeptPools(s, cl, r.Kept)
	if r.Err != nil {
		cl.result = nil
		if f, ok := errors.AsType[*fault.Fault](r.Err); !ok || f.Code != balancer.CodeUpdating {
			c.complain(s, cl, troubleOf(r.Err), failedToEnsure(r))
		}
		c.warn(ctx, cl, "load balancer not as the Service wants it", r.Service, r.Err)
		return nil
	}
	finish := c.ensured
	if len(r.Filling) > 0 && c.ours(s) {
		finish = c.makeFirst
	}
	if err := finish(ctx, s, cl, r, now); err != nil {
		if errors.Is(err, errNameTaken) || !passes(err) && !errors.Is(err, errGone) && !errors.Is(err, errStillGoing) {
			c.complainOnce(s, cl, stateFailed, textOf(err))
		}
		return err // the result stays, and is written down again
	}
	cl.result = nil
	return nil
}

// ask queues a request, unless Azure is known to hold what the Service wants.
func (c *Cluster) ask(ctx context.Context, s *corev1.Service, cl *claim, now time.Time) error {
	if c.ours(s) {
		c.tellUnknown(s, cl, wishing(s).Unknown())
		c.tellUnenforced(s, cl)
	}
	wish, namespace, problems, err := c.wished(ctx, s)
	switch {
	case err != nil:
		return err
	case len(problems) > 0:
		cl.level, cl.foretold, cl.lookAt = nil, nil, time.Time{}
		c.complainOnce(s, cl, stateRefused, wrongWith(problems))
		return nil // until somebody changes it
	case wish != nil && cl.kept(s) && !dryRun(s) && cl.isLevel(wish, s.Annotations[WriteAgainAnnotation], c.selection(s.Labels, namespace), now) && !c.nodesDiffer(cl, wish):
		return c.publish(ctx, s, cl.ingress)
	case wish == nil && cl.free:
		return nil
	case cl.filling.asked != nil && !dryRun(s) && !cl.filling.over(wish, s.Annotations[WriteAgainAnnotation], now):
		return nil
	case dryRun(s):
		return c.foretell(ctx, s, cl, wish, namespace, now)
	}
	cl.foretold = nil
	spare, waits := c.sparing(ctx, s, cl, wish, now)
	if waits {
		return nil
	}
	req, places, err := c.requestBy(ctx, c.balancers, s, cl, wish, namespace)
	if err != nil {
		return &unplacedError{err}
	}
	if len(places) == 0 {
		return c.released(ctx, s, cl, nil) // Azure holds nothing of it
	}
	req.Spare, req.Recorded = spare, withFormer(places, cl.places)
	if err := c.record(ctx, s, cl, req.Recorded, req.Groups); err != nil {
		return err
	}
	c.announce(s, cl, req)
	cl.chosenBy = c.selection(s.Labels, namespace)
	cl.nodes = c.atNodes(wish, req.On)
	cl.asked, cl.running = &req, true
	c.balancers.Ensure(req)
	return nil
}

// wished returns what a Service wants of its load balancer, which is nil if it wants none of
// Weir's any more, and the labels of its namespace, if they matter.
func (c *Cluster) wished(ctx context.Context, s *corev1.Service) (wish *service.Spec, namespace map[string]string, problems []service.Problem, err error) {
	if problems = dryRunProblems(s); !c.ours(s) {
		return nil, nil, problems, nil
	}
	if namespace, err = c.namespaceLabels(ctx, s.Namespace); err != nil {
		return nil, nil, nil, err
	}
	w, more := service.Desired(c.wishOf(s), c.balancing.Settings)
	return &w, namespace, slices.Concat(problems, more, c.unenforcedProblems(s)), nil
}

// requestBy returns what has to be asked of these Balancers for a Service, and the load balancers that may hold
// parts of it then: none if Azure holds nothing of one that leaves.
func (c *Cluster) requestBy(ctx context.Context, by Balancers, s *corev1.Service, cl *claim, wish *service.Spec, namespace map[string]string) (balancer.Request, []string, error) {
	on, leave, err := by.Locate(ctx, balancer.Placing{
		Service: key(s.Namespace, s.Name), Owner: service.Owner(string(s.UID)), Labels: s.Labels, NamespaceLabels: namespace,
		Desired: wish, Recorded: cl.places,
	})
	if err != nil || on == "" && len(leave) == 0 {
		return balancer.Request{}, nil, err
	}
	for _, group := range c.groupsOf(wish) {
		if !slices.Contains(cl.groups, group) { // on record it would have to be read to the end
			if err := by.Reads(ctx, group); err != nil {
				return balancer.Request{}, nil, err
			}
		}
	}
	req := balancer.Request{
		Service: key(s.Namespace, s.Name), Owner: service.Owner(string(s.UID)), OwnPools: c.wishOf(s).OwnPools(), Desired: wish,
		Shown: shownBy(s), Groups: union(union(cl.groups, c.groupsOf(wish)), c.inheritedGroups(s)),
		Again: s.Annotations[WriteAgainAnnotation],
	}
	places := leave
	if on != "" {
		places = append([]string{on}, leave...)
		req.On = by.ID(on)
	}
	for _, name := range leave {
		req.Leave = append(req.Leave, by.ID(name))
	}
	req.HeldPools, req.MadePools = c.heldPools(s, req.OwnPools, append(slices.Clone(req.Leave), req.On))
	return req, places, nil
}

// unasked says why nothing was asked for. What is Kubernetes' trouble is the work queue's;
// why no load balancer can be chosen may be mended by other Services that go.
func (c *Cluster) unasked(ctx context.Context, req reconcile.Request, s *corev1.Service, cl *claim, err error, now time.Time) (reconcile.Result, error) {
	unplaced, ok := errors.AsType[*unplacedError](err)
	if !ok {
		return outcome(ctx, err, 0)
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Code == rehearse.CodeRehearsed {
		return reconcile.Result{RequeueAfter: c.again(req, cl, err, now)}, nil // nobody waits for it
	}
	c.complain(s, cl, troubleOf(err), unplaced.Error())
	c.warn(ctx, cl, "no load balancer for the Service", req.String(), unplaced.error)
	return reconcile.Result{RequeueAfter: c.again(req, cl, err, now)}, nil
}

// unplacedError says that no load balancer can be chosen, or no public IP be looked for.
type unplacedError struct{ error }

// Error implements error.
func (e *unplacedError) Error() string {
	return "nothing can be asked of Azure yet: " + textOf(e.error)
}

// Unwrap returns why.
func (e *unplacedError) Unwrap() error { return e.error }

// Ensured is told what came of a request. It may be called from any goroutine.
func (c *Cluster) Ensured(r balancer.Result) {
	name := namespaced(r.Service)
	cl := c.claims.known(name)
	if cl == nil {
		return
	}
	cl.mu.Lock()
	if cl.owner == r.Owner {
		cl.result, cl.running = &r, false
	}
	cl.mu.Unlock()
	c.balanced.addName(name)
}

// balancedService maps a Service to itself, if it has or had a load balancer of Weir's.
func (c *Cluster) balancedService(_ context.Context, obj client.Object) []reconcile.Request {
	name := client.ObjectKeyFromObject(obj)
	s, ok := obj.(*corev1.Service)
	if !ok || !c.ours(s) && !c.held(s) && c.claims.known(name) == nil {
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
	if cl := c.claims.known(name); cl != nil {
		cl.poolLost.Store(&p.Spec)
	}
	return []reconcile.Request{{NamespacedName: name}}
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
