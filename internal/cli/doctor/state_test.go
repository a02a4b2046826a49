// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/k8s/metadata"
)

// Gateways with a problem are counted as Services are; without the right to list them their state is unknown.
func TestStateOfGateways(t *testing.T) {
	t.Parallel()
	scheme := metadata.Scheme()
	if err := errors.Join(coordinationv1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "m", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Minute))}
	}
	for name, tt := range map[string]struct {
		conditions []metav1.Condition
		route      []metav1.Condition
		forbidden  bool
		want       Result
		message    string
	}{
		"in sync":       {want: OK, message: "0 BackendPools and 0 Services and 1 Gateway are in sync, in progress or paused"},
		"a condition":   {conditions: []metav1.Condition{condition("weir.dev/SecurityGroup", "False", "NotManaged")}, want: Warn, message: "something is wrong with 0 of 0 BackendPools and 0 of 0 Services and 1 of 1 Gateway: NotManaged"},
		"a route":       {route: []metav1.Condition{condition("ResolvedRefs", "False", "RefNotPermitted")}, want: Warn, message: "something is wrong: BackendNotResolved"},
		"no such right": {forbidden: true, want: Unknown, message: "0 BackendPools and 0 Services are in sync, in progress or paused. You may not list Gateways and their routes of all namespaces"},
	} {
		gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", Finalizers: []string{metadata.ServiceFinalizer}}}
		gw.Status.Conditions = slices.Concat(tt.conditions, []metav1.Condition{condition("Accepted", "True", "Accepted"), condition("Programmed", "True", "Programmed")})
		route := &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
		route.Status.Parents = []gatewayv1.RouteParentStatus{{ControllerName: routing.ControllerName, Conditions: tt.route}}
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(gw, route).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*gatewayv1.GatewayList); ok && tt.forbidden {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "gateways"}, "", nil)
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
		if got := (Doctor{API: api}).checkState(t.Context()); got[0].Result != tt.want || got[0].Why != tt.message {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
