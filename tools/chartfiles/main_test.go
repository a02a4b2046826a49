// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// The chart contains what generateFiles returns, and no other file in the generated folders.
func TestChartIsGenerated(t *testing.T) {
	want, err := generateFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) < 25 {
		t.Errorf("only %d files: is config/ found?", len(want))
	}
	got := map[string]string{}
	for _, name := range append([]string{"README.md"}, generatedDirs...) {
		for file, content := range readTree(t, filepath.Join(root, chartDir, name)) {
			got[filepath.Join(name, file)] = content
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("run make generate; what it writes (-) and what is there (+):\n%s", diff)
	}
}

// writeFiles removes files that config/ no longer has, and errors leave nothing half written.
func TestWriteFiles(t *testing.T) {
	dir := t.TempDir()
	for _, from := range []string{"config", chartDir} {
		if err := os.CopyFS(filepath.Join(dir, from), os.DirFS(filepath.Join(root, from))); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	move := func(from, to string) {
		t.Helper()
		if err := os.Rename(at(from), at(to)); err != nil {
			t.Fatal(err)
		}
	}
	move("config/view/reader.yaml", "config/view/viewer.yaml")
	if err := writeFiles(dir); err != nil {
		t.Fatal(err)
	}
	if files := readTree(t, at(chartDir+"/manifests/view")); len(files) != 1 || files["viewer.yaml"] == "" {
		t.Errorf("manifests/view has %v", files)
	}
	before := readTree(t, at(chartDir))
	move("config/view", "config/views")
	if err := writeFiles(dir); err == nil || !strings.Contains(err.Error(), "config/view/*.yaml") {
		t.Errorf("a folder without files: %v", err)
	}
	if diff := cmp.Diff(before, readTree(t, at(chartDir))); diff != "" {
		t.Errorf("an error changed files: %s", diff)
	}
}

// Each value has a description and a default.
func TestValuesAreDescribed(t *testing.T) {
	for name, tt := range map[string]struct{ schema, values, wantText string }{
		"no description":      {`{"properties": {"a": {"type": "string"}}}`, `a: b`, "a has no description"},
		"none within":         {`{"properties": {"a": {"properties": {"b": {}}}}}`, `a: {b: 1}`, "a.b has no description"},
		"no default":          {`{"properties": {"a": {"description": "d"}}}`, `{}`, "a has no default"},
		"not in the schema":   {`{"properties": {}}`, `a: 1`, "a is not described"},
		"none of that within": {`{"properties": {"a": {"properties": {}}}}`, `a: {b: 1}`, "a.b is not described"},
	} {
		dir := t.TempDir()
		for file, content := range map[string]string{"values.schema.json": tt.schema, "values.yaml": tt.values} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := renderReadme(dir); err == nil || !strings.Contains(err.Error(), tt.wantText) {
			t.Errorf("%s: %v, want %s", name, err, tt.wantText)
		}
	}
}

// readTree reads all files below a folder, or a file, which is then named ".". A symbolic link fails the test:
// Helm reports each one, and a copied chart lacks what it points to.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			t.Errorf("%s is not a regular file", path)
		}
		content, err := os.ReadFile(path) //nolint:gosec // a file of the repository
		name, relErr := filepath.Rel(dir, path)
		if err != nil || relErr != nil {
			return err
		}
		files[name] = string(content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
