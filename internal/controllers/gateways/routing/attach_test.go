// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// world is a Cluster.
type world struct {
	services map[string]*corev1.Service
	grants   []gatewayv1.ReferenceGrant
	selected string // namespace
}

func (w world) Service(name types.NamespacedName) *corev1.Service { return w.services[name.String()] }

func (w world) IsPermitted(r Route, service types.NamespacedName) bool {
	return slices.ContainsFunc(w.grants, func(g gatewayv1.ReferenceGrant) bool { return IsGranted(&g, r, service) })
}

func (w world) IsNamespaceSelected(namespace string, _ gatewayv1.RouteNamespaces) bool {
	return namespace == w.selected
}

func newWorld() world {
	service := func(nodePort int32, edit func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
			{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: nodePort}, {Port: 53, Protocol: corev1.ProtocolUDP, NodePort: nodePort},
		}}}
		if edit != nil {
			edit(s)
		}
		return s
	}
	return world{services: map[string]*corev1.Service{
		"shop/a": service(30001, nil), "shop/b": service(30002, nil), "other/c": service(30003, nil), "shop/clusterip": service(0, nil),
		"shop/unprobed": service(30005, func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal }),
		"shop/local": service(30004, func(s *corev1.Service) {
			s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = corev1.ServiceExternalTrafficPolicyLocal, 31000
		}),
	}}
}

func listener(name string, port int, protocol gatewayv1.ProtocolType, edit ...func(*gatewayv1.Listener)) gatewayv1.Listener {
	l := gatewayv1.Listener{Name: gatewayv1.SectionName(name), Port: gatewayv1.PortNumber(port), Protocol: protocol} //nolint:gosec // a port
	for _, e := range edit {
		e(&l)
	}
	return l
}

func from(ns gatewayv1.FromNamespaces) func(*gatewayv1.Listener) {
	return func(l *gatewayv1.Listener) {
		l.AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &ns}}
	}
}

func gateway(listeners ...gatewayv1.Listener) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", Generation: 3}, Spec: gatewayv1.GatewaySpec{Listeners: listeners}}
}

// backend is [namespace/]name[:weight].
func backend(text string) gatewayv1.BackendRef {
	name, weight, weighted := strings.Cut(text, ":")
	ref := gatewayv1.BackendRef{}
	if ns, rest, ok := strings.Cut(name, "/"); ok {
		ref.Namespace, name = new(gatewayv1.Namespace(ns)), rest
	}
	ref.Name = gatewayv1.ObjectName(name)
	if weighted {
		ref.Weight = new(int32)
		_, _ = fmt.Sscan(weight, ref.Weight)
	}
	return ref
}

var created int64

// tcp returns a TCPRoute, younger than those before it.
func tcp(namespace, name string, backends ...string) Route {
	created++
	r := &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 7, CreationTimestamp: metav1.NewTime(time.Unix(created, 0))}}
	r.Spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: new(gatewayv1.Namespace("shop")), Name: "edge"}}
	var refs []gatewayv1.BackendRef
	for _, b := range backends {
		ref := backend(b)
		ref.Port = new(gatewayv1.PortNumber(80))
		refs = append(refs, ref)
	}
	r.Spec.Rules = []gatewayv1.TCPRouteRule{{BackendRefs: refs}}
	route, _ := RouteOf(r)
	return route
}

// tlsRoute returns a TLSRoute like tcp.
func tlsRoute(namespace, name, backend string) Route {
	r := tcp(namespace, name, backend)
	t, ok := r.Object.(*gatewayv1.TCPRoute)
	if !ok {
		panic("not a TCPRoute")
	}
	out := &gatewayv1.TLSRoute{ObjectMeta: t.ObjectMeta, Spec: gatewayv1.TLSRouteSpec{CommonRouteSpec: t.Spec.CommonRouteSpec, Hostnames: []gatewayv1.Hostname{"example.com"}}}
	out.Spec.Rules = []gatewayv1.TLSRouteRule{{BackendRefs: t.Spec.Rules[0].BackendRefs}}
	route, _ := RouteOf(out)
	return route
}

func passthrough(l *gatewayv1.Listener) {
	l.TLS = &gatewayv1.ListenerTLSConfig{Mode: new(gatewayv1.TLSModePassthrough)}
}

func at(r Route, section string, port int) Route {
	if section != "" {
		r.Parents[0].SectionName = new(gatewayv1.SectionName(section))
	}
	if port != 0 {
		r.Parents[0].Port = new(gatewayv1.PortNumber(port)) //nolint:gosec // a port
	}
	return r
}

// summary is the rules, the attached routes of each listener, and the reasons of each route.
func summary(a *Attachment, routes []Route) string {
	var parts []string
	for _, r := range a.Rules() {
		text := fmt.Sprintf("%s %d>%d", r.Listener, r.Port, r.NodePort)
		if r.HealthCheckNodePort != 0 {
			text += fmt.Sprintf(" health %d", r.HealthCheckNodePort)
		}
		parts = append(parts, text)
	}
	for _, l := range a.Listeners(metav1.Condition{Status: metav1.ConditionTrue}) {
		text := fmt.Sprintf("%s has %d", l.Name, l.AttachedRoutes)
		for _, c := range l.Conditions {
			if good := c.Type != "Conflicted"; (c.Status == metav1.ConditionTrue) != good {
				text += " " + c.Type + "=" + c.Reason
			}
		}
		parts = append(parts, text)
	}
	for _, r := range routes {
		text := r.Object.GetName()
		for _, st := range a.Parents[r.Object] {
			for _, c := range st.Conditions {
				text += " " + c.Reason
				if c.ObservedGeneration != r.Object.GetGeneration() {
					text += " of another generation"
				}
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func TestAttach(t *testing.T) {
	t.Parallel()
	grant := gatewayv1.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}, Spec: gatewayv1.ReferenceGrantSpec{
		From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: KindTCPRoute, Namespace: "shop"}}, To: []gatewayv1.ReferenceGrantTo{{Kind: KindService}},
	}}
	web, web8443 := listener("web", 443, gatewayv1.TCPProtocolType), listener("web", 8443, gatewayv1.TCPProtocolType)
	for _, c := range []struct {
		name   string
		on     *gatewayv1.Gateway
		routes []Route
		grants []gatewayv1.ReferenceGrant
		want   string
	}{
		{"no route", gateway(web), nil, nil, "web has 0"},
		{"one route", gateway(web), []Route{tcp("shop", "r", "a")}, nil, "web 443>30001; web has 1; r Accepted ResolvedRefs"},
		{"the oldest of two routes is served", gateway(web), []Route{tcp("shop", "old", "a"), tcp("shop", "new", "b")}, nil, "web 443>30001; web has 2; old Accepted ResolvedRefs; new Accepted ResolvedRefs"},
		{"Local without a probe", gateway(web), []Route{tcp("shop", "r", "unprobed")}, nil, "web has 1; r Accepted UnsupportedValue"},
		{"Local has a probe of its own", gateway(web), []Route{tcp("shop", "r", "local")}, nil, "web 443>30004 health 31000; web has 1; r Accepted ResolvedRefs"},
		{"the greatest weight is served", gateway(web), []Route{tcp("shop", "r", "a:30", "b:70")}, nil, "web 443>30002; web has 1; r Accepted ResolvedRefs"},
		{"weight 0 is not served", gateway(web), []Route{tcp("shop", "r", "a:0")}, nil, "web has 1; r Accepted ResolvedRefs"},
		{"a missing backend, and the other is served", gateway(web), []Route{tcp("shop", "r", "gone:9", "a:1")}, nil, "web 443>30001; web has 1; r Accepted BackendNotFound"},
		{"no node port", gateway(web), []Route{tcp("shop", "r", "clusterip")}, nil, "web has 1; r Accepted UnsupportedValue"},
		{"no grant", gateway(web), []Route{tcp("shop", "r", "other/c")}, nil, "web has 1; r Accepted RefNotPermitted"},
		{"a grant", gateway(web), []Route{tcp("shop", "r", "other/c")}, []gatewayv1.ReferenceGrant{grant}, "web 443>30003; web has 1; r Accepted ResolvedRefs"},
		{"another namespace", gateway(web), []Route{tcp("other", "r", "c")}, nil, "web has 0; r NotAllowedByListeners"},
		{"all namespaces", gateway(listener("web", 443, gatewayv1.TCPProtocolType, from(gatewayv1.NamespacesFromAll))), []Route{tcp("other", "r", "c")}, nil, "web 443>30003; web has 1; r Accepted ResolvedRefs"},
		{"selected namespaces", gateway(listener("web", 443, gatewayv1.TCPProtocolType, from(gatewayv1.NamespacesFromSelector))), []Route{tcp("other", "r", "c")}, nil, "web has 0; r NotAllowedByListeners"},
		{"another protocol", gateway(listener("dns", 53, gatewayv1.UDPProtocolType)), []Route{tcp("shop", "r", "a")}, nil, "dns has 0; r NotAllowedByListeners ResolvedRefs"},
		{"no such listener", gateway(web), []Route{at(tcp("shop", "r", "a"), "none", 0)}, nil, "web has 0; r NoMatchingParent ResolvedRefs"},
		{"by port", gateway(web, listener("alt", 444, gatewayv1.TCPProtocolType)), []Route{at(tcp("shop", "r", "a"), "", 444)}, nil, "alt 444>30002; web has 0; alt has 1; r Accepted ResolvedRefs"},
		{"a replaced node port", gateway(web, listener("alt", 444, gatewayv1.TCPProtocolType), listener("used", 445, gatewayv1.TCPProtocolType)), []Route{tcp("shop", "r", "a")}, nil, "web 443>30001; alt 444>30002; web has 1; alt has 1; used has 1 Programmed=Invalid; r Accepted ResolvedRefs"},
		{"conflict of protocols", gateway(web, listener("tls", 443, gatewayv1.TLSProtocolType, passthrough)), []Route{tcp("shop", "r", "a")}, nil, "web has 0 Accepted=ProtocolConflict Conflicted=ProtocolConflict Programmed=Invalid; tls has 0 Accepted=ProtocolConflict Conflicted=ProtocolConflict Programmed=Invalid; r NotAllowedByListeners ResolvedRefs"},
		{"a TLSRoute", gateway(listener("tls", 443, gatewayv1.TLSProtocolType, passthrough), web8443), []Route{tlsRoute("shop", "r", "a"), tcp("shop", "t", "a")}, nil, "web 8443>30001; tls has 0; web has 1; r UnsupportedValue ResolvedRefs; t Accepted ResolvedRefs"},
		{"a listener that terminates TLS", gateway(listener("tls", 443, gatewayv1.TLSProtocolType)), nil, nil, "tls has 0 Accepted=UnsupportedValue Programmed=Invalid"},
		{"TCP and UDP on one port", gateway(listener("t", 53, gatewayv1.TCPProtocolType), listener("u", 53, gatewayv1.UDPProtocolType)), []Route{tcp("shop", "r", "a")}, nil, "t 53>30001; t has 1; u has 0; r Accepted ResolvedRefs"},
		{"HTTP", gateway(web, listener("http", 80, gatewayv1.HTTPProtocolType)), nil, nil, "web has 0; http has 0 Accepted=UnsupportedProtocol Programmed=Invalid"},
		{"a kind that the protocol does not have", gateway(listener("web", 443, gatewayv1.TCPProtocolType, func(l *gatewayv1.Listener) {
			l.AllowedRoutes = &gatewayv1.AllowedRoutes{Kinds: []gatewayv1.RouteGroupKind{{Kind: "HTTPRoute"}, {Kind: KindTCPRoute}}}
		})), []Route{tcp("shop", "r", "a")}, nil, "web 443>30001; web has 1 ResolvedRefs=InvalidRouteKinds; r Accepted ResolvedRefs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.grants = c.grants
			a := Attach(c.on, c.routes, w)
			a.ReplaceBackends(func(r Rule) (Backend, string) {
				b, problem := r.Backend, ""
				if r.Listener == "alt" {
					b.NodePort++
				}
				if r.Listener == "used" {
					problem = "in use"
				}
				return b, problem
			})
			if got := summary(a, c.routes); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAcceptedCondition(t *testing.T) {
	t.Parallel()
	tcpListener, http := listener("web", 443, gatewayv1.TCPProtocolType), listener("http", 80, gatewayv1.HTTPProtocolType)
	for _, c := range []struct {
		name      string
		listeners []gatewayv1.Listener
		addresses []string
		want      string
	}{
		{"valid", []gatewayv1.Listener{tcpListener}, []string{"192.0.2.1", "2001:db8::1"}, "True Accepted"},
		{"some invalid", []gatewayv1.Listener{tcpListener, http}, nil, "True ListenersNotValid"},
		{"none valid", []gatewayv1.Listener{http}, nil, "False ListenersNotValid"},
		{"two of a family", []gatewayv1.Listener{tcpListener}, []string{"192.0.2.1", "192.0.2.2"}, "False UnsupportedAddress"},
		{"no address", []gatewayv1.Listener{tcpListener}, []string{"edge"}, "False UnsupportedAddress"},
	} {
		gw := gateway(c.listeners...)
		for _, value := range c.addresses {
			gw.Spec.Addresses = append(gw.Spec.Addresses, gatewayv1.GatewaySpecAddress{Value: value})
		}
		cond := Attach(gw, nil, newWorld()).AcceptedCondition()
		if got := string(cond.Status) + " " + cond.Reason; got != c.want || cond.ObservedGeneration != 3 {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestIsGranted(t *testing.T) {
	t.Parallel()
	route := tcp("shop", "r")
	service := types.NamespacedName{Namespace: "other", Name: "c"}
	for _, c := range []struct {
		name string
		edit func(*gatewayv1.ReferenceGrant)
		want bool
	}{
		{"all Services", func(*gatewayv1.ReferenceGrant) {}, true},
		{"this Service", func(g *gatewayv1.ReferenceGrant) { g.Spec.To[0].Name = new(gatewayv1.ObjectName("c")) }, true},
		{"another Service", func(g *gatewayv1.ReferenceGrant) { g.Spec.To[0].Name = new(gatewayv1.ObjectName("d")) }, false},
		{"another kind of route", func(g *gatewayv1.ReferenceGrant) { g.Spec.From[0].Kind = KindUDPRoute }, false},
		{"a kind of another group", func(g *gatewayv1.ReferenceGrant) { g.Spec.From[0].Group = "example.com" }, false},
		{"another namespace of routes", func(g *gatewayv1.ReferenceGrant) { g.Spec.From[0].Namespace = "foreign" }, false},
		{"Secrets", func(g *gatewayv1.ReferenceGrant) { g.Spec.To[0].Kind = "Secret" }, false},
		{"a grant in the namespace of the route", func(g *gatewayv1.ReferenceGrant) { g.Namespace = "shop" }, false},
	} {
		g := &gatewayv1.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}, Spec: gatewayv1.ReferenceGrantSpec{
			From: []gatewayv1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: KindTCPRoute, Namespace: "shop"}}, To: []gatewayv1.ReferenceGrantTo{{Kind: KindService}},
		}}
		c.edit(g)
		if got := IsGranted(g, route, service); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}
