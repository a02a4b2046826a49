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

// Shows fails the test unless a page contains the text in the named section. A section lies between
// two markers; the first names the command that rewrites it:
//
//	<!-- rules: begin, rendered by go test ./lab/armemu -run Reference -rewrite -->
//	<!-- rules: end -->
func Shows(t *testing.T, page, section, text string) {
	t.Helper()
	whole := read(t, page)
	s, err := find(whole, section)
	if err != nil {
		t.Fatalf("%s: %v", page, err)
	}
	compare(t, page, whole, s.head+text+s.tail, s.shown, text)
}

// Is fails the test unless the file's content equals text.
func Is(t *testing.T, file, text string) {
	t.Helper()
	whole := read(t, file)
	compare(t, file, whole, text, whole, text)
}

func compare(t *testing.T, file, whole, rewritten, shown, want string) {
	t.Helper()
	switch {
	case whole == rewritten:
	case rewriting():
		if err := os.WriteFile(file, []byte(rewritten), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs (-file +test); run the test with -rewrite and review:\n%s", file, cmp.Diff(shown, want))
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// found is a page in three parts; the markers are in head and tail.
type found struct{ head, shown, tail string }

func find(page, section string) (found, error) {
	begin, end := "<!-- "+section+": begin", "<!-- "+section+": end -->"
	before, rest, ok := strings.Cut(page, begin)
	how, rest, closed := strings.Cut(rest, "-->\n")
	shown, tail, ended := strings.Cut(rest, end)
	if !ok || !closed || !ended {
		return found{}, fmt.Errorf("the markers of section %s are lost", section)
	}
	return found{before + begin + how + "-->\n", shown, end + tail}, nil
}
