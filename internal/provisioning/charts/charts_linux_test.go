// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain runs this binary as the child.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == Command {
		if err := RunChild(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "reach" {
		os.Exit(tryOpen())
	}
	os.Exit(m.Run())
}

// tryOpen returns 1 if a limited process can open a file or socket.
func tryOpen() int {
	if err := setLimits(); err != nil {
		return 3
	}
	_, file := os.Open("/etc/passwd")
	_, socket := net.Listen("tcp", "127.0.0.1:0")
	if !errors.Is(file, syscall.EMFILE) || !errors.Is(socket, syscall.EMFILE) {
		return 4
	}
	return 0
}

// The rendering process can open nothing, whatever functions a chart calls.
func TestLimitedProcessReachesNothing(t *testing.T) {
	if out, err := exec.CommandContext(t.Context(), os.Args[0], "reach").CombinedOutput(); err != nil { //nolint:gosec // this program
		t.Errorf("%v\n%s", err, out)
	}
}

func newChart(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	if files["Chart.yaml"] == "" {
		files["Chart.yaml"] = "{apiVersion: v2, name: shop, version: 1.2.3}"
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		head := &tar.Header{Name: "shop/" + name, Mode: 0o600, Size: int64(len(files[name]))}
		if err := archive.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func requestOf(chart []byte, values ...string) Request {
	r := Request{Chart: chart, ReleaseName: "edge", Namespace: "far", KubeVersion: "v1.37.2", APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment"}}
	for _, v := range values {
		r.Values = append(r.Values, []byte(v))
	}
	return r
}

func textOf(documents []Document) string {
	var out []string
	for _, d := range documents {
		out = append(out, strings.TrimSpace(d.Text))
	}
	return strings.Join(out, "; ")
}

func TestChartIsRendered(t *testing.T) {
	chart := newChart(t, map[string]string{
		"values.yaml":               "a: chart\nb: chart\nc: chart\n",
		"crds/thing.yaml":           "kind: CustomResourceDefinition",
		"templates/_part.tpl":       `{{ define "part" }}{{ .Values.a }}/{{ .Values.b }}/{{ .Values.c }}{{ end }}`,
		"templates/NOTES.txt":       "thanks",
		"templates/a.yaml":          `{kind: Deployment, of: {{ include "part" . }}, as: {{ .Release.Name }}.{{ .Release.Namespace }}}`,
		"templates/b.yaml":          `{kind: ServiceAccount, on: {{ .Capabilities.KubeVersion }}, apps: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" }}, more: {{ .Capabilities.APIVersions.Has "batch/v1" }}, file: {{ .Files.Get "f.txt" }}}`,
		"templates/tests/test.yaml": `{kind: Pod, metadata: {name: t, annotations: {helm.sh/hook: "test, test-success"}}}`,
		"f.txt":                     "here",
	})
	rendered, err := RenderChart(t.Context(), requestOf(chart, "{a: from, b: from}", `{"b":"inline"}`))
	want := "kind: CustomResourceDefinition; " +
		"{kind: ServiceAccount, on: v1.37.2, apps: true, more: false, file: here}; " +
		"{kind: Deployment, of: from/inline/chart, as: edge.far}"
	if got := textOf(rendered); err != nil || got != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// An unsupported chart is reported to its author.
func TestChartIsRefused(t *testing.T) {
	hook := func(kind string) map[string]string {
		return map[string]string{"templates/h.yaml": "{kind: Job, metadata: {name: migrate, annotations: {helm.sh/hook: '" + kind + "'}}}"}
	}
	single := func(text string) map[string]string { return map[string]string{"templates/a.yaml": text} }
	for want, files := range map[string]map[string]string{
		"Job migrate of shop/templates/h.yaml is a hook (pre-install), and hooks are not run": hook("pre-install"),
		"is a hook (post-upgrade)":           hook("test, Post-Upgrade"),
		"is a hook (crd-install)":            hook("crd-install"),
		"is a hook (unheard)":                hook("unheard"),
		"no more of it":                      single(`{{ fail "no more of it" }}`),
		"nil pointer":                        single(`{{ .Values.a.b.c }}`),
		"function \"env\" not defined":       single(`{{ env "HOME" }}`),
		"function \"expandenv\" not defined": single(`{{ expandenv "$HOME" }}`),
		"it is of type library":              {"Chart.yaml": "{apiVersion: v2, name: shop, version: 1.2.3, type: library}"},
		"it is for Kubernetes >=2.0.0":       {"Chart.yaml": "{apiVersion: v2, name: shop, version: 1.2.3, kubeVersion: '>=2.0.0'}"},
		"the chart redis, on which it":       {"Chart.yaml": "{apiVersion: v2, name: shop, version: 1.2.3, dependencies: [{name: redis, version: 1.0.0}]}"},
		"more than 1 MiB":                    single(`{{ repeat 1100000 "x" }}`),
		"maximum size":                       {"bomb": strings.Repeat("x", maxChartBytes+1)},
	} {
		_, err := RenderChart(t.Context(), requestOf(newChart(t, files)))
		if got, ok := errors.AsType[Error](err); !ok || !strings.Contains(got.Text, want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := RenderChart(t.Context(), requestOf([]byte("text"))); err == nil || !strings.Contains(err.Error(), "it is no packed chart") {
		t.Errorf("no chart: %v", err)
	}
	if _, err := RenderChart(t.Context(), requestOf(newChart(t, single("")), "- 1")); err == nil || !strings.Contains(err.Error(), "values") {
		t.Errorf("no values: %v", err)
	}
	if _, err := RenderChart(t.Context(), requestOf(newChart(t, single("")), "a: b\n---\nc: d\n")); err == nil || !strings.Contains(err.Error(), "values: text follows the end") {
		t.Errorf("values of two documents: %v", err)
	}
}

// A hostile chart is limited in time, memory and access.
func TestChartIsBounded(t *testing.T) {
	single := func(text string) Request { return requestOf(newChart(t, map[string]string{"templates/a.yaml": text})) }
	for name, tt := range map[string]struct{ text, want string }{
		"time":      {`{{ range $a := until 100000 }}{{ range $b := until 100000 }}{{ end }}{{ end }}`, "s of CPU"},
		"memory":    {`{{ $x := "x" }}{{ range until 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`, "of memory"},
		"recursion": {`{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, ""},
		"inclusion": {`{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := RenderChart(t.Context(), single(tt.text))
			if got, ok := errors.AsType[Error](err); !ok || !strings.Contains(got.Text, tt.want) || len(got.Text) > maxErrorBytes {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RenderChart(ended, single("")); !errors.Is(err, context.Canceled) {
		t.Errorf("after the attempt's end: %v", err)
	}
	t.Setenv("WEIR_SECRET", "hunter2")
	rendered, err := RenderChart(t.Context(), single(`{a: "{{ getHostByName "localhost" }}", b: "{{ lookup "v1" "Secret" "a" "b" }}", c: "{{ .Files.Get "/etc/hostname" }}{{ .Files.Get "../../etc/hostname" }}{{ osBase "/x/y" }}"}`))
	if got := textOf(rendered); err != nil || got != `{a: "", b: "map[]", c: "y"}` {
		t.Errorf("it sees %s, %v", got, err)
	}
	schema := requestOf(newChart(t, map[string]string{"values.schema.json": `{"$ref": "file:///etc/passwd"}`, "templates/a.yaml": "{a: 1}"}))
	if all, err := RenderChart(t.Context(), schema); err != nil || textOf(all) != "{a: 1}" {
		t.Errorf("a schema is looked at: %v, %v", all, err)
	}
}

// While a child runs, the parent's memory limit is lower, because they share a container.
func TestAChildHasRoom(t *testing.T) {
	before := debug.SetMemoryLimit(460 << 20)
	defer debug.SetMemoryLimit(before)
	ended := make(chan error, 1)
	go func() {
		_, err := RenderChart(t.Context(), requestOf(newChart(t, map[string]string{"templates/a.yaml": "{a: 1}"})))
		ended <- err
	}()
	least := int64(460 << 20)
	for len(ended) == 0 {
		least = min(least, debug.SetMemoryLimit(-1))
		runtime.Gosched()
	}
	if current := debug.SetMemoryLimit(-1); least != 332<<20 || current != 460<<20 {
		t.Errorf("%d MiB while a chart is rendered, then %d", least>>20, current>>20)
	}
}
