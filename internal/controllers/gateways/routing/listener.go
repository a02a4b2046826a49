// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// listenerState is what is known of a listener before routes attach.
type listenerState struct {
	gatewayv1.Listener
	kinds []gatewayv1.RouteGroupKind
	// invalid is the reason why it is not accepted, and text the message; empty if it is.
	invalid gatewayv1.ListenerConditionReason
	text    string
	// conflict is the reason of Conflicted, empty for none.
	conflict gatewayv1.ListenerConditionReason
	// hasInvalidKinds is set if allowedRoutes names a kind that the protocol does not support.
	hasInvalidKinds bool

	attached int32
	// first is the route that receives connections.
	first *attachedRoute
	// replaced is used instead of the backend of first; nil for the same.
	replaced *Backend
	// notProgrammed is why no backend can be used; empty if one can.
	notProgrammed string
}

type attachedRoute struct {
	Route
	resolution
}

func (l *listenerState) isValid() bool { return l.invalid == "" }

// rule returns the rule of the listener; false if it has none.
func (l *listenerState) rule() (Rule, bool) {
	if !l.isValid() || l.first == nil || l.first.serving == nil || l.notProgrammed != "" {
		return Rule{}, false
	}
	if l.replaced != nil {
		return Rule{l.Name, l.Port, *l.replaced}, true
	}
	return Rule{l.Name, l.Port, *l.first.serving}, true
}

func (l *listenerState) transport() corev1.Protocol {
	if l.Protocol == gatewayv1.UDPProtocolType {
		return corev1.ProtocolUDP
	}
	return corev1.ProtocolTCP
}

func newListeners(gw *gatewayv1.Gateway) []*listenerState {
	var listeners []*listenerState
	for _, l := range gw.Spec.Listeners {
		listeners = append(listeners, newListener(l))
	}
	for i, a := range listeners {
		for j, b := range listeners {
			if i == j || a.Port != b.Port || a.transport() != b.transport() || !isLayer4(a.Protocol) || !isLayer4(b.Protocol) {
				continue
			}
			reason := gatewayv1.ListenerReasonHostnameConflict
			if a.Protocol != b.Protocol {
				reason = gatewayv1.ListenerReasonProtocolConflict
			}
			a.conflict, a.invalid = reason, reason
			a.text = fmt.Sprintf("listener %s has the same port %d: change one of them", b.Name, b.Port)
		}
	}
	return listeners
}

func isLayer4(p gatewayv1.ProtocolType) bool {
	return p == gatewayv1.TCPProtocolType || p == gatewayv1.UDPProtocolType || p == gatewayv1.TLSProtocolType
}

func newListener(l gatewayv1.Listener) *listenerState {
	s := &listenerState{Listener: l, kinds: []gatewayv1.RouteGroupKind{}}
	var kind gatewayv1.Kind
	switch l.Protocol {
	case gatewayv1.TCPProtocolType:
		kind = KindTCPRoute
	case gatewayv1.UDPProtocolType:
		kind = KindUDPRoute
	case gatewayv1.TLSProtocolType:
		if l.TLS == nil || ptr.Deref(l.TLS.Mode, gatewayv1.TLSModeTerminate) != gatewayv1.TLSModePassthrough {
			s.invalid, s.text = gatewayv1.ListenerReasonUnsupportedValue, "Azure Load Balancer does not terminate TLS: use mode Passthrough, or protocol TCP with a TCPRoute"
		}
	default:
		s.invalid, s.text = gatewayv1.ListenerReasonUnsupportedProtocol, fmt.Sprintf("Azure Load Balancer does not support protocol %s: use TCP or UDP", l.Protocol)
	}
	supports := func(k gatewayv1.RouteGroupKind) bool {
		return ptr.Deref(k.Group, gatewayv1.GroupName) == gatewayv1.GroupName && k.Kind == kind && kind != ""
	}
	if l.AllowedRoutes == nil || len(l.AllowedRoutes.Kinds) == 0 {
		if kind != "" {
			s.kinds = append(s.kinds, gatewayv1.RouteGroupKind{Group: ptr.To(gatewayv1.Group(gatewayv1.GroupName)), Kind: kind})
		}
		return s
	}
	for _, k := range l.AllowedRoutes.Kinds {
		if !supports(k) {
			s.hasInvalidKinds = true
		} else if len(s.kinds) == 0 {
			s.kinds = append(s.kinds, gatewayv1.RouteGroupKind{Group: ptr.To(gatewayv1.Group(gatewayv1.GroupName)), Kind: kind})
		}
	}
	return s
}

// allows reports whether a route may attach to the listener.
func (l *listenerState) allows(gw *gatewayv1.Gateway, r Route, c Cluster) bool {
	if !l.isValid() || !slices.ContainsFunc(l.kinds, func(k gatewayv1.RouteGroupKind) bool { return k.Kind == r.Kind }) {
		return false
	}
	from := gatewayv1.RouteNamespaces{}
	if l.AllowedRoutes != nil && l.AllowedRoutes.Namespaces != nil {
		from = *l.AllowedRoutes.Namespaces
	}
	switch ptr.Deref(from.From, gatewayv1.NamespacesFromSame) {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return r.Object.GetNamespace() == gw.Namespace
	case gatewayv1.NamespacesFromSelector:
		return c.IsNamespaceSelected(r.Object.GetNamespace(), from)
	}
	return false
}

// status returns the status without the times of the conditions.
func (l *listenerState) status(generation int64, programmed metav1.Condition) gatewayv1.ListenerStatus {
	condition := func(kind gatewayv1.ListenerConditionType, isTrue bool, reason gatewayv1.ListenerConditionReason, text string) metav1.Condition {
		return newCondition(string(kind), isTrue, string(reason), text, generation)
	}
	st := gatewayv1.ListenerStatus{Name: l.Name, SupportedKinds: l.kinds, AttachedRoutes: l.attached}
	accepted, resolved := condition(gatewayv1.ListenerConditionAccepted, true, gatewayv1.ListenerReasonAccepted, ""),
		condition(gatewayv1.ListenerConditionResolvedRefs, true, gatewayv1.ListenerReasonResolvedRefs, "")
	conflicted := condition(gatewayv1.ListenerConditionConflicted, false, gatewayv1.ListenerReasonNoConflicts, "")
	programmed.Type = string(gatewayv1.ListenerConditionProgrammed)
	if l.conflict != "" {
		conflicted = condition(gatewayv1.ListenerConditionConflicted, true, l.conflict, l.text)
	}
	if l.hasInvalidKinds {
		resolved = condition(gatewayv1.ListenerConditionResolvedRefs, false, gatewayv1.ListenerReasonInvalidRouteKinds, fmt.Sprintf("allowedRoutes names kinds that protocol %s does not support", l.Protocol))
	}
	switch {
	case !l.isValid():
		accepted = condition(gatewayv1.ListenerConditionAccepted, false, l.invalid, l.text)
		programmed = condition(gatewayv1.ListenerConditionProgrammed, false, gatewayv1.ListenerReasonInvalid, l.text)
	case l.notProgrammed != "":
		programmed = condition(gatewayv1.ListenerConditionProgrammed, false, gatewayv1.ListenerReasonInvalid, l.notProgrammed)
	case programmed.Status == metav1.ConditionTrue:
		programmed.Reason = string(gatewayv1.ListenerReasonProgrammed)
	default:
		programmed.Reason = string(gatewayv1.ListenerReasonPending)
	}
	st.Conditions = []metav1.Condition{accepted, conflicted, programmed, resolved}
	return st
}

func newCondition(kind string, isTrue bool, reason, text string, generation int64) metav1.Condition {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: text, ObservedGeneration: generation}
}
