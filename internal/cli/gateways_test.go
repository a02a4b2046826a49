// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"weir.dev/weir/internal/k8s/metadata"
)

// Gateways are retried as Services are: by name, or all with a failed write. Those of other controllers are not.
func TestRetryOfGateways(t *testing.T) {
	t.Parallel()
	const now, unseen = " is retried now, or within 5 minutes if an early retry has just failed; it was ", "You may not list Gateways and their routes: failed writes of their load balancers are not retried.\n"
	gateway := func(namespace, name, message string) *gatewayv1.Gateway {
		gw := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{metadata.ServiceFinalizer}}}
		gw.Status.Conditions = []metav1.Condition{{Type: "Programmed", Status: "False", Reason: "Pending", Message: message}}
		return gw
	}
	foreign := gateway("shop", "theirs", "Failed: of another controller")
	foreign.Finalizers = nil
	for name, tt := range map[string]struct {
		namespace string
		run       func(RetryCommand) error
		forbidden bool
		want, err string
		requested string
	}{
		"one that failed":       {"shop", retryNamed("gateway/failed"), false, "gateway shop/failed" + now + "Failed\n", "", "shop/failed"},
		"a contested one":       {"shop", retryNamed("gateway/contested"), false, "gateway shop/contested" + now + "Contested\n", "", "shop/contested"},
		"one in progress":       {"shop", retryNamed("gateway/busy"), false, "", "no write of the load balancer of Gateway shop/busy has failed: weir explain gateway busy -n shop", ""},
		"one of another":        {"shop", retryNamed("gateway/api"), false, "", `reading Gateway shop/api: `, ""},
		"all that failed":       {"", retryAll, false, "gateway bank/api" + now + "Refused\ngateway shop/failed" + now + "Failed\n", "", "bank/api shop/failed"},
		"all of a namespace":    {"bank", retryAll, false, "gateway bank/api" + now + "Refused\n", "", "bank/api"},
		"without rights":        {"", retryAll, true, "No BackendPool has failed.\n" + unseen, "", ""},
		"a Gateway has no pool": {"shop", pauseNamed("gateway/failed"), false, "", `namespace shop has no BackendPool "gateway/failed"`, ""},
	} {
		c := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(foreign, gateway("shop", "failed", "Failed: 403 AuthorizationFailed: no"),
			gateway("shop", "busy", "Updating: not yet"), gateway("shop", "contested", "Contested: another client keeps reverting"), gateway("bank", "api", "Refused: no load balancer")).
			WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*gatewayv1.GatewayList); ok && tt.forbidden {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "gateways"}, "", nil)
				}
				return c.List(ctx, list, opts...)
			}}).Build()
		var out bytes.Buffer
		err := tt.run(RetryCommand{API: c, Namespace: tt.namespace, Out: &out})
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) || out.String() != tt.want {
			t.Errorf("%s: %v, want %q; said %q, want %q", name, err, tt.err, out.String(), tt.want)
		}
		tt.forbidden = false
		var gateways gatewayv1.GatewayList
		if err := c.List(t.Context(), &gateways); err != nil {
			t.Fatal(err)
		}
		var requests []string
		for _, gw := range gateways.Items {
			if gw.Annotations[metadata.WriteAgainAnnotation] != "" {
				requests = append(requests, gw.Namespace+"/"+gw.Name)
			}
		}
		if got := strings.Join(requests, " "); got != tt.requested {
			t.Errorf("%s: asked for %q, want %q", name, got, tt.requested)
		}
	}
}
