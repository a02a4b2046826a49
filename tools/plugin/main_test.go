// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Each archive has the manifest's digest and contains the program and the license.
func TestAPluginForEachPlatform(t *testing.T) {
	dir := t.TempDir()
	builds := map[string]string{"kubectl-weir-linux-arm64": "one", "kubectl-weir-darwin-amd64": "two", "kubectl-weir-windows-amd64.exe": "three", "weir-linux-amd64": "none"}
	for name, content := range builds {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var before []byte
	for range 2 { // the second run finds its own archives
		if err := run(dir, "v1.2.3", "https://example.com/v1.2.3/", "../../LICENSE"); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "weir.yaml"))
		if err != nil || before != nil && !bytes.Equal(before, text) {
			t.Errorf("the second time:\n%s\n%v", text, err)
		}
		before = text
	}
	var p plugin
	if err := yaml.UnmarshalStrict(before, &p); err != nil || len(p.Spec.Platforms) != 3 || p.Spec.Version != "v1.2.3" {
		t.Fatalf("%v\n%s", err, before)
	}
	for _, of := range p.Spec.Platforms {
		labels := of.Selector.MatchLabels
		name, program := "kubectl-weir-"+labels["os"]+"-"+labels["arch"], "kubectl-weir"
		build := name
		if labels["os"] == "windows" {
			build, program = build+".exe", "kubectl-weir.exe"
		}
		if of.URI != "https://example.com/v1.2.3/"+name+".tar.gz" || of.Bin != program {
			t.Errorf("%s: %s starts %s", name, of.URI, of.Bin)
		}
		archive, err := os.ReadFile(filepath.Join(dir, name+".tar.gz"))
		if sum := sha256.Sum256(archive); err != nil || hex.EncodeToString(sum[:]) != of.SHA256 {
			t.Errorf("%s: it is not of digest %s: %v", name, of.SHA256, err)
		}
		present := readArchive(t, archive)
		if present[program] != builds[build] || len(present["LICENSE"]) < 1000 || len(present) != 2 {
			t.Errorf("%s has %v, its program is %q", name, slices.Sorted(maps.Keys(present)), present[program])
		}
	}
}

func TestInvalidPlugins(t *testing.T) {
	for _, tt := range []struct{ version, from, want string }{
		{"dev", "https://example.com", "want v1.2.3"},
		{"v1.2", "https://example.com", "want v1.2.3"},
		{"v1.2.3", "http://example.com", "want https://"},
		{"v1.2.3", "https://example.com", "no build"},
	} {
		if err := run(t.TempDir(), tt.version, tt.from, "../../LICENSE"); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v", tt, err)
		}
	}
}

// readArchive returns the files of an archive, and checks that programs are executable.
func readArchive(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for tape := tar.NewReader(zip); ; {
		h, err := tape.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tape)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(h.Name, "kubectl-") && h.Mode != 0o755 {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		names[h.Name] = string(content)
	}
}
