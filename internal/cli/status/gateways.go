// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
)

// Gateways are the Gateways of Weir's classes, with the routes of the same namespaces.
type Gateways struct {
	// Unseen is set if the caller may not list them.
	Unseen bool
	All    []gatewayv1.Gateway
	Routes []routing.Route
}

// Causes for Gateways and routes.
const (
	// GatewayNotServed means that Weir has not begun with a Gateway of its class.
	GatewayNotServed = "GatewayNotServed"
	// ListenerNotAccepted, RouteNotAccepted and BackendNotResolved are conditions of Gateway API.
	ListenerNotAccepted = "ListenerNotAccepted"
	RouteNotAccepted    = "RouteNotAccepted"
	BackendNotResolved  = "BackendNotResolved"
	// ListenerNotProgrammed means that another frontend has the node port.
	ListenerNotProgrammed = "ListenerNotProgrammed"
)

// ReadGateways reads the Gateways of a namespace; empty means all. Without the types of Gateway API there are none.
func ReadGateways(ctx context.Context, api client.Reader, namespace string) (Gateways, error) {
	var gateways gatewayv1.GatewayList
	var tcp gatewayv1.TCPRouteList
	var udp gatewayv1.UDPRouteList
	var tls gatewayv1.TLSRouteList
	var classes gatewayv1.GatewayClassList
	for _, list := range []client.ObjectList{&gateways, &tcp, &udp} {
		switch err := api.List(ctx, list, client.InNamespace(namespace)); {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			return Gateways{}, nil
		case apierrors.IsForbidden(err):
			return Gateways{Unseen: true}, nil
		case err != nil:
			return Gateways{}, fmt.Errorf("reading Gateways and their routes: %w", err)
		}
	}
	switch err := api.List(ctx, &tls, client.InNamespace(namespace)); {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // older than the other types
	case apierrors.IsForbidden(err):
		return Gateways{Unseen: true}, nil
	case err != nil:
		return Gateways{}, fmt.Errorf("reading TLSRoutes: %w", err)
	}
	seesClasses := true
	switch err := api.List(ctx, &classes); {
	case apierrors.IsForbidden(err): // the finalizer decides
		seesClasses = false
	case err != nil:
		return Gateways{}, fmt.Errorf("reading GatewayClasses: %w", err)
	}
	var result Gateways
	for i := range gateways.Items {
		gw := gateways.Items[i]
		if slices.Contains(gw.Finalizers, metadata.ServiceFinalizer) || seesClasses && isClassOfWeir(classes.Items, gw.Spec.GatewayClassName) {
			result.All = append(result.All, gw)
		}
	}
	for _, list := range []client.ObjectList{&tcp, &udp, &tls} {
		if err := meta.EachListItem(list, func(obj runtime.Object) error {
			if r, isRoute := routing.RouteOf(obj.(client.Object)); isRoute {
				result.Routes = append(result.Routes, r)
			}
			return nil
		}); err != nil {
			return Gateways{}, fmt.Errorf("reading routes of Gateways: %w", err)
		}
	}
	return result, nil
}

func isClassOfWeir(classes []gatewayv1.GatewayClass, name gatewayv1.ObjectName) bool {
	return slices.ContainsFunc(classes, func(c gatewayv1.GatewayClass) bool {
		return c.Name == string(name) && c.Spec.ControllerName == routing.ControllerName
	})
}

// RoutesOf returns the routes that name a Gateway as a parent.
func (g Gateways) RoutesOf(gateway types.NamespacedName) (of []routing.Route) {
	for _, r := range g.Routes {
		if slices.ContainsFunc(r.Parents, func(p gatewayv1.ParentReference) bool {
			name, ok := r.GatewayOf(p)
			return ok && name == gateway
		}) {
			of = append(of, r)
		}
	}
	return of
}

// CheckGateway returns the problems of a Gateway, and what it waits for.
func CheckGateway(gw *gatewayv1.Gateway, now time.Time) (found, waits []Problem) {
	object := Problem{Kind: string(routing.KindGateway), Namespace: gw.Namespace, Name: gw.Name}
	problem := func(c metav1.Condition, cause string) Problem {
		p := object
		p.State, p.cause, p.Since, p.Why = c.Reason, cause, c.LastTransitionTime.Time, c.Message
		return p
	}
	if gw.DeletionTimestamp != nil {
		var failure metav1.Condition
		if c := meta.FindStatusCondition(gw.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed)); c != nil && c.Status == metav1.ConditionFalse {
			failure.Reason, failure.Message, _ = splitPending(*c)
		}
		return checkRemoval(object, &gw.ObjectMeta, failure, now)
	}
	accepted := meta.FindStatusCondition(gw.Status.Conditions, string(gatewayv1.GatewayConditionAccepted))
	switch {
	case accepted == nil || accepted.Status == metav1.ConditionUnknown:
		p := object
		p.State, p.cause, p.Since, p.Why = v1alpha1.ReasonPending, GatewayNotServed, gw.CreationTimestamp.Time, "Weir has not begun with this Gateway"
		if now.Sub(p.Since) < servingDelay {
			return nil, []Problem{p}
		}
		p.State = GatewayNotServed
		return []Problem{p}, nil
	case accepted.Status == metav1.ConditionFalse:
		return []Problem{problem(*accepted, servicelb.ConditionReasonNotAccepted)}, nil
	}
	found, waits = checkConditions(object, gw.Status.Conditions, now)
	for _, l := range gw.Status.Listeners {
		for _, c := range l.Conditions {
			if cause := listenerCause(l, c); cause != "" {
				p := problem(c, cause)
				p.State, p.Why = "listener "+string(l.Name)+": "+p.State, "listener "+string(l.Name)+": "+p.Why
				found = append(found, p)
			}
		}
	}
	programmed := meta.FindStatusCondition(gw.Status.Conditions, string(gatewayv1.GatewayConditionProgrammed))
	if programmed == nil || programmed.Status == metav1.ConditionTrue {
		return found, waits
	}
	p := problem(*programmed, servicelb.ConditionReasonUpdating)
	if reason, message, ok := splitPending(*programmed); ok {
		p.State, p.cause, p.Why = reason, failureReason(reason, message), message
	}
	switch {
	case p.cause == servicelb.ConditionReasonConflict && len(found) > 0: // the condition weir.dev/Contested has it
		return found, waits
	case now.Sub(p.Since) < maxPendingAge && isTransient(metav1.Condition{Reason: p.cause, Message: p.Why}):
		return found, append(waits, p)
	case p.cause == servicelb.ConditionReasonUpdating:
		p.cause = NoAddress
	}
	return append(found, p), waits
}

// checkRemoval returns why the load balancer of a deleted Service or Gateway is not removed yet. failure is the False
// condition Programmed, if any.
func checkRemoval(p Problem, of *metav1.ObjectMeta, failure metav1.Condition, now time.Time) (found, waits []Problem) {
	if !slices.Contains(of.Finalizers, metadata.ServiceFinalizer) {
		return nil, nil // Azure has nothing of it
	}
	p.State, p.cause, p.Since, p.Why = servicelb.ConditionReasonLeaving, servicelb.ConditionReasonLeaving, of.DeletionTimestamp.Time, "it is deleted, and Azure still has resources of it"
	if failure.Reason != "" {
		p.State, p.cause, p.Why = failure.Reason, failureReason(failure.Reason, failure.Message), failure.Message
	}
	if now.Sub(p.Since) < maxPendingAge && isTransient(metav1.Condition{Reason: p.cause, Message: p.Why}) {
		return nil, []Problem{p}
	}
	if p.cause == servicelb.ConditionReasonLeaving {
		p.fix = RemedyFor(NoAddress)
	}
	return []Problem{p}, nil
}

// failureReason returns the cause of a condition Programmed that is False.
func failureReason(reason, message string) string {
	if reason == servicelb.ConditionReasonFailed || reason == servicelb.ConditionReasonRejected {
		return causeOf(reason, message)
	}
	return reason
}

// listenerCause returns the cause of a False condition of a listener; empty if another condition reports it.
func listenerCause(l gatewayv1.ListenerStatus, c metav1.Condition) string {
	switch kind := gatewayv1.ListenerConditionType(c.Type); {
	case c.Status != metav1.ConditionFalse:
	case kind == gatewayv1.ListenerConditionAccepted, kind == gatewayv1.ListenerConditionResolvedRefs:
		return ListenerNotAccepted
	case kind == gatewayv1.ListenerConditionProgrammed && c.Reason == string(gatewayv1.ListenerReasonInvalid) && meta.IsStatusConditionTrue(l.Conditions, string(gatewayv1.ListenerConditionAccepted)):
		return ListenerNotProgrammed
	}
	return ""
}

var pendingReason = regexp.MustCompile(`^([A-Z][A-Za-z]+): (.*)$`)

// splitPending returns the reason and message of a load balancer from a condition with reason Pending.
func splitPending(c metav1.Condition) (reason, message string, ok bool) {
	at := pendingReason.FindStringSubmatch(c.Message)
	if c.Reason != string(gatewayv1.GatewayReasonPending) || at == nil {
		return "", "", false
	}
	return at[1], at[2], true
}

// CheckRoute returns the problems that Weir reports of a route; one for each reason.
func CheckRoute(r routing.Route) (found []Problem) {
	for _, st := range r.Statuses {
		if st.ControllerName != routing.ControllerName {
			continue
		}
		for _, c := range st.Conditions {
			if c.Status != metav1.ConditionFalse || slices.ContainsFunc(found, func(p Problem) bool { return p.Why == c.Message }) {
				continue
			}
			cause := RouteNotAccepted
			if c.Type == string(gatewayv1.RouteConditionResolvedRefs) {
				cause = BackendNotResolved
			}
			found = append(found, Problem{
				Kind: string(r.Kind), Namespace: r.Object.GetNamespace(), Name: r.Object.GetName(), State: c.Reason,
				Since: c.LastTransitionTime.Time, Why: c.Message, cause: cause,
			})
		}
	}
	return found
}

// addGateways counts Gateways and returns their problems and those of routes, and hints.
func (r *Report) addGateways(s Snapshot) (wrong, hints []Problem) {
	r.GatewaysUnseen = s.Gateways.Unseen
	for i := range s.Gateways.All {
		found, waits := CheckGateway(&s.Gateways.All[i], s.At)
		r.Gateways.addObject(found, len(waits) > 0)
		wrong, r.Waiting = append(wrong, found...), append(r.Waiting, waits...)
		hints = append(hints, annotationHints(string(routing.KindGateway), s.Gateways.All[i].ObjectMeta)...)
	}
	for _, route := range s.Gateways.Routes {
		wrong = append(wrong, CheckRoute(route)...)
	}
	return wrong, hints
}
