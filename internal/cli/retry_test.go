// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services/servicelb"
	"weir.dev/weir/internal/k8s/metadata"
)

func poolRetry(namespace, name, service, state string) *v1alpha1.BackendPool {
	return &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.BackendPoolSpec{ServiceRef: &v1alpha1.ServiceReference{Name: service}},
		Status:     v1alpha1.BackendPoolStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSynced, Reason: state}}},
	}
}

func TestRetry(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		namespace string
		names     []string // empty: all failed
		want      string   // annotated pools
		err       string
	}{
		"one pool":             {"shop", []string{"web.kubernetes"}, "shop/web.kubernetes", ""},
		"as messages name it":  {"shop", []string{"backendpool/web.kubernetes"}, "shop/web.kubernetes", ""},
		"those of a Service":   {"shop", []string{"service/web"}, "shop/web.kubernetes shop/web.kubernetes-internal", ""},
		"all that failed":      {"", nil, "bank/api shop/web.kubernetes", ""},
		"all of a namespace":   {"bank", nil, "bank/api", ""},
		"none has failed":      {"empty", nil, "", ""},
		"no such pool":         {"shop", []string{"web.kubernetes", "web"}, "", `namespace shop has no BackendPool "web"`},
		"one of another":       {"shop", []string{"api"}, "", `namespace shop has no BackendPool "api"`},
		"no pool of a Service": {"shop", []string{"service/x"}, "", `there is no Service "x" in namespace shop`},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(
				poolRetry("shop", "web.kubernetes", "web", v1alpha1.ReasonRetrying), poolRetry("shop", "web.kubernetes-internal", "web", v1alpha1.ReasonInSync),
				poolRetry("shop", "paused", "other", v1alpha1.ReasonPaused), poolRetry("bank", "api", "api", v1alpha1.ReasonFailed),
			).Build()
			var out bytes.Buffer
			d := RetryCommand{API: api, Namespace: tt.namespace, Out: &out}
			err := d.RetryFailed(t.Context(), now)
			if tt.names != nil {
				api = fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(
					poolRetry("shop", "web.kubernetes", "web", v1alpha1.ReasonRetrying), poolRetry("shop", "web.kubernetes-internal", "web", v1alpha1.ReasonInSync), poolRetry("bank", "api", "api", v1alpha1.ReasonFailed)).Build()
				d.API = api
				out.Reset()
				err = d.RetryPools(t.Context(), tt.names, now)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			var list v1alpha1.BackendPoolList
			if err := api.List(t.Context(), &list, client.InNamespace("")); err != nil {
				t.Fatal(err)
			}
			var patched []string
			for _, p := range list.Items {
				if p.Annotations[v1alpha1.RetryNowAnnotation] == "2026-03-01T12:00:00Z" {
					patched = append(patched, p.Namespace+"/"+p.Name)
				}
			}
			if got := strings.Join(patched, " "); got != tt.want {
				t.Errorf("patched for %q, want %q", got, tt.want)
			}
			for _, name := range patched {
				if !strings.Contains(out.String(), "backendpool "+name+" is retried now; it was ") {
					t.Errorf("said %q", out.String())
				}
			}
			if len(patched) == 0 && tt.err == "" && out.String() != "No BackendPool has failed, and no write of a load balancer of a Service or Gateway.\n" {
				t.Errorf("said %q", out.String())
			}
		})
	}
}

// A retry during a Retry-After prints its end; a retry of a paused pool prints that it is paused.
func TestRetryWaitsForAzure(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	waits, waited := poolRetry("shop", "web", "web", v1alpha1.ReasonRetrying), poolRetry("shop", "api", "api", v1alpha1.ReasonRetrying)
	waits.Status.NextEligibleAt = new(metav1.NewTime(now.Add(time.Minute)))
	waited.Status.NextEligibleAt = new(metav1.NewTime(now.Add(-time.Minute)))
	paused := poolRetry("shop", "off", "off", v1alpha1.ReasonPaused)
	paused.Status.NextEligibleAt = waits.Status.NextEligibleAt
	api := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(waits, waited, paused).Build()
	var out bytes.Buffer
	if err := (RetryCommand{API: api, Namespace: "shop", Out: &out}).RetryPools(t.Context(), []string{"off"}, now); err != nil || out.String() != "backendpool shop/off is retried after the pause (weir resume); it was Paused\n" {
		t.Errorf("%v, %q", err, out.String())
	}
	for json, want := range map[bool]string{
		false: "backendpool shop/web is retried at 2026-03-01T12:01:00Z, not before, because of Azure's Retry-After; it was Retrying\nbackendpool shop/api is retried now; it was Retrying\n",
		true:  `[{"kind":"BackendPool","namespace":"shop","name":"web","state":"Retrying","notBefore":"2026-03-01T12:01:00Z"},{"kind":"BackendPool","namespace":"shop","name":"api","state":"Retrying"}]` + "\n",
	} {
		var out bytes.Buffer
		if err := (RetryCommand{API: api, Namespace: "shop", Out: &out, JSON: json}).RetryPools(t.Context(), []string{"web", "api"}, now); err != nil || out.String() != want {
			t.Errorf("%v, %q, want %q", err, out.String(), want)
		}
	}
}

// sharedService is a Service on the pool of all nodes; reason is that of its Programmed condition.
func sharedService(namespace, name, reason string) *corev1.Service {
	status := metav1.ConditionFalse
	if reason == servicelb.ConditionReasonProgrammed {
		status = metav1.ConditionTrue
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{metadata.PlaceAnnotation: "Kubernetes"}},
		Status:     corev1.ServiceStatus{Conditions: []metav1.Condition{{Type: servicelb.TypeProgrammed, Status: status, Reason: reason}}},
	}
}

// A Service on the shared pool: its failed write is retried; otherwise the error names the pool and the next command. Without
// the right to list Services, the output names what is not retried.
func TestServicesOnTheSharedPool(t *testing.T) {
	shared := poolRetry("weir-system", "nodes.kubernetes", "", v1alpha1.ReasonInSync)
	shared.Spec = v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{}, LoadBalancer: v1alpha1.LoadBalancerReference{Name: "kubernetes"}}
	shared.Status.MadeFor = v1alpha1.MadeForNodes
	const next = "Service shop/well has no BackendPool of its own: it shares the pool of all nodes with the other Services of its load balancer. For all of them: weir "
	for name, tt := range map[string]struct {
		namespace string
		run       func(RetryCommand) error
		forbidden bool
		want, err string
		patched   string
	}{
		"one that failed":  {"shop", retryNamed("service/failed"), false, "service shop/failed is retried now, or within 5 minutes if an early retry has just failed; it was Failed\n", "", "shop/failed"},
		"a contested one":  {"shop", retryNamed("service/contested"), false, "service shop/contested is retried now, or within 5 minutes if an early retry has just failed; it was Contested\n", "", "shop/contested"},
		"one in sync":      {"shop", retryNamed("service/well"), false, "", next + "retry -n weir-system nodes.kubernetes", ""},
		"a pause":          {"shop", pauseNamed("service/well"), false, "", next + "pause -n weir-system nodes.kubernetes", ""},
		"a pause, failed":  {"shop", pauseNamed("service/failed"), false, "", "weir pause -n weir-system nodes.kubernetes", ""},
		"none is there":    {"shop", retryNamed("service/none"), false, "", `there is no Service "none" in namespace shop: kubectl get services -n shop lists them`, ""},
		"unserved":         {"shop", retryNamed("service/other"), false, "", "and no load balancer of Weir: weir explain service other -n shop", ""},
		"all that failed":  {"", retryAll, false, "service bank/api is retried now, or within 5 minutes if an early retry has just failed; it was Refused\nservice shop/failed is retried now, or within 5 minutes if an early retry has just failed; it was Failed\n", "", "bank/api shop/failed"},
		"of one namespace": {"bank", retryAll, false, "service bank/api is retried now, or within 5 minutes if an early retry has just failed; it was Refused\n", "", "bank/api"},
		"without rights":   {"", retryAll, true, "No BackendPool has failed.\nYou may not list Services: failed writes of their load balancers are not retried.\n", "", ""},
	} {
		other := sharedService("shop", "other", servicelb.ConditionReasonProgrammed)
		other.Annotations = nil
		c := fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(shared, other, sharedService("shop", "failed", servicelb.ConditionReasonFailed),
			sharedService("shop", "contested", servicelb.ConditionReasonConflict), sharedService("shop", "well", servicelb.ConditionReasonProgrammed), sharedService("bank", "api", servicelb.ConditionReasonRejected)).
			WithInterceptorFuncs(interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, services := list.(*corev1.ServiceList); services && tt.forbidden {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", nil)
				}
				return c.List(ctx, list, opts...)
			}}).Build()
		var out bytes.Buffer
		err := tt.run(RetryCommand{API: c, Namespace: tt.namespace, Out: &out})
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) || out.String() != tt.want {
			t.Errorf("%s: %v, want %q; said %q, want %q", name, err, tt.err, out.String(), tt.want)
		}
		tt.forbidden = false
		var all corev1.ServiceList
		if err := c.List(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		var patched []string
		for _, s := range all.Items {
			if s.Annotations[metadata.WriteAgainAnnotation] != "" {
				patched = append(patched, s.Namespace+"/"+s.Name)
			}
		}
		if got := strings.Join(patched, " "); got != tt.patched {
			t.Errorf("%s: patched for %q, want %q", name, got, tt.patched)
		}
	}
}

func retryAll(d RetryCommand) error { return d.RetryFailed(context.Background(), noon) }

func retryNamed(name string) func(RetryCommand) error {
	return func(d RetryCommand) error { return d.RetryPools(context.Background(), []string{name}, noon) }
}

func pauseNamed(name string) func(RetryCommand) error {
	return func(d RetryCommand) error {
		return PauseCommand{API: d.API, Namespace: d.Namespace, Names: []string{name}, Out: d.Out}.PausePools(context.Background(), 0, "", noon)
	}
}
