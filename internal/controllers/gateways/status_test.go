// SPDX-License-Identifier: Apache-2.0

package gateways

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
)

type noServices struct{}

func (noServices) RequeueService(string) {}

// A Gateway has the conditions of its Service that Gateway API has no place for. After a restart they stay until Weir
// knows better. A deleted Gateway reports why it is still there.
func TestConditionsOfAGateway(t *testing.T) {
	t.Parallel()
	current := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "m"}
	}
	const own = "Accepted=True/Accepted Programmed=False/AddressNotAssigned"
	for name, tt := range map[string]struct {
		conditions []metav1.Condition // of its Service
		deleted    bool
		want       string
	}{
		"in sync": {conditions: []metav1.Condition{current(servicelb.TypeAccepted, "True", "Accepted"), current(servicelb.TypeProgrammed, "True", "Programmed")}, want: own},
		"open to all clients": {
			conditions: []metav1.Condition{current(servicelb.TypeAccepted, "True", servicelb.ConditionReasonOpen), current(servicelb.TypeProgrammed, "True", servicelb.ConditionReasonNotEnforced)},
			want:       own + " weir.dev/Accepted=True/" + servicelb.ConditionReasonOpen + " weir.dev/Programmed=True/" + servicelb.ConditionReasonNotEnforced,
		},
		"no security group": {
			conditions: []metav1.Condition{current(servicelb.TypeProgrammed, "True", "Programmed"), current(servicelb.TypeSecurityGroup, "False", "NotManaged")},
			want:       own + " weir.dev/SecurityGroup=False/NotManaged",
		},
		"after a restart":  {want: "Accepted=True/Accepted Programmed=False/Pending weir.dev/SecurityGroup=False/Before"},
		"deleted":          {deleted: true, want: "weir.dev/SecurityGroup=False/Before"},
		"deleted, but not": {deleted: true, conditions: []metav1.Condition{current(servicelb.TypeProgrammed, "False", "Failed")}, want: "Programmed=False/Pending weir.dev/SecurityGroup=False/Before"},
	} {
		gw := &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "1", Finalizers: []string{metadata.ServiceFinalizer}},
			Spec:       gatewayv1.GatewaySpec{GatewayClassName: "weir", Listeners: []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.TCPProtocolType}}},
			Status:     gatewayv1.GatewayStatus{Conditions: []metav1.Condition{current(servicelb.TypeSecurityGroup, "False", "Before")}},
		}
		if tt.deleted {
			gw.DeletionTimestamp = new(metav1.Now())
		}
		m := newMemory([]client.Object{gw, &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "weir"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: routing.ControllerName}}})
		view := &cache.Snapshot{Serving: cache.Serving{LoadBalancers: true}}
		view.InMemory()
		r := New(Config{View: view, Gateways: view.AddGateways(), Services: noServices{}, Reader: m, Writer: m, Status: statusWriter{memory: m}})
		r.objects.cached, r.objects.view = m, view
		key := types.NamespacedName{Namespace: "shop", Name: "edge"}
		reconcile := func() {
			if _, err := r.reconcileGateway(t.Context(), key); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		reconcile()
		if tt.conditions != nil {
			patch, err := json.Marshal(map[string]any{"status": corev1.ServiceStatus{Conditions: tt.conditions}})
			if err != nil {
				t.Fatal(err)
			}
			s := cache.Get[corev1.Service](r.cfg.Gateways, "shop/"+cache.GatewayServiceName("edge"))
			if err := r.PatchStatus(s, patch); err != nil {
				t.Fatal(err)
			}
			reconcile()
		}
		after := &gatewayv1.Gateway{}
		if err := m.Get(t.Context(), key, after); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range after.Status.Conditions {
			got = append(got, c.Type+"="+string(c.Status)+"/"+c.Reason)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, strings.Join(got, " "), tt.want)
		}
	}
}

// rejectingStatus rejects the status of one object.
type rejectingStatus struct {
	statusWriter
	rejected string
}

func (s rejectingStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	if obj.GetName() == s.rejected {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "TCPRoute"}, s.rejected, nil)
	}
	return s.statusWriter.Patch(ctx, obj, patch, opts...)
}

// If the API server rejects the status of a route, those of later routes are written.
func TestARouteWithARejectedStatus(t *testing.T) {
	t.Parallel()
	m := newMemory(nil)
	r := New(Config{Status: rejectingStatus{statusWriter{memory: m}, "a"}})
	var routes []routing.Route
	parents := map[client.Object][]gatewayv1.RouteParentStatus{}
	for _, name := range []string{"a", "b"} {
		route, _ := routing.RouteOf(&gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}})
		routes = append(routes, route)
		parents[route.Object] = []gatewayv1.RouteParentStatus{{ParentRef: gatewayv1.ParentReference{Name: "edge"}, ControllerName: routing.ControllerName}}
	}
	_, err := r.writeRoutes(t.Context(), cache.NamespacedName("shop/edge"), routes, parents)
	if !apierrors.IsInvalid(err) {
		t.Errorf("got %v", err)
	}
	got := &gatewayv1.TCPRoute{}
	if err := m.Get(t.Context(), cache.NamespacedName("b/b"), got); err != nil || len(got.Status.Parents) != 1 {
		t.Errorf("%v, %+v", err, got.Status)
	}
}

// Routes of other namespaces that a Gateway does not accept get their statuses in portions; its own ones do not wait for them.
func TestStatusesOfRejectedRoutes(t *testing.T) {
	t.Parallel()
	m := newMemory(nil)
	r := New(Config{Status: statusWriter{memory: m}})
	var routes []routing.Route
	parents := map[client.Object][]gatewayv1.RouteParentStatus{}
	add := func(namespace, name string, want metav1.ConditionStatus) {
		route, _ := routing.RouteOf(&gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		routes = append(routes, route)
		parents[route.Object] = []gatewayv1.RouteParentStatus{{ParentRef: gatewayv1.ParentReference{Namespace: new(gatewayv1.Namespace("shop")), Name: "edge"}, ControllerName: routing.ControllerName, Conditions: []metav1.Condition{
			{Type: string(gatewayv1.RouteConditionAccepted), Status: want},
		}}}
	}
	for i := range 2*maxRejectedWrites + 5 {
		add("other", fmt.Sprint("r-", i), metav1.ConditionFalse)
	}
	add("shop", "own", metav1.ConditionFalse)
	add("third", "own", metav1.ConditionFalse)
	add("granted", "own", metav1.ConditionTrue)
	for i, want := range []int{maxRejectedWrites + 3, 2*maxRejectedWrites + 3, 2*maxRejectedWrites + 8} {
		second, err := r.writeRoutes(t.Context(), cache.NamespacedName("shop/edge"), routes, parents)
		if got := len(m.objects["TCPRoute"]); err != nil || got != want || (second > 0) != (i < 2) {
			t.Fatalf("time %d: %d statuses, %s, %v; want %d", i, got, second, err, want)
		}
		for n, route := range routes { // as the cache shows them then
			if current := m.objects["TCPRoute"][client.ObjectKeyFromObject(route.Object)]; current != nil {
				before := parents[route.Object]
				delete(parents, route.Object)
				routes[n], _ = routing.RouteOf(current)
				parents[current] = before
			}
		}
	}
}
