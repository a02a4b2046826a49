// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fullyTested lists packages whose tests make unit always runs without -short.
var fullyTested = []string{"lab/demo", "test/controlplane"}

// TestShortTestsRunInFull checks that make unit runs the packages with -short tests again,
// without -short and without the race detector.
func TestShortTestsRunInFull(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^LONG\s*:=(.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatal("the Makefile has no LONG")
	}
	played := strings.Fields(string(line[1]))
	var want []string
	for dir := range goFiles(t, "..") {
		name := filepath.ToSlash(strings.TrimPrefix(dir, ".."+string(filepath.Separator)))
		if slices.Contains(fullyTested, name) || name == "internal" {
			continue
		}
		tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(tests, func(f string) bool { return usesShort(t, f) }) {
			want = append(want, "./"+name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(played, want) {
		t.Errorf("LONG of the Makefile is\n%v\nand -short leaves out tests in\n%v", played, want)
	}
}

func usesShort(t *testing.T, file string) bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(raw, []byte("testing.Short()"))
}
