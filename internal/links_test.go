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

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	codeFence    = regexp.MustCompile("(?ms)^```.*?^```$")
	unsluggable  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// headingAnchor returns GitHub's anchor for a heading.
func headingAnchor(heading string) string {
	return strings.ReplaceAll(unsluggable.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}

// brokenLinks returns the links of a page to missing files or headings of the repository.
func brokenLinks(t *testing.T, page string) (wrong []string) {
	t.Helper()
	for _, m := range markdownLink.FindAllStringSubmatch(readProse(t, page), -1) {
		if strings.Contains(m[1], ":") { // external
			continue
		}
		to, anchor, _ := strings.Cut(m[1], "#")
		target := filepath.Join(filepath.Dir(page), to)
		if to == "" {
			target = page
		}
		if _, err := os.Stat(target); err != nil {
			wrong = append(wrong, m[1]+": no such file")
			continue
		}
		if anchor == "" || filepath.Ext(target) != ".md" {
			continue
		}
		found := false
		for _, h := range heading.FindAllStringSubmatch(readProse(t, target), -1) {
			found = found || headingAnchor(h[1]) == anchor
		}
		if !found {
			wrong = append(wrong, m[1]+": no such heading")
		}
	}
	return wrong
}

// readProse returns a page without its fenced code blocks.
func readProse(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return codeFence.ReplaceAllString(string(data), "")
}

func TestMarkdownLinks(t *testing.T) {
	pages := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && name != ".."):
			return filepath.SkipDir
		case filepath.Ext(name) == ".md":
			pages++
			for _, w := range brokenLinks(t, path) {
				t.Errorf("%s: %s", path, w)
			}
		}
		return nil
	})
	if err != nil || pages < 80 {
		t.Errorf("%d pages: are they still found? %v", pages, err)
	}
}

func TestBrokenLinks(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	text := "# One `thing`, two\n[a](#one-thing-two) [b](none.md) [c](page.md#three) [d](https://x/y)\n```\n# three\n[e](f)\n```\n"
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(brokenLinks(t, page), "; "); got != "none.md: no such file; page.md#three: no such heading" {
		t.Errorf("got %q", got)
	}
}

var (
	recordName = regexp.MustCompile(`^[0-9]{4}-.*\.md$`)
	recordRow  = regexp.MustCompile(`(?m)^\| .+\? \| \[([0-9]{4})\]\(([^)]+)\) \|`)
)

// TestDesignRecordsAreIndexed fails if the index lacks a record, or names one that does not exist.
func TestDesignRecordsAreIndexed(t *testing.T) {
	const folder = "../docs/design"
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]string{} // by number
	for _, e := range entries {
		if recordName.MatchString(e.Name()) {
			records[e.Name()[:4]] = e.Name()
		}
	}
	indexed := map[string]bool{}
	for _, row := range recordRow.FindAllStringSubmatch(readProse(t, filepath.Join(folder, "README.md")), -1) {
		number, file := row[1], row[2]
		if indexed[number] = true; records[number] != file {
			t.Errorf("the index links record %s to %s, which is %q", number, file, records[number])
		}
	}
	for number, file := range records {
		if !indexed[number] {
			t.Errorf("docs/design/README.md does not list %s", file)
		}
	}
	if len(records) < 50 {
		t.Errorf("%d records: are they still found?", len(records))
	}
}
