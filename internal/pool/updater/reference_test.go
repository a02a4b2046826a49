// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The tests that the documentation references exist.
func TestReferenceNamesTestsThatExist(t *testing.T) {
	updater, err := os.ReadFile("../../../docs/reference/updater.md")
	if err != nil {
		t.Fatal(err)
	}
	adminState, err := os.ReadFile("../../../docs/reference/admin-state-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	text := slices.Concat(updater, adminState)
	out, err := exec.CommandContext(t.Context(), "grep", "-rhoE", "--include=*_test.go", `^func (Test|Fuzz|Benchmark)[A-Za-z0-9_]+`, "../..", "../../../lab", "../../../test").Output()
	if err != nil {
		t.Fatal(err)
	}
	exists := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		exists[strings.TrimSpace(strings.TrimPrefix(line, "func "))] = true
	}
	for _, m := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
		if !exists[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`([0-9]{2})`").FindAllStringSubmatch(string(text), -1) {
		if files, _ := filepath.Glob("testdata/" + m[1] + "_*"); len(files) != 1 {
			t.Errorf("script %s: %q", m[1], files)
		}
	}
	for _, m := range regexp.MustCompile("scenario `([a-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
		if files, _ := filepath.Glob("../../../lab/scenario/testdata/*" + m[1] + "*"); len(files) == 0 {
			t.Errorf("there is no scenario %s", m[1])
		}
	}
}
