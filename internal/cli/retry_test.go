// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"weir.dev/weir/api/v1alpha1"
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
		"those of a Service":   {"shop", []string{"service/web"}, "shop/web.kubernetes shop/web.kubernetes-internal", ""},
		"all that failed":      {"", nil, "bank/api shop/web.kubernetes", ""},
		"all of a namespace":   {"bank", nil, "bank/api", ""},
		"none has failed":      {"empty", nil, "", ""},
		"no such pool":         {"shop", []string{"web.kubernetes", "web"}, "", `namespace shop has no BackendPool "web"`},
		"one of another":       {"shop", []string{"api"}, "", `namespace shop has no BackendPool "api"`},
		"no pool of a Service": {"shop", []string{"service/x"}, "", `no BackendPool of namespace shop is for Service "x"`},
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
			var all v1alpha1.BackendPoolList
			if err := api.List(t.Context(), &all, client.InNamespace("")); err != nil {
				t.Fatal(err)
			}
			var asked []string
			for _, p := range all.Items {
				if p.Annotations[v1alpha1.RetryNowAnnotation] == "2026-03-01T12:00:00Z" {
					asked = append(asked, p.Namespace+"/"+p.Name)
				}
			}
			if got := strings.Join(asked, " "); got != tt.want {
				t.Errorf("asked for %q, want %q", got, tt.want)
			}
			for _, name := range asked {
				if !strings.Contains(out.String(), "backendpool "+name+" is tried again now; it was ") {
					t.Errorf("said %q", out.String())
				}
			}
			if len(asked) == 0 && tt.err == "" && out.String() != "No BackendPool has failed.\n" {
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
		false: "backendpool shop/web is tried again at 2026-03-01T12:01:00Z, not before, because of Azure's Retry-After; it was Retrying\nbackendpool shop/api is tried again now; it was Retrying\n",
		true:  `[{"namespace":"shop","name":"web","state":"Retrying","notBefore":"2026-03-01T12:01:00Z"},{"namespace":"shop","name":"api","state":"Retrying"}]` + "\n",
	} {
		var out bytes.Buffer
		if err := (RetryCommand{API: api, Namespace: "shop", Out: &out, JSON: json}).RetryPools(t.Context(), []string{"web", "api"}, now); err != nil || out.String() != want {
			t.Errorf("%v, %q, want %q", err, out.String(), want)
		}
	}
}
