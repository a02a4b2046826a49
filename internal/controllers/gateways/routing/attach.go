// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// ControllerName is the controllerName of Weir's GatewayClasses.
const ControllerName gatewayv1.GatewayController = "weir.dev/gateway-controller"

// Rule forwards a port of a Gateway to a node port.
type Rule struct {
	Listener gatewayv1.SectionName
	Port     int32
	Backend
}

// Attachment is a Gateway with its routes.
type Attachment struct {
	gateway *gatewayv1.Gateway
	// rejected is why the Gateway cannot be served; empty if it can.
	rejected  string
	cluster   Cluster
	listeners []*listenerState
	// Parents are the statuses of the routes for this Gateway, by route.
	Parents map[client.Object][]gatewayv1.RouteParentStatus
}

// Attach attaches routes, the oldest first, to the listeners of a Gateway.
func Attach(gw *gatewayv1.Gateway, routes []Route, c Cluster) *Attachment {
	a := &Attachment{gateway: gw, cluster: c, listeners: newListeners(gw), Parents: map[client.Object][]gatewayv1.RouteParentStatus{}}
	routes = slices.Clone(routes)
	slices.SortFunc(routes, func(x, y Route) int { return ComparePrecedence(x.Object, y.Object) })
	for _, r := range routes {
		a.attachRoute(r)
	}
	return a
}

func (a *Attachment) attachRoute(r Route) {
	var resolved *resolution
	res := func() resolution {
		if resolved == nil {
			once := r.resolve(a.cluster)
			resolved = &once
		}
		return *resolved
	}
	attached := map[*listenerState]bool{}
	for _, p := range r.Parents {
		name, ok := r.GatewayOf(p)
		if !ok || name != client.ObjectKeyFromObject(a.gateway) {
			continue
		}
		reason, text := gatewayv1.RouteReasonNoMatchingParent, "the Gateway has no listener with this sectionName or port"
		isFirst := false
		if r.Kind == KindTLSRoute {
			a.addStatus(r, p, gatewayv1.RouteReasonUnsupportedValue, "Azure Load Balancer does not see hostnames, which a TLSRoute always has: use a TCPRoute and a listener with protocol TCP for each backend", true, res)
			continue
		}
		for _, l := range a.listeners {
			if p.SectionName != nil && *p.SectionName != l.Name || p.Port != nil && *p.Port != l.Port {
				continue
			}
			if !l.allows(a.gateway, r, a.cluster) {
				if reason == gatewayv1.RouteReasonNoMatchingParent {
					reason, text = gatewayv1.RouteReasonNotAllowedByListeners, fmt.Sprintf("no valid listener that matches allows a %s of namespace %s", r.Kind, r.Object.GetNamespace())
				}
				continue
			}
			reason, text = gatewayv1.RouteReasonAccepted, ""
			if !attached[l] {
				attached[l] = true
				l.attached++
				if l.first == nil {
					l.first = &attachedRoute{r, res()}
				}
			}
			isFirst = isFirst || l.first.Object == r.Object
		}
		a.addStatus(r, p, reason, text, isFirst, res)
	}
}

func (a *Attachment) addStatus(r Route, p gatewayv1.ParentReference, reason gatewayv1.RouteConditionReason, text string, isFirst bool, resolve func() resolution) {
	generation := r.Object.GetGeneration()
	accepted := reason == gatewayv1.RouteReasonAccepted
	st := gatewayv1.RouteParentStatus{ParentRef: p, ControllerName: ControllerName}
	if !accepted && r.Object.GetNamespace() != a.gateway.Namespace { // any namespace has routes that refer here: they must cost little
		st.Conditions = []metav1.Condition{newCondition(string(gatewayv1.RouteConditionAccepted), false, string(reason), text, generation)}
		a.Parents[r.Object] = append(a.Parents[r.Object], st)
		return
	}
	res := resolve()
	switch {
	case accepted && !isFirst:
		text = "older routes of its listeners receive all connections"
	case accepted && res.ignored > 0:
		text = fmt.Sprintf("Azure Load Balancer has no weights: Service %s, which has the greatest weight, receives all connections", res.serving.Service)
	}
	resolved := newCondition(string(gatewayv1.RouteConditionResolvedRefs), true, string(gatewayv1.RouteReasonResolvedRefs), "", generation)
	if res.failed != nil {
		resolved = newCondition(string(gatewayv1.RouteConditionResolvedRefs), false, string(res.failed.reason), res.failed.text, generation)
	}
	st.Conditions = []metav1.Condition{newCondition(string(gatewayv1.RouteConditionAccepted), accepted, string(reason), text, generation), resolved}
	a.Parents[r.Object] = append(a.Parents[r.Object], st)
}

// Rules returns the wanted rules in the order of the listeners.
func (a *Attachment) Rules() []Rule {
	var rules []Rule
	for _, l := range a.listeners {
		if rule, ok := l.rule(); ok {
			rules = append(rules, rule)
		}
	}
	return rules
}

// ReplaceBackends replaces the backends of rules, in the order of the listeners. replace returns the backend to use, or why
// there is none.
func (a *Attachment) ReplaceBackends(replace func(Rule) (b Backend, problem string)) {
	for _, l := range a.listeners {
		if rule, ok := l.rule(); ok {
			b, problem := replace(rule)
			l.replaced, l.notProgrammed = &b, problem
		}
	}
}

// RejectParameters rejects the Gateway because of its annotations; empty for none.
func (a *Attachment) RejectParameters(text string) { a.rejected = text }

// Listeners returns the statuses of the listeners. programmed is the state of the load balancer.
func (a *Attachment) Listeners(programmed metav1.Condition) []gatewayv1.ListenerStatus {
	var statuses []gatewayv1.ListenerStatus
	for _, l := range a.listeners {
		statuses = append(statuses, l.status(a.gateway.Generation, programmed))
	}
	return statuses
}

// AcceptedCondition returns the condition Accepted of the Gateway.
func (a *Attachment) AcceptedCondition() metav1.Condition {
	valid := 0
	for _, l := range a.listeners {
		if l.isValid() {
			valid++
		}
	}
	condition := func(isTrue bool, reason gatewayv1.GatewayConditionReason, text string) metav1.Condition {
		return newCondition(string(gatewayv1.GatewayConditionAccepted), isTrue, string(reason), text, a.gateway.Generation)
	}
	if _, err := RequestedAddresses(a.gateway); err != nil {
		return condition(false, gatewayv1.GatewayReasonUnsupportedAddress, err.Error())
	}
	switch {
	case a.rejected != "":
		return condition(false, gatewayv1.GatewayReasonInvalidParameters, a.rejected)
	case valid == 0:
		return condition(false, gatewayv1.GatewayReasonListenersNotValid, "no listener is valid")
	case valid < len(a.listeners):
		return condition(true, gatewayv1.GatewayReasonListenersNotValid, "some listeners are not valid")
	}
	return condition(true, gatewayv1.GatewayReasonAccepted, "")
}

// RequestedAddresses returns the requested addresses, at most one per family.
func RequestedAddresses(gw *gatewayv1.Gateway) ([]netip.Addr, error) {
	var addresses []netip.Addr
	for _, address := range gw.Spec.Addresses {
		if kind := ptr.Deref(address.Type, gatewayv1.IPAddressType); kind != gatewayv1.IPAddressType {
			return nil, fmt.Errorf("addresses of type %s are not supported: use IPAddress, or an annotation with the name of a public IP", kind)
		}
		if address.Value == "" { // any
			continue
		}
		ip, err := netip.ParseAddr(address.Value)
		if err != nil {
			return nil, fmt.Errorf("address %q is not an IP address", address.Value)
		}
		if slices.ContainsFunc(addresses, func(other netip.Addr) bool { return other.Is4() == ip.Is4() }) {
			return nil, errors.New("a Gateway has at most one address per IP family")
		}
		addresses = append(addresses, ip)
	}
	return addresses, nil
}

// IsAccepted reports whether the Gateway can be served.
func (a *Attachment) IsAccepted() bool {
	return a.AcceptedCondition().Status == metav1.ConditionTrue
}
