// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/policy"
)

// stage is a Provision of two steps, first and second, with an fakeServer as target.
type stage struct {
	t      *testing.T
	here   client.Client
	target *fakeServer
	// handler replaces target if set.
	handler http.Handler
	run     *run
	log     *policy.Log
}

func newStage(t *testing.T) *stage {
	step := func(name string) v1alpha1.ProvisionStep {
		return v1alpha1.ProvisionStep{Name: name, Manifests: &v1alpha1.ManifestsStep{Prune: true, Sources: []v1alpha1.ManifestSource{{ConfigMap: name}}}}
	}
	p := &v1alpha1.Provision{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Provision"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "edge", UID: "1"},
		Spec:       v1alpha1.ProvisionSpec{Steps: []v1alpha1.ProvisionStep{step("first"), step("second")}},
	}
	return &stage{t: t, here: fakeAPI(t, interceptor.Funcs{}, p), target: &fakeServer{}}
}

func (s *stage) setSources(step string, names ...string) {
	text := ""
	for _, name := range names {
		if namespace, of, named := strings.Cut(name, "/"); named {
			name = of + ", namespace: " + namespace
		}
		text += fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}\n", name)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: step}, Data: map[string]string{"objects": text}}
	if s.here.Update(s.t.Context(), cm) != nil {
		if err := s.here.Create(s.t.Context(), cm); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stage) runSteps() (*v1alpha1.Provision, error) {
	var p v1alpha1.Provision
	if err := s.here.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: "edge"}, &p); err != nil {
		s.t.Fatal(err)
	}
	s.log = &policy.Log{}
	var handler http.Handler = s.target
	if s.handler != nil {
		handler = s.handler
	}
	server := httptest.NewTLSServer(handler)
	s.t.Cleanup(server.Close)
	s.run = &run{reconciler: New(Config{Live: s.here, Writer: s.here, Log: slog.New(slog.DiscardHandler)}), p: &p, target: connectServer(s.t.Context(), s.t, server), log: s.log}
	_, err := s.run.runInOrder(s.t.Context())
	return &p, err
}

// An object moved to another step is kept; one in no step is deleted.
func TestPruningKnowsAllSteps(t *testing.T) {
	s := newStage(t)
	s.setSources("first", "stays", "moves", "far/moves-too", "goes")
	s.setSources("second", "other")
	if _, err := s.runSteps(); err != nil {
		t.Fatal(err)
	}
	s.setSources("first", "stays")
	s.setSources("second", "other", "default/moves", "far/moves-too")
	if _, err := s.runSteps(); err != nil || !slices.Equal(s.target.deleted, []string{"goes"}) {
		t.Errorf("deleted %v, %v\n%s", s.target.deleted, err, s.log.Text())
	}
	s.target.deleted = nil
	s.setSources("first", "stays", "other")
	s.setSources("second", "far/moves-too")
	p, err := s.runSteps()
	if err != nil || !slices.Equal(s.target.deleted, []string{"moves"}) {
		t.Errorf("then deleted %v, %v", s.target.deleted, err)
	}
	if got := fmt.Sprint(p.Status.Steps[0].Inventory, p.Status.Steps[1].Inventory); got != "[/ConfigMap/default/other /ConfigMap/default/stays] [/ConfigMap/far/moves-too]" {
		t.Errorf("inventories are %s", got)
	}
}

// A status message of an object from a Secret is not quoted.
func TestReadinessLeaksNoSecret(t *testing.T) {
	for condition, fails := range map[string]bool{"Reconciling": false, "Stalled": true} {
		obj := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a"},
			"status": map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True", "reason": "Busy", "message": "hunter2"}}},
		}}
		for secret, want := range map[bool]string{true: "not ready", false: "hunter2"} {
			ready, reason, err := checkReadiness(obj, secret, false)
			if fails && err != nil {
				reason = err.Error()
			}
			if ready || (err != nil) != fails || reason != want {
				t.Errorf("%s, of a Secret: %v: %v, %q, %v", condition, secret, ready, reason, err)
			}
		}
	}
}
