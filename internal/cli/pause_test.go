// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pool(namespace, name, service string, spec v1alpha1.BackendPoolSpec) *v1alpha1.BackendPool {
	spec.ServiceRef = &v1alpha1.ServiceReference{Name: service}
	return &v1alpha1.BackendPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec,
		Status: v1alpha1.BackendPoolStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionSynced, Reason: v1alpha1.ReasonInSync}}},
	}
}

// server has three pools, one paused by joe for an hour. The caller is jane, unless caller is empty. Patches
// fail with refuses, if set.
func server(caller string, refuses error) (api client.Client, requested *[]client.PatchOption) {
	requested = &[]client.PatchOption{}
	return fake.NewClientBuilder().WithScheme(metadata.Scheme()).WithObjects(
		pool("shop", "web", "web", v1alpha1.BackendPoolSpec{}), pool("bank", "api", "api", v1alpha1.BackendPoolSpec{}),
		pool("shop", "db", "db", v1alpha1.BackendPoolSpec{Paused: true, Pause: &v1alpha1.Pause{Until: new(metav1.NewTime(noon.Add(time.Hour))), Why: "old", By: "joe"}}),
	).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			review, ok := obj.(*authenticationv1.SelfSubjectReview)
			if !ok || caller == "" {
				return errors.New("no such kind")
			}
			review.Status.UserInfo.Username = caller
			return nil
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			*requested = opts
			if refuses != nil {
				return refuses
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build(), requested
}

// specs describes the pauses of all pools.
func specs(t *testing.T, api client.Client) string {
	t.Helper()
	var list v1alpha1.BackendPoolList
	if err := api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range list.Items {
		if !p.Spec.Paused && p.Spec.Pause == nil {
			continue
		}
		text := p.Namespace + "/" + p.Name
		if d := p.Spec.Pause; d != nil {
			if d.Until != nil {
				text += " until " + d.Until.UTC().Format("15:04:05")
			}
			text += " by " + d.By + " why " + d.Why
		}
		got = append(got, text)
	}
	return strings.Join(got, ", ")
}

func TestPause(t *testing.T) {
	const old = "shop/db until 13:00:00 by joe why old"
	for name, tt := range map[string]struct {
		namespace    string
		names        []string
		length       time.Duration
		reason       string
		caller       string
		want, format string
		err          string
	}{
		"for a time":         {"shop", []string{"web"}, 90*time.Minute + time.Millisecond, "a move", "jane", old + ", shop/web until 13:30:01 by jane why a move", "backendpool shop/web is paused until 2026-03-01T13:30:01Z; it was InSync\n", ""},
		"without an end":     {"shop", []string{"service/web"}, 0, "", "", old + ", shop/web", "backendpool shop/web is paused without an end: weir resume -n shop web ends it; it was InSync\n", ""},
		"nothing of before":  {"shop", []string{"db"}, 0, "", "jane", "shop/db by jane why ", "backendpool shop/db is paused without an end: weir resume -n shop db ends it; it was InSync\n", ""},
		"all of a namespace": {"bank", nil, 0, "x", "", "bank/api by  why x, " + old, "backendpool bank/api is paused without an end: weir resume -n bank api ends it; it was InSync\n", ""},
		"all":                {"", nil, 0, "", "", "bank/api, shop/db, shop/web", "", ""},
		"none is there":      {"empty", nil, 0, "", "", old, "There is no BackendPool.\n", ""},
		"one is not there":   {"shop", []string{"web", "api"}, 0, "", "", old, "", `namespace shop has no BackendPool "api"`},
		"a name like a book": {"shop", []string{"web"}, 0, "", strings.Repeat("é", 300), old + ", shop/web by " + strings.Repeat("é", 256) + " why ", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			api, requested := server(tt.caller, nil)
			var out bytes.Buffer
			err := PauseCommand{API: api, Namespace: tt.namespace, Names: tt.names, Out: &out}.PausePools(t.Context(), tt.length, tt.reason, noon)
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			if got := specs(t, api); got != tt.want {
				t.Errorf("paused are %q, want %q", got, tt.want)
			}
			if tt.format != "" && out.String() != tt.format {
				t.Errorf("said %q, want %q", out.String(), tt.format)
			}
			if len(*requested) > 0 {
				o := &client.PatchOptions{}
				o.ApplyOptions(*requested)
				if o.FieldValidation != metav1.FieldValidationStrict || len(o.DryRun) > 0 {
					t.Errorf("%+v", o)
				}
			}
		})
	}
}

func TestResume(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace    string
		names        []string
		want, format string
	}{
		"one":                   {"shop", []string{"db"}, "", "backendpool shop/db is resumed: changes since the pause are written now\n"},
		"all that are paused":   {"", nil, "", "backendpool shop/db is resumed: changes since the pause are written now\n"},
		"one that is not":       {"shop", []string{"web"}, "shop/db until 13:00:00 by joe why old", "backendpool shop/web was not paused\n"},
		"none of the namespace": {"bank", nil, "shop/db until 13:00:00 by joe why old", "No BackendPool is paused.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			api, _ := server("jane", nil)
			var out bytes.Buffer
			if err := (PauseCommand{API: api, Namespace: tt.namespace, Names: tt.names, Out: &out}).ResumePools(t.Context()); err != nil {
				t.Error(err)
			}
			if got := specs(t, api); got != tt.want || out.String() != tt.format {
				t.Errorf("paused are %q, want %q; said %q, want %q", got, tt.want, out.String(), tt.format)
			}
		})
	}
}

// A dry run changes nothing, but validates at the API server.
func TestADryRun(t *testing.T) {
	api, requested := server("jane", nil)
	var out bytes.Buffer
	d := PauseCommand{API: api, Namespace: "shop", Names: []string{"web"}, Out: &out, JSON: true, DryRun: true}
	if err := d.PausePools(t.Context(), time.Hour, "", noon); err != nil {
		t.Fatal(err)
	}
	var output []Pool
	if err := json.Unmarshal(out.Bytes(), &output); err != nil || len(output) != 1 || !output[0].DryRun || !output[0].Paused || output[0].WasPaused || output[0].Pause.By != "jane" {
		t.Errorf("%v: %s", err, out.String())
	}
	if got := specs(t, api); strings.Contains(got, "shop/web") || len(*requested) == 0 {
		t.Errorf("paused are %q; asked with %v", got, *requested)
	}
}

// An API server with an old CRD rejects a pause with an end; otherwise it would never end.
func TestDefinitionsThatAreTooOld(t *testing.T) {
	api, _ := server("jane", errors.New(`error decoding patch: strict decoding error: unknown field "spec.pause"`))
	var out bytes.Buffer
	err := PauseCommand{API: api, Namespace: "shop", Names: []string{"web"}, Out: &out}.PausePools(t.Context(), time.Hour, "", noon)
	if err == nil || !strings.Contains(err.Error(), "BackendPool shop/web: ") || !strings.Contains(err.Error(), "kubectl apply --server-side -k config/crd") {
		t.Error(err)
	}
	if out.Len() > 0 {
		t.Errorf("said %q", out.String())
	}
}
