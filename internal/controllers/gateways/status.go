// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
)

// conflictDelay is the delay after a write with an outdated copy.
const conflictDelay = 100 * time.Millisecond

// supportedFeatures are the features of Gateway API that Weir supports, in order.
var supportedFeatures = []gatewayv1.SupportedFeature{{Name: "Gateway"}, {Name: "ReferenceGrant"}, {Name: "TCPRoute"}, {Name: "UDPRoute"}}

func (r *Reconciler) reconcileClass(ctx context.Context, name string) error {
	class := &gatewayv1.GatewayClass{}
	if err := r.objects.cached.Get(ctx, types.NamespacedName{Name: name}, class); err != nil {
		return client.IgnoreNotFound(err)
	}
	if class.Spec.ControllerName != routing.ControllerName {
		return nil
	}
	next := class.DeepCopy()
	accepted := metav1.Condition{
		Type: string(gatewayv1.GatewayClassConditionStatusAccepted), Status: metav1.ConditionTrue,
		Reason: string(gatewayv1.GatewayClassReasonAccepted), ObservedGeneration: class.Generation,
	}
	if class.Spec.ParametersRef != nil {
		accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, string(gatewayv1.GatewayClassReasonInvalidParameters), "Weir has no parameters: remove parametersRef, and set annotations of Gateways"
	}
	meta.SetStatusCondition(&next.Status.Conditions, accepted)
	next.Status.SupportedFeatures = supportedFeatures
	return r.patchStatus(ctx, class, next, class.Status, next.Status)
}

// writeStatus writes the status of a Gateway. s is its Service; nil if it is not served.
func (r *Reconciler) writeStatus(ctx context.Context, gw *gatewayv1.Gateway, a *routing.Attachment, s *corev1.Service) error {
	next := gw.DeepCopy()
	accepted := a.AcceptedCondition()
	if s != nil && accepted.Status == metav1.ConditionTrue {
		if c := meta.FindStatusCondition(s.Status.Conditions, cache.ConditionAccepted); c != nil && c.Status == metav1.ConditionFalse {
			accepted.Status, accepted.Reason, accepted.Message = metav1.ConditionFalse, string(gatewayv1.GatewayReasonInvalidParameters), c.Message
		}
	}
	programmed := programmedCondition(gw, s, a.IsAccepted())
	meta.SetStatusCondition(&next.Status.Conditions, accepted)
	meta.SetStatusCondition(&next.Status.Conditions, programmed)
	if s != nil && meta.FindStatusCondition(s.Status.Conditions, cache.ConditionProgrammed) != nil { // else they are unknown after a restart
		next.Status.Conditions = append(slices.DeleteFunc(next.Status.Conditions, isOwnCondition), ownConditions(s)...)
	}
	next.Status.Listeners = a.Listeners(programmed)
	for i := range next.Status.Listeners {
		l := &next.Status.Listeners[i]
		var before []metav1.Condition
		if at := slices.IndexFunc(gw.Status.Listeners, func(o gatewayv1.ListenerStatus) bool { return o.Name == l.Name }); at >= 0 {
			before = gw.Status.Listeners[at].Conditions
		}
		l.Conditions = withTimes(before, l.Conditions)
	}
	if s != nil {
		next.Status.Addresses = nil
		for _, in := range s.Status.LoadBalancer.Ingress {
			next.Status.Addresses = append(next.Status.Addresses, gatewayv1.GatewayStatusAddress{Type: ptr.To(gatewayv1.IPAddressType), Value: in.IP})
		}
	}
	return r.patchStatus(ctx, gw, next, gw.Status, next.Status)
}

// isOwnCondition reports whether a condition of a Gateway is that of its Service.
func isOwnCondition(c metav1.Condition) bool {
	return slices.Contains([]string{metadata.ConditionPrivateLink, metadata.ConditionConflict, cache.ConditionSecurityGroup, cache.ConditionAccepted, cache.ConditionProgrammed}, c.Type)
}

// ownConditions returns the conditions of a Gateway's Service that Gateway API has no condition for: Accepted and
// Programmed only if they are True for a reason that the user should know.
func ownConditions(s *corev1.Service) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(s.Status.Conditions), func(c metav1.Condition) bool {
		isStandard := c.Type == cache.ConditionAccepted || c.Type == cache.ConditionProgrammed
		return !isOwnCondition(c) || isStandard && (c.Status != metav1.ConditionTrue || !servicelb.IsNotable(c.Reason))
	})
}

// writeRemoval writes why the load balancer of a deleted Gateway is not removed yet.
func (r *Reconciler) writeRemoval(ctx context.Context, gw *gatewayv1.Gateway, s *corev1.Service) error {
	if s == nil || !hasFinalizer(gw) {
		return nil
	}
	if c := meta.FindStatusCondition(s.Status.Conditions, cache.ConditionProgrammed); c == nil || c.Status == metav1.ConditionTrue {
		return nil
	}
	next := gw.DeepCopy()
	meta.SetStatusCondition(&next.Status.Conditions, programmedCondition(gw, s, true))
	return r.patchStatus(ctx, gw, next, gw.Status, next.Status)
}

// programmedCondition returns the condition Programmed from that of the Gateway's Service.
func programmedCondition(gw *gatewayv1.Gateway, s *corev1.Service, accepted bool) metav1.Condition {
	out := metav1.Condition{Type: string(gatewayv1.GatewayConditionProgrammed), Status: metav1.ConditionFalse, ObservedGeneration: gw.Generation}
	if !accepted {
		out.Reason, out.Message = string(gatewayv1.GatewayReasonInvalid), "the Gateway is not accepted, and nothing is changed in Azure until that is fixed"
		return out
	}
	var cond *metav1.Condition
	if s != nil {
		cond = meta.FindStatusCondition(s.Status.Conditions, cache.ConditionProgrammed)
	}
	if cond == nil { // this process does not know yet
		if before := meta.FindStatusCondition(gw.Status.Conditions, out.Type); before != nil && before.ObservedGeneration > 0 {
			return *before
		}
		out.Reason, out.Message = string(gatewayv1.GatewayReasonPending), "the load balancer is being updated"
		return out
	}
	out.ObservedGeneration = cond.ObservedGeneration
	switch {
	case cond.Status == metav1.ConditionTrue && len(s.Status.LoadBalancer.Ingress) == 0:
		out.Reason, out.Message = string(gatewayv1.GatewayReasonAddressNotAssigned), "no address is assigned yet"
	case cond.Status == metav1.ConditionTrue:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, string(gatewayv1.GatewayReasonProgrammed), cond.Message
	case cond.Reason == servicelb.ConditionReasonNotAccepted:
		out.Reason, out.Message = string(gatewayv1.GatewayReasonInvalid), cond.Message
	default:
		out.Reason, out.Message = string(gatewayv1.GatewayReasonPending), cond.Reason+": "+cond.Message
	}
	return out
}

// withTimes returns conditions with the times of equal ones from before.
func withTimes(before, conditions []metav1.Condition) []metav1.Condition {
	kept := slices.DeleteFunc(slices.Clone(before), func(c metav1.Condition) bool { return meta.FindStatusCondition(conditions, c.Type) == nil })
	for _, c := range conditions {
		c.Message = humanize.FormatMessage(c.Message, humanize.MaxMessage)
		meta.SetStatusCondition(&kept, c)
	}
	return kept
}

// Bounds of the statuses of routes of other namespaces that a Gateway does not accept: anyone can refer to it.
const (
	// maxRejectedWrites is for each namespace: statuses that one floods or cannot store delay no other.
	maxRejectedWrites = 20
	rejectedDelay     = time.Second // until the next ones
)

// writeRoutes writes the statuses for a Gateway of the routes that refer or referred to it. Those of other Gateways and
// other controllers are unchanged. A failed write does not affect other routes. requeueAfter is the delay until the
// statuses beyond maxRejectedWrites.
func (r *Reconciler) writeRoutes(ctx context.Context, gateway types.NamespacedName, routes []routing.Route, parents map[client.Object][]gatewayv1.RouteParentStatus) (requeueAfter time.Duration, err error) {
	var failed []error
	rejected := map[string]int{} // by namespace
	for _, route := range routes {
		statuses := mergeParents(route, gateway, parents[route.Object])
		if equality.Semantic.DeepEqual(route.Statuses, statuses) {
			continue
		}
		if namespace := route.Object.GetNamespace(); namespace != gateway.Namespace && !slices.ContainsFunc(parents[route.Object], isAccepted) {
			if rejected[namespace]++; rejected[namespace] > maxRejectedWrites {
				requeueAfter = rejectedDelay
				continue
			}
		}
		next, ok := route.Object.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		*parentsOf(next) = statuses
		failed = append(failed, r.patchStatus(ctx, route.Object, next, route.Statuses, statuses))
	}
	return requeueAfter, errors.Join(failed...)
}

func isAccepted(st gatewayv1.RouteParentStatus) bool {
	return meta.IsStatusConditionTrue(st.Conditions, string(gatewayv1.RouteConditionAccepted))
}

func parentsOf(obj client.Object) *[]gatewayv1.RouteParentStatus {
	switch r := obj.(type) {
	case *gatewayv1.TCPRoute:
		return &r.Status.Parents
	case *gatewayv1.UDPRoute:
		return &r.Status.Parents
	case *gatewayv1.TLSRoute:
		return &r.Status.Parents
	}
	panic(fmt.Sprintf("%T is not a route", obj))
}

// mergeParents replaces the statuses of a route for one Gateway.
func mergeParents(route routing.Route, gateway types.NamespacedName, with []gatewayv1.RouteParentStatus) []gatewayv1.RouteParentStatus {
	isOurs := func(st gatewayv1.RouteParentStatus) bool {
		name, ok := route.GatewayOf(st.ParentRef)
		return ok && name == gateway && st.ControllerName == routing.ControllerName
	}
	parents := []gatewayv1.RouteParentStatus{} // status.parents is required
	for _, st := range route.Statuses {
		if !isOurs(st) {
			parents = append(parents, st)
		}
	}
	for _, st := range with {
		var before []metav1.Condition
		for _, old := range route.Statuses {
			if isOurs(old) && equality.Semantic.DeepEqual(old.ParentRef, st.ParentRef) {
				before = old.Conditions
			}
		}
		st.Conditions = withTimes(before, st.Conditions)
		parents = append(parents, st)
	}
	return keepOrder(route.Statuses, parents)
}

// keepOrder sorts statuses in the order of before, new ones last, so that several Gateways of a route do not rewrite
// it in turn.
func keepOrder(before, parents []gatewayv1.RouteParentStatus) []gatewayv1.RouteParentStatus {
	position := func(st gatewayv1.RouteParentStatus) int {
		at := slices.IndexFunc(before, func(o gatewayv1.RouteParentStatus) bool {
			return o.ControllerName == st.ControllerName && equality.Semantic.DeepEqual(o.ParentRef, st.ParentRef)
		})
		if at < 0 {
			return len(before)
		}
		return at
	}
	slices.SortStableFunc(parents, func(a, b gatewayv1.RouteParentStatus) int { return position(a) - position(b) })
	return parents
}

// patchStatus writes a changed status. A copy that is older than the object is an error, because lists are replaced.
func (r *Reconciler) patchStatus(ctx context.Context, before, next client.Object, beforeStatus, want any) error {
	if equality.Semantic.DeepEqual(beforeStatus, want) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.cfg.Status.Patch(ctx, next, patch, client.FieldOwner(k8s.FieldOwner)); err != nil {
		return fmt.Errorf("status of %T %s: %w", before, client.ObjectKeyFromObject(before), err)
	}
	return nil
}
