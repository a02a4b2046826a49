// SPDX-License-Identifier: Apache-2.0

package status

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/controllers/gateways/routing"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/loadbalancer"
)

func condition(kind, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: ago(time.Minute)}
}

func gateway(name, class string, conditions ...metav1.Condition) *gatewayv1.Gateway {
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: ago(time.Hour)},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: gatewayv1.ObjectName(class)},
		Status:     gatewayv1.GatewayStatus{Conditions: conditions},
	}
}

func gatewayClass(name string, controller gatewayv1.GatewayController) *gatewayv1.GatewayClass {
	return &gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controller}}
}

var accepted, programmed = condition("Accepted", "True", "Accepted", ""), condition("Programmed", "True", "Programmed", "")

// Each problem of a Gateway has one line, with a command for Gateways.
func TestProblemsOfGateways(t *testing.T) {
	t.Parallel()
	listener := func(conditions ...metav1.Condition) *gatewayv1.Gateway {
		gw := gateway("edge", "weir", accepted, programmed)
		gw.Status.Listeners = []gatewayv1.ListenerStatus{{Name: "web", Conditions: conditions}}
		return gw
	}
	pending := func(message string) *gatewayv1.Gateway {
		return gateway("edge", "weir", accepted, condition("Programmed", "False", "Pending", message))
	}
	with := func(c metav1.Condition, programmed metav1.Condition) *gatewayv1.Gateway {
		return gateway("edge", "weir", accepted, programmed, c)
	}
	deleted := func(since time.Duration, conditions ...metav1.Condition) *gatewayv1.Gateway {
		gw := gateway("edge", "weir", append(conditions, accepted)...)
		gw.DeletionTimestamp, gw.Finalizers = new(ago(since)), []string{metadata.ServiceFinalizer}
		return gw
	}
	retained := deleted(time.Hour, programmed)
	retained.Finalizers = []string{"example.com/backup"}
	unknown := condition("Accepted", "Unknown", "Pending", "Waiting for controller")
	fresh := gateway("edge", "weir", unknown)
	fresh.CreationTimestamp = ago(time.Second)
	tests := map[string]struct {
		gw           *gatewayv1.Gateway
		found, waits string
		do           string
	}{
		"in sync":         {gw: gateway("edge", "weir", accepted, programmed)},
		"not begun":       {gw: gateway("edge", "weir", unknown), found: "GatewayNotServed", do: "--gateway-api"},
		"new":             {gw: fresh, waits: "Pending"},
		"invalid":         {gw: gateway("edge", "weir", condition("Accepted", "False", "ListenersNotValid", "no listener is valid"), condition("Programmed", "False", "Invalid", "")), found: "ListenersNotValid", do: "kubectl edit gateway -n shop edge"},
		"updating":        {gw: pending("the load balancer is being updated"), waits: "Pending"},
		"throttled":       {gw: pending("RetryAfter: Weir waits for Azure"), waits: "RetryAfter"},
		"held":            {gw: pending("RemovalHeld: a person has to allow it"), found: "RemovalHeld", do: "kubectl annotate gateway -n shop edge"},
		"not allowed":     {gw: pending("Failed: 403 AuthorizationFailed: no"), found: "Failed", do: "role"},
		"rejected":        {gw: pending("Deferred: " + loadbalancer.RejectedPrefix + " it"), found: "Deferred"},
		"no turn":         {gw: pending("Deferred: the namespace has used its share"), waits: "Deferred"},
		"open to all":     {gw: with(condition("weir.dev/Accepted", "True", servicelb.ConditionReasonOpen, "no group"), programmed), found: servicelb.ConditionReasonOpen, do: "securityGroupName"},
		"group elsewhere": {gw: with(condition("weir.dev/Programmed", "True", servicelb.ConditionReasonNotEnforced, "not attached"), programmed), found: servicelb.ConditionReasonNotEnforced, do: "attach the security group"},
		"no group":        {gw: with(condition("weir.dev/SecurityGroup", "False", "NotManaged", "Weir opens none"), programmed), found: "NotManaged"},
		"private link":    {gw: with(condition("weir.dev/PrivateLinkService", "False", "Failed", "403 AuthorizationFailed: no"), programmed), found: "Failed", do: "role"},
		"contested": {
			gw:    with(condition("weir.dev/Contested", "True", "LoadBalancerContested", "another client"), condition("Programmed", "False", "Pending", "Contested: Another client")),
			found: "LoadBalancerContested", do: "stop one of the two",
		},
		"deleted":               {gw: deleted(time.Minute, programmed), waits: "Leaving"},
		"deleted, and held":     {gw: deleted(time.Minute, condition("Programmed", "False", "Pending", "RemovalHeld: a person has to allow it")), found: "RemovalHeld", do: "kubectl annotate gateway -n shop edge"},
		"deleted, not allowed":  {gw: deleted(time.Minute, condition("Programmed", "False", "Pending", "Failed: 403 AuthorizationFailed: no")), found: "Failed", do: "role"},
		"deleted long ago":      {gw: deleted(time.Hour, programmed), found: "Leaving", do: "weir doctor"},
		"not in Azure any more": {gw: retained},
		"conflict": {
			gw:    listener(condition("Accepted", "False", "HostnameConflict", "listener b has the same port"), condition("Conflicted", "True", "HostnameConflict", ""), condition("Programmed", "False", "Invalid", "")),
			found: "listener web: HostnameConflict", do: "kubectl edit gateway -n shop edge",
		},
		"node port in use": {
			gw: listener(condition("Accepted", "True", "Accepted", ""), condition("Conflicted", "False", "NoConflicts", ""), condition("Programmed", "False", "Invalid", "Gateway a/b already forwards"),
				condition("ResolvedRefs", "True", "ResolvedRefs", "")),
			found: "listener web: Invalid",
		},
	}
	for name, tt := range tests {
		found, waits := CheckGateway(tt.gw, noon)
		states := func(of []Problem) string {
			var problems []string
			for _, p := range of {
				problems = append(problems, p.State)
			}
			return strings.Join(problems, ", ")
		}
		if states(found) != tt.found || states(waits) != tt.waits {
			t.Errorf("%s: found %s, waits for %s", name, states(found), states(waits))
			continue
		}
		if len(found) > 0 {
			if do := groupByCause(found)[0].Fix; !strings.Contains(do, tt.do) || strings.Contains(do, "service") {
				t.Errorf("%s: what to do: %s", name, do)
			}
		}
	}
}

// Gateways of other controllers do not count. A route is reported once for each reason, and only for Weir.
func TestReportOfGateways(t *testing.T) {
	t.Parallel()
	kept := gateway("kept", "gone", accepted, programmed) // its class was deleted
	kept.Finalizers = []string{metadata.ServiceFinalizer}
	route := &gatewayv1.TCPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	missing := condition("ResolvedRefs", "False", "BackendNotFound", "Service shop/web does not exist")
	for _, by := range []gatewayv1.GatewayController{routing.ControllerName, routing.ControllerName, "example.com/other"} {
		if by != routing.ControllerName {
			missing.Message = "not of Weir"
		}
		route.Status.Parents = append(route.Status.Parents, gatewayv1.RouteParentStatus{ControllerName: by, Conditions: []metav1.Condition{missing}})
	}
	passthrough := &gatewayv1.TLSRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tls"}}
	passthrough.Status.Parents = []gatewayv1.RouteParentStatus{{ControllerName: routing.ControllerName, Conditions: []metav1.Condition{condition("Accepted", "False", "UnsupportedValue", "use a TCPRoute")}}}
	edge := gateway("edge", "weir", accepted, programmed)
	edge.Annotations = map[string]string{"service.beta.kubernetes.io/azure-load-balancer-intrenal": "true"}
	api := server(t, gatewayClass("weir", routing.ControllerName), gatewayClass("theirs", "example.com/other"), kept, route, passthrough,
		edge, gateway("theirs", "theirs", condition("Accepted", "False", "Invalid", "")))
	seen, err := ReadSnapshot(t.Context(), api, "", noon)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReport(seen)
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if r.Gateways != (Count{All: 2}) || len(r.Causes) != 2 || len(r.Causes[0].Objects) != 1 || !strings.Contains(text.String(), "tlsroute shop/tls   UnsupportedValue") ||
		!strings.Contains(text.String(), "\nNotes:\n\nUnknownAnnotation: without effect: service.beta.kubernetes.io/azure-load-balancer-intrenal\n") ||
		!strings.Contains(text.String(), "tcproute shop/web   BackendNotFound   for 60s") || !strings.Contains(text.String(), "kubectl edit tcproute -n shop web") {
		t.Errorf("Gateways %+v:\n%s", r.Gateways, text.String())
	}
}

// Without the right to list Gateways they are reported as unknown; without the right to list classes the
// finalizer decides.
func TestRightsForGateways(t *testing.T) {
	t.Parallel()
	kept := gateway("kept", "weir", accepted, programmed)
	kept.Finalizers = []string{metadata.ServiceFinalizer}
	api := server(t, kept, gateway("new", "weir", accepted, programmed), gatewayClass("weir", routing.ControllerName))
	for kind, want := range map[string]Gateways{"GatewayList": {Unseen: true}, "GatewayClassList": {All: []gatewayv1.Gateway{{}}}} {
		denied := interceptor.NewClient(api, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			switch list.(type) {
			case *gatewayv1.GatewayList:
				if kind != "GatewayList" {
					break
				}
				return apierrors.NewForbidden(schema.GroupResource{Resource: "gateways"}, "", nil)
			case *gatewayv1.GatewayClassList:
				return apierrors.NewForbidden(schema.GroupResource{Resource: "gatewayclasses"}, "", nil)
			}
			return c.List(ctx, list, opts...)
		}})
		got, err := ReadGateways(t.Context(), denied, "")
		if err != nil || got.Unseen != want.Unseen || len(got.All) != len(want.All) {
			t.Errorf("without %s: %+v, %v", kind, got, err)
		}
		if text := NewReport(Snapshot{At: noon, Gateways: got}).ObjectsText(); strings.Contains(text, "Gateways are unknown") != want.Unseen {
			t.Error(text)
		}
	}
}
