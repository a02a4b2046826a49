// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

const charts = "../../../charts/weir"

// The chart of a release installs the images of that release, by digest.
func TestChartOfARelease(t *testing.T) {
	dir := t.TempDir()
	controller, provisioner := "sha256:"+strings.Repeat("a", 64), "sha256:"+strings.Repeat("b", 64)
	writeFile(t, filepath.Join(dir, "image-refs-weir"), "weir.invalid/weir:v1.2.3@"+controller+"\nweir.invalid/weir@sha256:"+strings.Repeat("c", 64)+"\n")
	writeFile(t, filepath.Join(dir, "image-refs-weir-provisioner"), "weir.invalid/weir-provisioner@"+provisioner)
	if err := run(charts, dir, release{Version: "v1.2.3", Repository: "ghcr.io/weir/weir"}); err != nil {
		t.Fatal(err)
	}
	c, err := loader.Load(filepath.Join(dir, "weir-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.AppVersion != "v1.2.3" {
		t.Errorf("appVersion is %q", c.Metadata.AppVersion)
	}
	image, ofProvisioner := c.Values["image"].(map[string]any), c.Values["provisioner"].(map[string]any)
	for _, tt := range []struct{ name, got, want any }{
		{"image.repository", image["repository"], "ghcr.io/weir/weir"},
		{"image.tag", image["tag"], "v1.2.3"},
		{"image.digest", image["digest"], controller},
		{"provisioner.repository", ofProvisioner["repository"], "ghcr.io/weir/weir-provisioner"},
		{"provisioner.digest", ofProvisioner["digest"], provisioner},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

func TestChartOfARejectedRelease(t *testing.T) {
	valid := release{Version: "v1.2.3", Repository: "ghcr.io/weir/weir", Controller: "sha256:a", Provisioner: "sha256:b"}
	for name, tt := range map[string]struct {
		change func(*release)
		want   string
	}{
		"no version":                 {func(r *release) { r.Version = "" }, `-version ""`},
		"a version without its v":    {func(r *release) { r.Version = "1.2.3" }, `-version "1.2.3"`},
		"no image":                   {func(r *release) { r.Repository = "" }, `-image ""`},
		"an image with a line break": {func(r *release) { r.Repository = "weir\ntag: x" }, `-image "weir\ntag: x"`},
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := valid, t.TempDir()
			tt.change(&r)
			if _, err := packChart(charts, dir, r); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %s", err, tt.want)
			}
			if files, _ := os.ReadDir(dir); len(files) > 0 {
				t.Errorf("%d files were written", len(files))
			}
		})
	}
	if err := run(charts, t.TempDir(), valid); err == nil || !strings.Contains(err.Error(), "run make image first") {
		t.Errorf("without images the error is %v", err)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
