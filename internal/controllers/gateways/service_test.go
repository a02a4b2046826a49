// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// The spec of a Gateway is that of a Service without floating IP, with a probe for each Local backend. Annotations
// that a Gateway must not have are dropped, and so are those that Weir sets on its Service.
func TestSpecOfAGateway(t *testing.T) {
	t.Parallel()
	gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "0001-0002", Annotations: map[string]string{
		service.DisableFloatingIP:                           "false",
		cache.HealthCheckAnnotation(corev1.ProtocolTCP, 80): "22", service.IdleTimeout: "10",
	}}}
	gw.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "20.0.0.1"}}
	gw.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{Annotations: map[gatewayv1.AnnotationKey]gatewayv1.AnnotationValue{
		"weir.dev/load-balancer": "other", service.DisableTCPReset: "true",
	}}
	s := newService(gw, true, "weir.dev/azure", []routing.Rule{
		{Listener: "web", Port: 80, Backend: routing.Backend{Protocol: corev1.ProtocolTCP, NodePort: 30001}},
		{Listener: "dns", Port: 53, Backend: routing.Backend{Protocol: corev1.ProtocolUDP, NodePort: 30002, HealthCheckNodePort: 31002}},
	})
	want := []string{service.DisableFloatingIP, service.DisableTCPReset, service.IPv4, service.IdleTimeout, cache.HealthCheckAnnotation(corev1.ProtocolUDP, 53)}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(s.Annotations)); !slices.Equal(got, want) {
		t.Errorf("annotations %v, want %v", got, want)
	}
	spec, problems := service.BuildSpec(cache.ServiceOf(s), service.Settings{ClusterName: "prod", SharedProbe: service.SharedProbeOf(10256, "/healthz")})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	probes := map[string]lb.Probe{}
	for _, p := range spec.Probes {
		probes[p.Name] = p
	}
	for i, c := range []struct{ front, back, probe int32 }{{80, 30001, 10256}, {53, 30002, 31002}} {
		rule := spec.Rules[i]
		if rule.FloatingIP || rule.FrontendPort != c.front || rule.BackendPort != c.back || probes[rule.Probe].Port != c.probe || rule.Pool != "prod" {
			t.Errorf("rule %+v with probe %+v, want %+v", rule, probes[rule.Probe], c)
		}
	}
}

// An invalid Gateway keeps its address and loses the rules that its routes no longer have. After a restart, or with another
// restriction, nothing of it is written, but the restriction applies.
func TestSpecOfAnInvalidGateway(t *testing.T) {
	t.Parallel()
	web := routing.Rule{Listener: "web", Port: 80, Backend: routing.Backend{Protocol: corev1.ProtocolTCP, NodePort: 30001}}
	shared := routing.Rule{Listener: "shared", Port: 81, Backend: routing.Backend{Protocol: corev1.ProtocolTCP, NodePort: 30002}}
	gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "1"}}
	gw.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "20.0.0.1"}}
	before := newService(gw, true, "", []routing.Rule{web, shared})
	gw.Spec.Addresses[0].Value = "example.com"
	revoked := newService(gw, true, "", []routing.Rule{web})
	keepSpec(revoked, before)
	if len(before.Spec.Ports) != 2 || len(revoked.Spec.Ports) != 1 || revoked.Spec.Ports[0].NodePort != 30001 || revoked.Annotations[service.IPv4] != "20.0.0.1" {
		t.Errorf("got ports %v and address %s", revoked.Spec.Ports, revoked.Annotations[service.IPv4])
	}
	restarted := newService(gw, true, "", []routing.Rule{web})
	rejectSpec(restarted)
	gw.Annotations = map[string]string{service.AllowedIPRanges: "203.0.113.0/24"}
	restricted := newService(gw, true, "", []routing.Rule{web})
	keepSpec(restricted, before)
	second := newService(gw, true, "", []routing.Rule{web})
	keepSpec(second, restricted)
	for _, s := range []*corev1.Service{restarted, restricted, second} {
		if _, problems := service.BuildSpec(cache.ServiceOf(s), service.Settings{ClusterName: "prod"}); len(problems) == 0 {
			t.Error("the spec of an invalid Gateway is accepted")
		}
	}
	if !service.RestrictionOf(cache.ServiceOf(second)).Access.IsLimited() {
		t.Error("a restriction of an invalid Gateway is ignored")
	}
}

// A Gateway is no Service: neither key finds the other, and lists have both.
func TestGatewaysAndServicesHaveDifferentKeys(t *testing.T) {
	t.Parallel()
	view := &cache.Snapshot{Serving: cache.Serving{LoadBalancers: true}}
	view.InMemory()
	gateways := view.AddGateways()
	own := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "1"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	gw := newService(&gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "2"}}, true, "", nil)
	if err := view.Add(own); err != nil {
		t.Fatal(err)
	}
	if err := gateways.Add(gw); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]*corev1.Service{"shop/edge": own, "shop/gateway:edge": gw} {
		if got := cache.Get[corev1.Service](view.Services, key); got != want {
			t.Errorf("%s: got %v", key, got)
		}
	}
	if services := cache.List[corev1.Service](view.Services, cache.ServicesBalanced, ""); len(services) != 2 {
		t.Errorf("got %v", services)
	}
}

// Annotations that need floating IP reject a Gateway. Conditions that Weir reads after a restart remain.
func TestAnnotationsAndConditionsOfAGateway(t *testing.T) {
	t.Parallel()
	gw := &gatewayv1.Gateway{}
	for _, c := range []struct {
		name, value string
		rejected    bool
	}{{service.HAPorts, "true", true}, {service.HAPorts, "False", false}, {service.AdditionalIPs, "20.0.0.9", true}, {service.AdditionalIPs, " ", false}, {service.PLSCreate, "true", false}} {
		gw.Annotations = map[string]string{c.name: c.value}
		text := unsupportedText(gw)
		if (text != "") != c.rejected {
			t.Errorf("%s %q: %q", c.name, c.value, text)
		}
		gw.Spec.Listeners = []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.TCPProtocolType}}
		a := routing.Attach(gw, nil, nil)
		a.RejectParameters(text)
		if cond := a.AcceptedCondition(); a.IsAccepted() == c.rejected || c.rejected && cond.Reason != "InvalidParameters" {
			t.Errorf("%s %q: %+v", c.name, c.value, cond)
		}
	}
	gw.Status.Conditions = []metav1.Condition{{Type: "Accepted", Reason: "Accepted"}, {Type: metadata.ConditionPrivateLink, Reason: "PrivateLinkServicePublished"}}
	if s := newService(gw, true, "", nil); len(s.Status.Conditions) != 1 || s.Status.Conditions[0].Type != metadata.ConditionPrivateLink {
		t.Errorf("conditions %+v", s.Status.Conditions)
	}
}

// Several Gateways write the statuses of one route in turn without changing its order.
func TestMergeParents(t *testing.T) {
	t.Parallel()
	status := func(gateway string, by gatewayv1.GatewayController) gatewayv1.RouteParentStatus {
		return gatewayv1.RouteParentStatus{ParentRef: gatewayv1.ParentReference{Name: gatewayv1.ObjectName(gateway)}, ControllerName: by}
	}
	obj := &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "r"}}
	obj.Status.Parents = []gatewayv1.RouteParentStatus{status("a", routing.ControllerName), status("theirs", "example.com/c"), status("b", routing.ControllerName), status("a", "example.com/c")}
	route, _ := routing.RouteOf(obj)
	name := cache.NamespacedName("shop/a")
	if got := mergeParents(route, name, []gatewayv1.RouteParentStatus{status("a", routing.ControllerName)}); !slices.EqualFunc(got, obj.Status.Parents, isSameParent) {
		t.Errorf("got %+v", got)
	}
	if got := mergeParents(route, name, nil); !slices.EqualFunc(got, obj.Status.Parents[1:], isSameParent) {
		t.Errorf("without parents: got %+v", got)
	}
}

func isSameParent(a, b gatewayv1.RouteParentStatus) bool {
	return a.ParentRef.Name == b.ParentRef.Name && a.ControllerName == b.ControllerName
}

// The cache keeps the annotations of a Gateway that are used, and no metadata of routes but their identity.
func TestMetadataInTheCache(t *testing.T) {
	t.Parallel()
	m := metav1.ObjectMeta{Name: "edge", Generation: 3, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{service.Internal: "true", "note": "long"}}
	gw, route := &gatewayv1.Gateway{ObjectMeta: *m.DeepCopy()}, &gatewayv1.TCPRoute{ObjectMeta: *m.DeepCopy()}
	strip := newCacheOptions(nil).DefaultTransform
	for _, obj := range []any{gw, route, toolscache.DeletedFinalStateUnknown{}} {
		if current, err := strip(obj); err != nil || !reflect.DeepEqual(current, obj) {
			t.Errorf("%T: %v, %v", obj, current, err)
		}
	}
	if len(gw.Annotations) != 1 || gw.Annotations[service.Internal] != "true" || len(gw.Labels) != 1 || len(gw.ManagedFields) > 0 {
		t.Errorf("Gateway: %+v", gw.ObjectMeta)
	}
	if len(route.Annotations)+len(route.Labels)+len(route.ManagedFields) > 0 || route.Name != "edge" || route.Generation != 3 {
		t.Errorf("route: %+v", route.ObjectMeta)
	}
}

// liveGateway is Gateway shop/edge with this UID, and no other exists.
type liveGateway struct {
	client.Reader
	uid types.UID
}

func (g liveGateway) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if obj.SetUID(g.uid); key.String() != "shop/edge" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "gateways"}, key.Name)
	}
	return nil
}

// The API server no longer has a Gateway if it has none of its name, or another one.
func TestAGatewayIsConfirmedByItsUID(t *testing.T) {
	t.Parallel()
	r := New(Config{Reader: liveGateway{uid: "u1"}})
	for _, tt := range []struct {
		name, uid string
		exists    bool
	}{{"edge", "u1", true}, {"edge", "u2", false}, {"other", "u1", false}} {
		key := metadata.Key("shop", cache.GatewayServiceName(tt.name))
		if exists, err := r.Exists(t.Context(), key, tt.uid); exists != tt.exists || err != nil {
			t.Errorf("%s with UID %s: exists %v, %v", tt.name, tt.uid, exists, err)
		}
	}
}
