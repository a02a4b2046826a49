// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Only external test files may use the control plane.
func TestExternal(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"x.go":           "package x\n",
		"inside_test.go": "package x\n\nfunc TestInside(t *testing.T) {}\n",
		"main_test.go":   "package x_test\n\nfunc TestMain(m *testing.M) {}\n\nfunc TestOutside(t *testing.T) {}\n\nfunc BenchmarkIt(b *testing.B) {}\n\nfunc help() {}\n\ntype s struct{}\n\nfunc (s) TestNone() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := externalTests(dir)
	if err != nil || !slices.Equal(got, []string{"TestOutside", "BenchmarkIt"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestChosen(t *testing.T) {
	for _, c := range []struct {
		name, run, skip, bench string
		want                   bool
	}{
		{"TestA", "", "", "", true},
		{"TestA", "^TestA$", "", "", true},
		{"TestA", "TestB", "", "", false},
		{"TestA", "TestB|TestA", "", "", true},
		{"TestA", "TestB/x|TestA/y", "", "", true},
		{"TestA", "TestB/TestA", "", "", false},
		{"TestA", "Test(A|B)", "", "", true},
		{"TestA", "Test(A|B)/x", "", "", true}, // ambiguous
		{"TestA", "", "^TestA$", "", false},
		{"TestA", "", "TestA/x", "", true},
		{"BenchmarkA", "", "", "", false},
		{"BenchmarkA", "^$", "", ".", true},
		{"BenchmarkA", "", "", "B$", false},
	} {
		if got := isSelected(c.name, c.run, c.skip, c.bench); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
