// SPDX-License-Identifier: Apache-2.0

package referencepage

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

const page = `# Page
<!-- one: begin, rendered by hand -->
1
<!-- one: end -->
between
<!-- two: begin -->
2
<!-- two: end -->
`

func TestASectionIsFoundBetweenItsMarkers(t *testing.T) {
	for section, want := range map[string]string{"one": "1\n", "two": "2\n"} {
		got, err := findSection(page, section)
		if err != nil || got.content != want || got.before+got.content+got.after != page {
			t.Errorf("%s: %q, %v", section, got, err)
		}
	}
	for _, lost := range []string{"three", "on"} {
		if got, err := findSection(page, lost); err == nil {
			t.Errorf("%s: found %q", lost, got)
		}
	}
}

// An up-to-date section is not written, and the rest of the page is kept.
func TestRewrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(page), 0o400); err != nil {
		t.Fatal(err)
	}
	ExpectSection(t, file, "one", "1\n")
	ExpectFile(t, file, page)

	rewriteFlag := flag.Lookup("rewrite").Value
	if before := rewriteFlag.String(); before == "false" {
		t.Cleanup(func() { _ = rewriteFlag.Set(before) })
	}
	if err := rewriteFlag.Set("true"); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	ExpectSection(t, file, "two", "two\n")
	ExpectSection(t, file, "one", "")
	got, err := os.ReadFile(file)
	if want := "# Page\n<!-- one: begin, rendered by hand -->\n<!-- one: end -->\nbetween\n<!-- two: begin -->\ntwo\n<!-- two: end -->\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	ExpectFile(t, file, "all of it")
	if got, err := os.ReadFile(file); err != nil || string(got) != "all of it" {
		t.Errorf("%q, %v", got, err)
	}
}
