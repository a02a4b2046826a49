// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every bound in the threat model names at least one existing test.
func TestTheThreatModelNamesTests(t *testing.T) {
	page, err := os.ReadFile("../docs/reference/threat-model.md")
	if err != nil {
		t.Fatal(err)
	}
	_, bounds, _ := strings.Cut(string(page), "\n## Pod\n")
	tests, rows := testNames(t), 0
	for line := range strings.Lines(bounds) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| it can") {
			continue
		}
		rows++
		named := regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("a bound without a test: %s", line)
		}
		for _, name := range named {
			if !tests[name[1]] {
				t.Errorf("there is no test %s: %s", name[1], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d bounds: has the page another form?", rows)
	}
}

// testNames returns the names of all tests in the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names, declaration := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, match := range declaration.FindAllStringSubmatch(string(source), -1) {
			names[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
