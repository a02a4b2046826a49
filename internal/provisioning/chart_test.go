// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/provisioning/charts"
)

// TestMain runs this binary as the chart rendering child.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == charts.Command {
		if err := charts.RunChild(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 3 && os.Args[1] == provisionerCommand {
		log.SetLogger(logr.Discard())
		if err := runProvisioner(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	log.SetLogger(logr.Discard()) // as the controller does; otherwise every logger is kept
	os.Exit(m.Run())
}

func newChart(t *testing.T, template string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	for name, text := range map[string]string{"Chart.yaml": "{apiVersion: v2, name: shop, version: 1.2.3}", "templates/all.yaml": template} {
		err := archive.WriteHeader(&tar.Header{Name: "shop/" + name, Mode: 0o600, Size: int64(len(text))})
		if _, wrong := archive.Write([]byte(text)); errors.Join(err, wrong) != nil {
			t.Fatal(err, wrong)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (s *stage) setChart(template, values, secret string) {
	s.t.Helper()
	step := &v1alpha1.HelmStep{Chart: v1alpha1.KeySource{ConfigMap: "chart", Key: "shop.tgz"}, ReleaseName: "edge", Namespace: "far", Values: &runtime.RawExtension{Raw: []byte(values)}, Prune: true}
	objects := []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "chart"}, BinaryData: map[string][]byte{"shop.tgz": newChart(s.t, template)}}}
	if secret != "" {
		step.ValuesFrom = []v1alpha1.KeySource{{Secret: "values", Key: "values.yaml"}}
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "values"}, Data: map[string][]byte{"values.yaml": []byte(secret)}})
	}
	for _, o := range objects {
		if s.here.Update(s.t.Context(), o) != nil {
			if err := s.here.Create(s.t.Context(), o); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	var p v1alpha1.Provision
	if err := s.here.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: "edge"}, &p); err != nil {
		s.t.Fatal(err)
	}
	p.Spec.Steps = []v1alpha1.ProvisionStep{{Name: "chart", Helm: step}}
	if err := s.here.Update(s.t.Context(), &p); err != nil {
		s.t.Fatal(err)
	}
}

// Chart objects are applied in the release namespace and pruned. Random output does not repeat the
// step; changed values do.
func TestHelmStep(t *testing.T) {
	if testing.Short() {
		t.Skip("what renders has a limit of memory, and the race detector takes more")
	}
	const template = `{{ range .Values.names }}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ . }}}, data: {version: {{ $.Capabilities.KubeVersion }}, pods: "{{ $.Capabilities.APIVersions.Has "v1/Pod" }}", random: {{ randAlpha 8 }}}}
{{ end }}`
	s := newStage(t)
	s.setChart(template, `{"names":["a","b"]}`, "")
	p, err := s.runSteps()
	if got := fmt.Sprint(p.Status.Steps[0].Inventory, err); got != "[/ConfigMap/far/a /ConfigMap/far/b] <nil>" {
		t.Fatalf("got %s\n%s", got, s.log.Text())
	}
	got, _ := s.target.objects["/api/v1/namespaces/far/configmaps/a"]["data"].(map[string]any)
	if got["version"] != "v1.37.2" || got["pods"] != "true" {
		t.Errorf("the target is %v", got)
	}
	if _, err := s.runSteps(); err != nil || !strings.Contains(s.log.Text(), "nothing has changed") {
		t.Errorf("once more: %v\n%s", err, s.log.Text())
	}
	s.setChart(template, `{"names":["a"]}`, "")
	if _, err := s.runSteps(); err != nil || !slices.Equal(s.target.deleted, []string{"b"}) {
		t.Errorf("deleted %v, %v", s.target.deleted, err)
	}
	s.setChart(`{kind: Job, metadata: {name: a, annotations: {helm.sh/hook: pre-install}}}`, "{}", "")
	if _, err := s.runSteps(); !strings.Contains(fmt.Sprint(err), "is a hook (pre-install)") || !errors.As(err, new(invalidError)) {
		t.Errorf("with a hook: %v", err)
	}
}

// A chart error does not quote a Secret.
func TestHelmLeaksNoSecret(t *testing.T) {
	if testing.Short() {
		t.Skip("what renders has a limit of memory, and the race detector takes more")
	}
	s := newStage(t)
	s.setChart(`{{ fail .Values.password }}`, "{}", "password: hunter2")
	if _, err := s.runSteps(); err == nil || strings.Contains(err.Error()+s.log.Text(), "hunter2") || !errors.As(err, new(invalidError)) {
		t.Errorf("got %v\n%s", err, s.log.Text())
	}
}
