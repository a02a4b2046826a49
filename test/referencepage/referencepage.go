// SPDX-License-Identifier: Apache-2.0

// Package referencepage compares measured or rendered text with a file in the repository; the flag
// -rewrite updates the file. For tests only.
package referencepage

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // registers the flag -rewrite, which a program may do only once
	"github.com/google/go-cmp/cmp"
)

// ExpectSection fails the test unless a page contains the text in the named section. A section lies between
// two markers; the first names the command that rewrites it:
//
//	<!-- rules: begin, rendered by go test ./lab/armemu -run Reference -rewrite -->
//	<!-- rules: end -->
func ExpectSection(t *testing.T, page, section, text string) {
	t.Helper()
	whole := readFile(t, page)
	s, err := findSection(whole, section)
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	diffLines(t, page, whole, s.before+text+s.after, s.content, text)
}

// ExpectFile fails the test unless the file's content equals text.
func ExpectFile(t *testing.T, file, text string) {
	t.Helper()
	whole := readFile(t, file)
	diffLines(t, file, whole, text, whole, text)
}

func diffLines(t *testing.T, file, whole, rewritten, shown, want string) {
	t.Helper()
	switch {
	case whole == rewritten:
	case isRewriting():
		if err := os.WriteFile(file, []byte(rewritten), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs (-file +test); run the test with -rewrite and review:\n%s", file, cmp.Diff(shown, want))
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func isRewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// pageSection is a page in three parts; the markers are in head and tail.
type pageSection struct{ before, content, after string }

func findSection(page, section string) (pageSection, error) {
	begin, end := "<!-- "+section+": begin", "<!-- "+section+": end -->"
	before, rest, ok := strings.Cut(page, begin)
	how, rest, closed := strings.Cut(rest, "-->\n")
	shown, tail, ended := strings.Cut(rest, end)
	if !ok || !closed || !ended {
		return pageSection{}, fmt.Errorf("the markers of section %s are lost", section)
	}
	return pageSection{before + begin + how + "-->\n", shown, end + tail}, nil
}
