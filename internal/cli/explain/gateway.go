// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/status"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// maxRoutes limits the routes of a Gateway that are shown.
const maxRoutes = 50

// Gateway is a Gateway with its path to Azure.
type Gateway struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Class     string `json:"gatewayClass"`
	// Controller is the controllerName of the class; empty if it is unknown, or there is no such class.
	Controller    string             `json:"controllerName,omitempty"`
	Addresses     []string           `json:"addresses"`
	LoadBalancers []string           `json:"loadBalancers"`
	Listeners     []Listener         `json:"listeners"`
	Routes        []Route            `json:"routes"`
	MoreRoutes    int                `json:"moreRoutes,omitempty"`
	Conditions    []metav1.Condition `json:"conditions"`
	// Steps are what to do next, for each problem.
	Steps []Step `json:"steps,omitempty"`
}

// Listener is a listener: one rule for each IP family.
type Listener struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     int32  `json:"port"`
	Routes   int32  `json:"attachedRoutes"`
	// Rules are the names that Weir gives to its rules, one for each IP family.
	Rules []string `json:"rules,omitempty"`
	// Error is the first problem of the listener.
	Error string `json:"error,omitempty"`
}

// Route is a route with the Gateway as a parent.
type Route struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Listeners are those that its parentRefs name; "all" without a name.
	Listeners []string `json:"listeners"`
	Backends  []string `json:"backends"`
	Error     string   `json:"error,omitempty"`
}

// ExplainGateway describes a Gateway.
func (r Reader) ExplainGateway(ctx context.Context, namespace, name string) (Explanation, error) {
	var gw gatewayv1.Gateway
	if err := r.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &gw); err != nil {
		return Explanation{}, err
	}
	pools, err := r.listPools(ctx, namespace)
	if err != nil {
		return Explanation{}, err
	}
	gateways, err := status.ReadGateways(ctx, r.API, "")
	if err == nil && gateways.Unseen {
		gateways, err = status.ReadGateways(ctx, r.API, namespace)
	}
	if err != nil {
		return Explanation{}, err
	}
	gateways.Routes = gateways.RoutesOf(client.ObjectKeyFromObject(&gw))
	out := newGateway(&gw, gateways.Routes)
	if out.Controller, err = r.readController(ctx, gw.Spec.GatewayClassName); err != nil {
		return Explanation{}, err
	}
	for i, route := range gateways.Routes[:min(len(gateways.Routes), maxRoutes)] {
		out.Routes[i].Backends = r.describeBackends(ctx, client.ObjectKeyFromObject(&gw), route)
	}
	seen, err := status.ReadRunning(ctx, r.API, r.Now)
	if err != nil {
		return Explanation{}, err
	}
	if slices.ContainsFunc(gateways.All, func(o gatewayv1.Gateway) bool { return o.UID == gw.UID }) {
		seen.Gateways = status.Gateways{All: []gatewayv1.Gateway{gw}, Routes: gateways.Routes}
		out.addSteps(status.NewReport(seen))
	}
	pools = slices.DeleteFunc(pools, func(p v1alpha1.BackendPool) bool {
		return p.Status.MadeFor != v1alpha1.MadeForNodes || !cache.ContainsFold(out.LoadBalancers, p.Spec.LoadBalancer.Name)
	})
	explanation := Explanation{At: r.Now, Gateway: &out}
	return r.addPools(ctx, explanation, pools, nil)
}

func newGateway(gw *gatewayv1.Gateway, routes []routing.Route) Gateway {
	out := Gateway{
		Namespace: gw.Namespace, Name: gw.Name, Class: string(gw.Spec.GatewayClassName), Addresses: []string{}, LoadBalancers: []string{},
		Listeners: []Listener{}, Routes: []Route{}, Conditions: gw.Status.Conditions,
	}
	for _, a := range gw.Status.Addresses {
		out.Addresses = append(out.Addresses, a.Value)
	}
	out.LoadBalancers = append(out.LoadBalancers, LoadBalancersOf(gw)...)
	for _, l := range gw.Spec.Listeners {
		out.Listeners = append(out.Listeners, newListener(gw, l))
	}
	for _, r := range routes[:min(len(routes), maxRoutes)] {
		out.Routes = append(out.Routes, newRoute(gw, r))
	}
	out.MoreRoutes = len(routes) - len(out.Routes)
	return out
}

// LoadBalancersOf returns the load balancers on which a Gateway is.
func LoadBalancersOf(gw *gatewayv1.Gateway) []string {
	return servicelb.ParseNames(gw.Annotations[metadata.PlaceAnnotation])
}

func newListener(gw *gatewayv1.Gateway, l gatewayv1.Listener) Listener {
	out := Listener{Name: string(l.Name), Protocol: string(l.Protocol), Port: l.Port}
	for _, st := range gw.Status.Listeners {
		if st.Name != l.Name {
			continue
		}
		out.Routes = st.AttachedRoutes
		for _, c := range st.Conditions {
			if c.Status != metav1.ConditionTrue && c.Type != string(gatewayv1.ListenerConditionConflicted) && out.Error == "" {
				out.Error = c.Reason + ": " + c.Message
			}
		}
	}
	transport := corev1.ProtocolTCP
	if l.Protocol == gatewayv1.UDPProtocolType {
		transport = corev1.ProtocolUDP
	}
	if out.Routes == 0 || out.Error != "" {
		return out
	}
	spec, _ := service.BuildSpec(service.Service{
		Namespace: gw.Namespace, Name: gw.Name, UID: string(gw.UID), Families: familiesOf(gw), Ports: []service.Port{{Protocol: string(transport), Port: l.Port, NodePort: 1}},
	}, service.Settings{VirtualNetwork: "any", Subnet: "any"})
	for _, r := range spec.Rules {
		out.Rules = append(out.Rules, r.Name)
	}
	return out
}

// familiesOf returns the IP families of the addresses.
func familiesOf(gw *gatewayv1.Gateway) []lb.Family {
	families := []lb.Family{}
	for _, a := range gw.Status.Addresses {
		ip, err := netip.ParseAddr(a.Value)
		family := lb.IPv6
		if ip.Is4() {
			family = lb.IPv4
		}
		if err == nil && !slices.Contains(families, family) {
			families = append(families, family)
		}
	}
	return families
}

func newRoute(gw *gatewayv1.Gateway, r routing.Route) Route {
	out := Route{Kind: string(r.Kind), Namespace: r.Object.GetNamespace(), Name: r.Object.GetName(), Listeners: []string{}, Backends: []string{}}
	isParent := func(p gatewayv1.ParentReference) bool {
		name, ok := r.GatewayOf(p)
		return ok && name == client.ObjectKeyFromObject(gw)
	}
	for _, p := range r.Parents {
		if !isParent(p) {
			continue
		}
		at := "all"
		switch {
		case p.SectionName != nil:
			at = string(*p.SectionName)
		case p.Port != nil:
			at = "port " + strconv.Itoa(int(*p.Port))
		}
		out.Listeners = append(out.Listeners, at)
	}
	seen := false
	for _, st := range r.Statuses {
		if st.ControllerName != routing.ControllerName || !isParent(st.ParentRef) {
			continue
		}
		seen = true
		for _, c := range st.Conditions {
			if c.Status != metav1.ConditionTrue && out.Error == "" {
				out.Error = c.Reason + ": " + c.Message
			}
		}
	}
	if !seen {
		out.Error = "Weir has not begun with this route"
	}
	return out
}

// readController returns the controller of a class; empty if there is no such class, or it cannot be read.
func (r Reader) readController(ctx context.Context, name gatewayv1.ObjectName) (string, error) {
	var class gatewayv1.GatewayClass
	err := r.API.Get(ctx, client.ObjectKey{Name: string(name)}, &class)
	if err != nil && !apierrors.IsForbidden(err) {
		return "", client.IgnoreNotFound(err)
	}
	return string(class.Spec.ControllerName), nil
}

// describeBackends returns the backends of a route with their node ports and those of copies for the Gateway, where the
// Services can be read.
func (r Reader) describeBackends(ctx context.Context, gateway types.NamespacedName, route routing.Route) []string {
	backends := []string{}
	for _, ref := range route.Backends() {
		name, ok := route.ServiceOf(ref)
		text := fmt.Sprintf("%s %s", ptr.Deref(ref.Kind, routing.KindService), ref.Name)
		if !ok {
			backends = append(backends, text)
			continue
		}
		text = fmt.Sprintf("Service %s:%d", name, ptr.Deref(ref.Port, 0))
		var s corev1.Service
		if err := r.API.Get(ctx, name, &s); err == nil {
			for _, p := range s.Spec.Ports {
				if ref.Port != nil && p.Port == *ref.Port && p.NodePort != 0 && (p.Protocol == corev1.ProtocolUDP) == (route.Kind == routing.KindUDPRoute) {
					text += fmt.Sprintf(" on node port %d", p.NodePort) + r.describeCopies(ctx, gateway, name, p)
				}
			}
		}
		if weight := ptr.Deref(ref.Weight, 1); weight != 1 {
			text += fmt.Sprintf(" with weight %d", weight)
		}
		backends = append(backends, text)
	}
	return backends
}

// describeCopies returns the node ports of the copies of a backend for listeners of a Gateway; empty if there are none, or
// the Services cannot be listed.
func (r Reader) describeCopies(ctx context.Context, gateway, backend types.NamespacedName, port corev1.ServicePort) (text string) {
	var list corev1.ServiceList
	if err := r.API.List(ctx, &list, client.InNamespace(backend.Namespace), client.MatchingLabels{metadata.ManagedBy: "weir"}); err != nil {
		return ""
	}
	for i := range list.Items {
		s := &list.Items[i]
		source, ok := routing.CopySourceOf(s)
		if ok && source.Gateway == gateway && source.Backend == backend && s.Spec.Ports[0].Port == port.Port && s.Spec.Ports[0].Protocol == port.Protocol {
			text += fmt.Sprintf(", for listener %s on node port %d of copy %s", source.Listener, s.Spec.Ports[0].NodePort, s.Name)
		}
	}
	return text
}

func (g *Gateway) addSteps(r status.Report) {
	for _, c := range r.Causes {
		for _, p := range c.Objects {
			g.Steps = append(g.Steps, Step{Cause: c.Name, Why: p.Why, Fix: status.RemedyOf(c.Name, p)})
		}
	}
}

// ClassLine describes the class of the Gateway.
func (g *Gateway) ClassLine() string {
	switch g.Controller {
	case "":
		return g.Class + ". Its controller is unknown: there is no such GatewayClass, or you may not get it"
	case string(routing.ControllerName):
		return g.Class + ", which Weir serves"
	}
	return g.Class + ", which " + g.Controller + " serves, and not Weir"
}

// HasProblem reports whether a condition shows a problem. That of valid listeners is True while some are invalid.
func (g *Gateway) HasProblem(c metav1.Condition) bool {
	return c.Reason == string(gatewayv1.GatewayReasonListenersNotValid) ||
		c.Message != "" && slices.ContainsFunc(g.Steps, func(s Step) bool { return s.Why == c.Message })
}

func (ex Explanation) writeGateway(b *strings.Builder) {
	v := ex.Gateway
	b.WriteString(ex.paint(humanize.Title, "Gateway "+v.Namespace+"/"+sanitizeText(v.Name)) + "\n")
	writeLine(b, "Class", sanitizeText(v.ClassLine()))
	writeLine(b, "Addresses", joinOrDefault(v.Addresses, "none yet"))
	writeLine(b, "Load balancers", joinOrDefault(v.LoadBalancers, "none"))
	ex.writeConditions(b, v.Conditions, v.Steps)
	if len(ex.Pools) == 0 {
		writeLine(b, "BackendPools", "none")
	}
	w := tabwriter.NewWriter(b, 0, 0, 3, ' ', 0)
	fmt.Fprintf(w, "  LISTENER\tPORT\tROUTES\tRULE\n")
	for _, l := range v.Listeners {
		rule := joinOrDefault(l.Rules, "none")
		if l.Error != "" {
			rule = "none: " + sanitizeText(l.Error)
		}
		fmt.Fprintf(w, "  %s\t%d/%s\t%d\t%s\n", sanitizeText(l.Name), l.Port, sanitizeText(l.Protocol), l.Routes, rule)
	}
	w.Flush()
	if len(v.Routes) == 0 {
		writeLine(b, "Routes", "none")
		return
	}
	fmt.Fprintf(w, "  ROUTE\tLISTENERS\tBACKENDS\tSTATE\n")
	for _, r := range v.Routes {
		state := "Accepted"
		if r.Error != "" {
			state = sanitizeText(r.Error)
		}
		fmt.Fprintf(w, "  %s %s/%s\t%s\t%s\t%s\n", strings.ToLower(r.Kind), r.Namespace, sanitizeText(r.Name), joinOrDefault(r.Listeners, "-"), joinOrDefault(r.Backends, "none"), state)
	}
	w.Flush()
	if v.MoreRoutes > 0 {
		fmt.Fprintf(b, "  and %d more routes\n", v.MoreRoutes)
	}
}
