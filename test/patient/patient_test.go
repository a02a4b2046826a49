// SPDX-License-Identifier: Apache-2.0

package patient_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nobody forgets to have an emulator watched: each package whose tests start one says how
// it finds out who came too early. The emulator's own tests are rude on purpose.
func TestEveryEmulatorIsWatched(t *testing.T) {
	starts, watches := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		dir := filepath.ToSlash(filepath.Dir(path))
		test := strings.HasSuffix(path, "_test.go") || dir == "../../lab/scenario"
		starts[dir] = starts[dir] || test && strings.Contains(string(text), "armemu.New(")
		watches[dir] = watches[dir] || strings.Contains(string(text), "patient.Watched(") ||
			strings.Contains(string(text), "patient.Kept(") || strings.Contains(string(text), ".Hasty()")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for dir := range starts {
		if !starts[dir] || dir == "." || dir == "../../lab/armemu" {
			continue
		}
		if found++; !watches[dir] {
			t.Errorf("%s starts an emulator, and nobody asks who came before a Retry-After: use patient.Watched", dir)
		}
	}
	if found < 8 {
		t.Errorf("found %d packages alone that start an emulator", found)
	}
}
