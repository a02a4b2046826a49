// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/wholewrite"
)

// Results are stored with other keys. Unreadable results and those of other versions are dropped by
// the next write.
func TestWholeWritesAreOnRecord(t *testing.T) {
	seen := wholewrite.Record{Version: "v2", Addresses: wholewrite.Result{Answer: behaviour.Ignored, At: time.Unix(1000, 0).UTC()}}
	old := wholewrite.FormatRecords(map[string]wholewrite.Record{"other": {Version: "v1"}}, "v1")
	beside := wholewrite.FormatRecords(map[string]wholewrite.Record{"third": {Version: "v2"}}, "v2")
	for _, tt := range []struct {
		about  string
		stands []client.Object
		knows  string
		keeps  string // keys
		then   string
		warns  bool
	}{
		{"nothing is there", nil, "", "whole-writes", "s1", false},
		{"the name of the cluster", []client.Object{recordHolding(map[string]string{"cluster-name": "prod"})}, "", "cluster-name whole-writes", "s1", false},
		{"another version", []client.Object{recordHolding(map[string]string{"whole-writes": old})}, "other", "whole-writes", "s1", false},
		{"another subscription", []client.Object{recordHolding(map[string]string{"whole-writes": beside, "else": "x"})}, "third", "else whole-writes", "s1 third", false},
		{"nonsense", []client.Object{recordHolding(map[string]string{"whole-writes": "yes", "else": "x"})}, "", "else whole-writes", "s1", true},
	} {
		api := fake.NewClientBuilder().WithScheme(view.Scheme()).WithObjects(tt.stands...).Build()
		var log strings.Builder
		w := UpdateBehavior{Reader: api, Writer: api, Namespace: "weir-system", Version: "v2", Log: slog.New(slog.NewTextHandler(&log, nil))}
		names := func() string {
			all, err := w.ReadRecords(t.Context())
			if err != nil {
				t.Errorf("%s: %v", tt.about, err)
			}
			return strings.Join(slices.Sorted(maps.Keys(all)), " ")
		}
		if got := names(); got != tt.knows {
			t.Errorf("%s: knows of %q, want %q", tt.about, got, tt.knows)
		}
		if err := w.WriteRecord(t.Context(), "S1", seen); err != nil {
			t.Errorf("%s: %v", tt.about, err)
		}
		if got := strings.Join(slices.Sorted(maps.Keys(recordOf(t, api))), " "); got != tt.keeps {
			t.Errorf("%s: the ConfigMap has %s, want %s", tt.about, got, tt.keeps)
		}
		if got := names(); got != tt.then {
			t.Errorf("%s: then it knows of %q, want %q", tt.about, got, tt.then)
		}
		if all, _ := w.ReadRecords(t.Context()); all["s1"] != seen {
			t.Errorf("%s: %+v comes back as %+v", tt.about, seen, all["s1"])
		}
		if got := strings.Contains(log.String(), "configMap=weir-system/weir-controller key=whole-writes"); got != tt.warns {
			t.Errorf("%s: the log says %q", tt.about, log.String())
		}
	}
}

// A concurrent write between read and write loses nothing.
func TestWholeWritesAreKeptBesideAnotherWriter(t *testing.T) {
	moved := false
	api := interceptor.NewClient(fake.NewClientBuilder().WithScheme(view.Scheme()).WithObjects(recordHolding(nil)).Build(), interceptor.Funcs{
		Update: func(ctx context.Context, api client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			if !moved {
				moved = true
				m := obj.DeepCopyObject().(*corev1.ConfigMap)
				m.Data = map[string]string{"cluster-name": "prod"}
				if err := api.Update(ctx, m); err != nil {
					return err
				}
			}
			return api.Update(ctx, obj, opts...)
		},
	})
	w := UpdateBehavior{Reader: api, Writer: api, Namespace: "weir-system", Version: "v2", Log: slog.New(slog.DiscardHandler)}
	if err := w.WriteRecord(t.Context(), "s1", wholewrite.Record{Version: "v2"}); err != nil {
		t.Fatal(err)
	}
	if got := recordOf(t, api); got["cluster-name"] != "prod" || !strings.Contains(got["whole-writes"], `"s1"`) {
		t.Errorf("it holds %v", got)
	}
}
