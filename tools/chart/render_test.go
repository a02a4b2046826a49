// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const namespace = "weir-system"

const chartDir = "../../charts/weir"

// Render returns the output of helm template --include-crds --no-hooks.
func Render(t *testing.T, namespace, values string) (string, error) {
	t.Helper()
	ch, files, err := renderFiles(t, chartDir, namespace, values)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, crd := range ch.CRDObjects() {
		fmt.Fprintf(&out, "---\n%s\n", crd.File.Data)
	}
	for _, name := range slices.Sorted(keys(files)) {
		if path.Ext(name) == ".yaml" && name != testFile {
			fmt.Fprintf(&out, "---\n%s\n", files[name])
		}
	}
	return out.String(), nil
}

// testFile has the pod of helm test.
const testFile = "weir/templates/tests/doctor.yaml"

// RenderTest returns the pod of helm test.
func RenderTest(t *testing.T, namespace, values string) string {
	t.Helper()
	_, files, err := renderFiles(t, chartDir, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return files[testFile]
}

// renderFiles renders the templates of a chart, by their names.
func renderFiles(t *testing.T, dir, namespace, values string) (*chart.Chart, map[string]string, error) {
	t.Helper()
	return renderFilesFor(t, dir, namespace, values, "v1.37.2")
}

// renderFilesFor is renderFiles for a cluster of this version of Kubernetes.
func renderFilesFor(t *testing.T, dir, namespace, values, version string) (*chart.Chart, map[string]string, error) {
	t.Helper()
	ch, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	given, err := common.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "weir", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(ch, given, release, &common.Capabilities{KubeVersion: common.KubeVersion{Version: version}})
	if err != nil {
		return nil, nil, err
	}
	files, err := engine.Render(ch, all)
	return ch, files, err
}

func keys(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// parseObjects parses YAML documents, keyed by kind, namespace and name.
func parseObjects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	values := map[string]map[string]any{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	for {
		var o unstructured.Unstructured
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return values
		case err != nil:
			t.Fatalf("%v in\n%s", err, text)
		case len(o.Object) == 0:
			continue
		}
		key := strings.TrimSpace(o.GetKind() + " " + o.GetNamespace() + " " + o.GetName())
		if _, twice := values[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		values[key] = o.Object
	}
}

// buildKustomize builds folders of config/.
func buildKustomize(t *testing.T, folders ...string) map[string]map[string]any {
	t.Helper()
	values := map[string]map[string]any{}
	for _, folder := range folders {
		out, err := exec.CommandContext(t.Context(), "../../bin/kubectl", "kustomize", path.Join("../../config", folder)).Output()
		if err != nil {
			t.Fatalf("%v: run make kubelab first", err)
		}
		for key, o := range parseObjects(t, string(out)) {
			values[key] = o
		}
	}
	return values
}
