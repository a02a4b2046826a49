// SPDX-License-Identifier: Apache-2.0

// Package transcript compares a test's record of one object's life, in virtual time, line by line
// with a file in testdata. The flag -write-lives rewrites the files. For tests only.
package transcript

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var write = flag.Bool("write-lives", false, "write what the lives of objects are now into testdata")

// Transcript is a record.
type Transcript struct{ text strings.Builder }

// Compare records a life in virtual time and fails the test at the first line that differs from
// testdata/name.txt.
func Compare(t *testing.T, name string, plays func(t *testing.T, x *Transcript)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		x := &Transcript{}
		plays(t, x)
		file := filepath.Join("testdata", name+".txt")
		if *write {
			if err := os.WriteFile(file, []byte(x.text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if how := diffFile(file, x.text.String(), string(want)); how != "" {
			t.Fatal(how)
		}
	})
}

// BeginChapter begins a chapter one second later.
func (t *Transcript) BeginChapter(title string) {
	time.Sleep(time.Second)
	fmt.Fprintf(&t.text, "\n%s\n", title)
}

// AddLine appends a line to the chapter.
func (t *Transcript) AddLine(format string, args ...any) {
	fmt.Fprintf(&t.text, "  "+format+"\n", args...)
}

// FormatRequeue formats the time of the next reconciliation; zero is never.
func FormatRequeue(after time.Duration) string {
	if after == 0 {
		return "not again"
	}
	return "again in " + after.String()
}

// FormatError formats an error as a line ending, if not nil.
func FormatError(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// linesBefore is the number of context lines before a difference.
const linesBefore = 6

// diffFile describes the first difference between a text and a file, or returns "".
func diffFile(file, got, want string) string {
	gots, wants := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(gots), len(wants)) {
		if gots[i] != wants[i] {
			return fmt.Sprintf("%s:%d:\n got %s\nwant %s\nafter\n%s", file, i+1, gots[i], wants[i], strings.Join(gots[max(0, i-linesBefore):i], ""))
		}
	}
	if len(gots) != len(wants) {
		return fmt.Sprintf("%s: %d lines, want %d", file, len(gots), len(wants))
	}
	return ""
}
