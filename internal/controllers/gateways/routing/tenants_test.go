// SPDX-License-Identifier: Apache-2.0

package routing

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// tenant draws the objects of a namespace. Those of "rogue" are younger than those of "shop", as times of creation are
// set by the API server.
type tenant struct {
	namespace string
	t         *rapid.T
}

func (t tenant) meta(name string) metav1.ObjectMeta {
	age := 100
	if t.namespace == "rogue" {
		age = 0
	}
	at := time.Unix(int64(1000-age+rapid.IntRange(0, 50).Draw(t.t, "age of "+name)), 0)
	return metav1.ObjectMeta{Namespace: t.namespace, Name: name, CreationTimestamp: metav1.NewTime(at)}
}

func (t tenant) gateway() *gatewayv1.Gateway {
	gw := &gatewayv1.Gateway{ObjectMeta: t.meta("edge")}
	for i := range rapid.IntRange(1, 3).Draw(t.t, "listeners") {
		allowed := rapid.SampledFrom([]gatewayv1.FromNamespaces{gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSelector, gatewayv1.NamespacesFromNone}).Draw(t.t, "from")
		gw.Spec.Listeners = append(gw.Spec.Listeners, listener(fmt.Sprint("l", i), 80+i, gatewayv1.TCPProtocolType, from(allowed)))
	}
	return gw
}

// routes refer to Gateways and Services of any of the namespaces.
func (t tenant) routes(gateways, services []string) (items []Route) {
	for i := range rapid.IntRange(1, 4).Draw(t.t, "routes of "+t.namespace) {
		r := &gatewayv1.TCPRoute{ObjectMeta: t.meta(fmt.Sprint("r", i))}
		of := gatewayv1.Namespace(rapid.SampledFrom(gateways).Draw(t.t, "Gateway"))
		parent := gatewayv1.ParentReference{Namespace: &of, Name: "edge"}
		if rapid.Bool().Draw(t.t, "has sectionName") {
			parent.SectionName = new(gatewayv1.SectionName(fmt.Sprint("l", rapid.IntRange(0, 2).Draw(t.t, "listener"))))
		}
		r.Spec.ParentRefs = []gatewayv1.ParentReference{parent}
		for range rapid.IntRange(1, 2).Draw(t.t, "backends") {
			ns := gatewayv1.Namespace(rapid.SampledFrom(services).Draw(t.t, "namespace of the Service"))
			r.Spec.Rules = append(r.Spec.Rules, gatewayv1.TCPRouteRule{BackendRefs: []gatewayv1.BackendRef{{
				BackendObjectReference: gatewayv1.BackendObjectReference{Namespace: &ns, Name: rapid.SampledFrom([]gatewayv1.ObjectName{"a", "b"}).Draw(t.t, "Service"), Port: new(gatewayv1.PortNumber(80))},
				Weight:                 new(rapid.Int32Range(0, 3).Draw(t.t, "weight")),
			}}})
		}
		route, _ := RouteOf(r)
		items = append(items, route)
	}
	return items
}

// grants are in the namespace, and permit references from any namespace.
func (t tenant) grants() (items []gatewayv1.ReferenceGrant) {
	for range rapid.IntRange(0, 2).Draw(t.t, "grants of "+t.namespace) {
		g := gatewayv1.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace}}
		g.Spec.From = []gatewayv1.ReferenceGrantFrom{{
			Group: gatewayv1.GroupName, Kind: rapid.SampledFrom([]gatewayv1.Kind{KindTCPRoute, KindTCPRoute, KindTCPRoute, KindUDPRoute}).Draw(t.t, "kind"),
			Namespace: rapid.SampledFrom([]gatewayv1.Namespace{"rogue", "rogue", "shop", "third"}).Draw(t.t, "from namespace"),
		}}
		to := gatewayv1.ReferenceGrantTo{Kind: KindService}
		if rapid.Bool().Draw(t.t, "names a Service") {
			to.Name = new(rapid.SampledFrom([]gatewayv1.ObjectName{"a", "b"}).Draw(t.t, "to"))
		}
		g.Spec.To = []gatewayv1.ReferenceGrantTo{to}
		items = append(items, g)
	}
	return items
}

// isReachable decides from the grants alone whether a route may forward to a Service.
func isReachable(route client.Object, service types.NamespacedName, grants []gatewayv1.ReferenceGrant) bool {
	return route.GetNamespace() == service.Namespace || slices.ContainsFunc(grants, func(g gatewayv1.ReferenceGrant) bool {
		f, to := g.Spec.From[0], g.Spec.To[0]
		return g.Namespace == service.Namespace && f.Kind == KindTCPRoute && string(f.Namespace) == route.GetNamespace() && (to.Name == nil || string(*to.Name) == service.Name)
	})
}

// Whatever one namespace has, a Gateway forwards only to Services that its route may use, for routes that its listener
// admits. The objects of a namespace that no listener admits change nothing, younger routes take nothing from older
// ones, no younger Gateway takes a node port, and a revoked grant ends what it permitted.
func TestTenantsOfGateways(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shop, rogue := tenant{"shop", t}, tenant{"rogue", t}
		w := world{services: map[string]*corev1.Service{}, selected: rapid.SampledFrom([]string{"", "shop", "rogue"}).Draw(t, "selected")}
		for i, name := range []string{"shop/a", "shop/b", "rogue/a", "rogue/b"} {
			w.services[name] = &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP, NodePort: int32(30000 + i)}}}}
		}
		edge, theirs := shop.gateway(), rogue.gateway()
		own, foreign := shop.routes([]string{"shop"}, []string{"shop"}), rogue.routes([]string{"shop", "rogue"}, []string{"shop", "rogue"})
		w.grants = shop.grants()
		before := Attach(edge, own, w)
		var claims Claims
		claimsOf := func(a *Attachment) (ports []NodePort) {
			for _, r := range a.Rules() {
				ports = append(ports, NodePort{Protocol: r.Protocol, Port: r.NodePort})
			}
			slices.SortFunc(ports, func(a, b NodePort) int { return int(a.Port - b.Port) })
			return slices.Compact(ports)
		}
		claims.Set(edge, claimsOf(before))

		w.grants = append(w.grants, rogue.grants()...)
		tenants := slices.Concat(own, foreign)
		after, other := Attach(edge, tenants, w), Attach(theirs, tenants, w)
		claims.Set(theirs, claimsOf(other))
		for _, a := range []*Attachment{after, other} {
			for i, l := range a.listeners {
				if l.first == nil {
					continue
				}
				from, admitted := l.first.Object.GetNamespace(), false
				switch *a.gateway.Spec.Listeners[i].AllowedRoutes.Namespaces.From {
				case gatewayv1.NamespacesFromAll:
					admitted = true
				case gatewayv1.NamespacesFromSame:
					admitted = from == a.gateway.Namespace
				case gatewayv1.NamespacesFromSelector:
					admitted = from == w.selected
				case gatewayv1.NamespacesFromNone:
				}
				if !admitted {
					t.Fatalf("listener %s of %s has a route of namespace %s", l.Name, a.gateway.Namespace, from)
				}
				if s := l.first.serving; s != nil && !isReachable(l.first.Object, s.Service, w.grants) {
					t.Fatalf("listener %s of %s forwards to %s without a grant", l.Name, a.gateway.Namespace, s.Service)
				}
			}
		}
		isAdmitted := slices.ContainsFunc(edge.Spec.Listeners, func(l gatewayv1.Listener) bool {
			from := *l.AllowedRoutes.Namespaces.From
			return from == gatewayv1.NamespacesFromAll || from == gatewayv1.NamespacesFromSelector && w.selected == "rogue"
		})
		programmed := metav1.Condition{Status: metav1.ConditionTrue}
		if !isAdmitted && (!reflect.DeepEqual(before.Rules(), after.Rules()) || !reflect.DeepEqual(before.Listeners(programmed), after.Listeners(programmed))) {
			t.Fatalf("rules %+v became %+v", before.Rules(), after.Rules())
		}
		for _, rule := range before.Rules() {
			if !slices.Contains(after.Rules(), rule) {
				t.Fatalf("rule %+v is lost to a younger route", rule)
			}
			if holder, _ := claims.Holder(NodePort{Protocol: rule.Protocol, Port: rule.NodePort}); holder != client.ObjectKeyFromObject(edge) {
				t.Fatalf("node port %d is that of %s", rule.NodePort, holder)
			}
		}
		for _, r := range own {
			if !reflect.DeepEqual(before.Parents[r.Object], after.Parents[r.Object]) {
				t.Fatalf("the status of %s became %+v", r.Object.GetName(), after.Parents[r.Object])
			}
		}

		w.grants = nil
		for _, gw := range []*gatewayv1.Gateway{edge, theirs} {
			for _, l := range Attach(gw, tenants, w).listeners {
				if l.first != nil && l.first.serving != nil && l.first.serving.Service.Namespace != l.first.Object.GetNamespace() {
					t.Fatalf("without grants listener %s of %s forwards to %s", l.Name, gw.Namespace, l.first.serving.Service)
				}
			}
		}
	})
}
