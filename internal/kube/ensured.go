// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Reasons of the events about the load balancer of a Service: those of Kubernetes' own
// service controller.
const (
	EventEnsuring   = "EnsuringLoadBalancer"
	EventEnsured    = "EnsuredLoadBalancer"
	EventDeleting   = "DeletingLoadBalancer"
	EventDeleted    = "DeletedLoadBalancer"
	EventSyncFailed = "SyncLoadBalancerFailed"
)

// EventUnknownAnnotation tells of annotations that have no effect.
const EventUnknownAnnotation = "UnknownAnnotation"

// announce says that work begins, if the Service wants something new.
func (c *Cluster) announce(s *corev1.Service, cl *claim, req balancer.Request) {
	switch {
	case cl.asked != nil && reflect.DeepEqual(cl.asked.Desired, req.Desired) && cl.asked.On == req.On:
		return // another try, or a look
	case req.Desired == nil && !cl.had: // it never had one
	case req.Desired == nil:
		c.events.add(s, corev1.EventTypeNormal, EventDeleting, "Deleting load balancer")
	case cl.asked == nil && !cl.announced:
		cl.trouble = ""
		return // an earlier process has said so
	default:
		c.events.add(s, corev1.EventTypeNormal, EventEnsuring, "Ensuring load balancer")
	}
	cl.announced, cl.trouble = true, ""
}

// complain puts a failure of Azure, or of the plan, on a Service.
func (c *Cluster) complain(s *corev1.Service, cl *claim, trouble serviceState, why string) {
	cl.told, cl.trouble = why, trouble
	c.events.add(s, corev1.EventTypeWarning, EventSyncFailed, sentence("Error syncing load balancer: "+why, maxMessage))
}

// complainOnce is complain for what stays the same until somebody changes the Service.
func (c *Cluster) complainOnce(s *corev1.Service, cl *claim, trouble serviceState, why string) {
	if cl.told != why {
		c.complain(s, cl, trouble, why)
	}
}

// tellUnknown tells of annotations that have no effect, once of the same.
func (c *Cluster) tellUnknown(s *corev1.Service, cl *claim, names []string) {
	if len(names) > 0 && !slices.Equal(names, cl.unknown) {
		c.events.add(s, corev1.EventTypeWarning, EventUnknownAnnotation, sentence("misspelt, or not supported, and without effect: "+strings.Join(names, ", "), maxMessage))
	}
	cl.unknown = names
}

func failedToEnsure(r balancer.Result) string {
	if r.Desired == nil {
		return "failed to delete load balancer: " + textOf(r.Err)
	}
	return "failed to ensure load balancer: " + textOf(r.Err)
}

// textOf is an error in words, with Azure's code where there is one.
func textOf(err error) string {
	text := strings.TrimRight(sentence(err.Error(), maxMessage-200), ". ")
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return text
	}
	if code := sentence(f.Code, maxCode); code != "" && !strings.Contains(text, code) {
		text = code + ": " + text
	}
	if f.RetryAt.After(time.Now()) {
		text += "; another try follows at " + stamp(f.RetryAt)
	}
	return text
}

func wrongWith(problems []service.Problem) string {
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = p.Error()
	}
	return strings.Join(texts, "; ") + ". Nothing is changed in Azure until that is mended"
}

// ensured writes down that Azure holds what a Service wants.
func (c *Cluster) ensured(ctx context.Context, s *corev1.Service, cl *claim, r balancer.Result, now time.Time) error {
	switch {
	case r.Desired == nil:
		cl.had = cl.had || r.Changed
		return c.released(ctx, s, cl, r.Without)
	case !c.ours(s):
		return nil // it leaves meanwhile: nothing is made for it any more
	}
	if err := c.makePools(ctx, s, r); err != nil {
		// Nodes are usually placed by the next try.
		if why, ok := errors.AsType[notPlaced](err); ok && why.why != "" && cl.told != err.Error() {
			c.complain(s, cl, stateFailed, err.Error())
		}
		return err
	}
	if err := c.record(ctx, s, cl, []string{r.On.Name}, c.groupsOf(r.Desired)); err != nil {
		return err
	}
	cl.ingress = ingressOf(r)
	if err := c.publish(ctx, s, cl.ingress); err != nil {
		return err
	}
	if err := c.contested(ctx, s, cl, r.Contests); err != nil {
		return err
	}
	if r.Changed || cl.announced || cl.told != "" {
		c.events.add(s, corev1.EventTypeNormal, EventEnsured, "Ensured load balancer")
	}
	if r.Note != "" && r.Note != cl.noted {
		c.events.add(s, corev1.EventTypeWarning, EventNotGuarded, sentence(r.Note, maxMessage))
	}
	c.spared(r.Service, cl)
	cl.told, cl.noted, cl.announced, cl.had = "", r.Note, false, true
	cl.trouble, cl.warned = "", ""
	level := r.Request
	level.Leave = nil
	cl.level, cl.lookAt = &level, lookAt(r.On.Name, now, c.balancing.LookAgainAfter)
	if cl.lookAt.IsZero() {
		cl.lookAt = truce(r.Contests)
	}
	return nil
}

// released lets a Service go of which nothing is left in Azure.
func (c *Cluster) released(ctx context.Context, s *corev1.Service, cl *claim, gone []lb.PoolID) error {
	if err := c.dropPools(ctx, s, nil, gone); err != nil {
		return err
	}
	if s.DeletionTimestamp == nil {
		if err := c.publish(ctx, s, nil); err != nil {
			return err
		}
		if err := c.contested(ctx, s, cl, nil); err != nil {
			return err
		}
	}
	cl.served.Store(nil)
	if err := c.record(ctx, s, cl, nil, nil); err != nil {
		return err
	}
	if cl.had {
		c.events.add(s, corev1.EventTypeNormal, EventDeleted, "Deleted load balancer")
	}
	c.spared(key(s.Namespace, s.Name), cl)
	cl.level, cl.ingress, cl.told, cl.announced, cl.free = nil, nil, "", true, true
	cl.trouble, cl.warned, cl.had = "", "", false
	return nil
}

// ingressOf are the addresses of a load balancer, as the status has them.
func ingressOf(r balancer.Result) []corev1.LoadBalancerIngress {
	var all []corev1.LoadBalancerIngress
	for _, ip := range r.Addresses {
		if ip.IsValid() {
			all = append(all, corev1.LoadBalancerIngress{IP: ip.String()})
		}
	}
	return all
}

// publish writes the addresses into the status, if they are others.
func (c *Cluster) publish(ctx context.Context, s *corev1.Service, ingress []corev1.LoadBalancerIngress) error {
	same := func(a, b corev1.LoadBalancerIngress) bool { return a.IP == b.IP && a.Hostname == b.Hostname }
	if slices.EqualFunc(s.Status.LoadBalancer.Ingress, ingress, same) {
		return nil
	}
	next := s.DeepCopy()
	next.Status.LoadBalancer.Ingress = ingress
	err := c.mgr.GetClient().Status().Patch(ctx, next, client.MergeFrom(s), client.FieldOwner(fieldOwner))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("status of Service %s: %w", key(s.Namespace, s.Name), err)
	}
	return nil
}

// record writes down which load balancers may hold parts of a Service, which further resource
// groups public IPs of it, and under which class it is served, and keeps the Service as long as
// a load balancer may; without any it lets go of it.
func (c *Cluster) record(ctx context.Context, s *corev1.Service, cl *claim, places, groups []string) error {
	kept := bound(s)
	if len(places) == 0 || s.DeletionTimestamp != nil { // one that goes gets no finalizer any more
		kept = c.held(s)
	}
	class := cl.class
	switch {
	case len(places) == 0:
		class = nil
	case c.ours(s):
		class = &c.balancing.Class
	}
	if slices.Equal(cl.places, places) && slices.Equal(cl.groups, groups) && kept == (len(places) > 0) && reflect.DeepEqual(cl.class, class) {
		return nil
	}
	if cl.ghost {
		cl.places, cl.groups = slices.Clone(places), slices.Clone(groups)
		return nil
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		fresh := &corev1.Service{}
		if err := c.reader.Get(ctx, client.ObjectKeyFromObject(s), fresh); err != nil {
			return err
		}
		if fresh.UID != s.UID || len(places) > 0 && fresh.DeletionTimestamp != nil && !c.held(fresh) {
			return errGone // too late to keep it: nothing of it may come into Azure
		}
		before := fresh.DeepCopy()
		if len(places) > 0 && fresh.DeletionTimestamp == nil {
			controllerutil.AddFinalizer(fresh, ServiceFinalizer)
		}
		if len(places) == 0 {
			c.letGo(fresh)
		}
		keep(fresh, PlaceAnnotation, places)
		keep(fresh, GroupsAnnotation, groups)
		keepClass(fresh, class)
		return c.writer.Patch(ctx, fresh, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner))
	})
	if apierrors.IsNotFound(err) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("finalizer of Service %s: %w", key(s.Namespace, s.Name), err)
	}
	cl.places, cl.groups, cl.class, cl.free = slices.Clone(places), slices.Clone(groups), class, false
	return nil
}

// keepClass writes the record of a class, which may be none; without a record there is none.
func keepClass(s *corev1.Service, class *string) {
	if class == nil {
		delete(s.Annotations, ClassAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, ClassAnnotation, *class)
}

// keep writes a record of names; without any there is none.
func keep(s *corev1.Service, annotation string, names []string) {
	if len(names) == 0 {
		delete(s.Annotations, annotation)
		return
	}
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotation, strings.Join(names, ","))
}
