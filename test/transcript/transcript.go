// SPDX-License-Identifier: Apache-2.0

// Package transcript has a test write down all that a part of Weir does in the life of one
// object, in virtual time, and compares it line by line with a file of the package's testdata.
// Tests that are started with -write-lives write the files anew, to be read as a diff. It is for
// tests alone.
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

// Transcript is what has been written down.
type Transcript struct{ text strings.Builder }

// Of plays a life in virtual time, and fails the test at the first line that is another than in
// testdata/name.txt.
func Of(t *testing.T, name string, plays func(t *testing.T, x *Transcript)) {
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
		if how := compare(file, x.text.String(), string(want)); how != "" {
			t.Fatal(how)
		}
	})
}

// When begins a chapter, a second later.
func (x *Transcript) When(what string) {
	time.Sleep(time.Second)
	fmt.Fprintf(&x.text, "\n%s\n", what)
}

// Says writes down a line of the chapter.
func (x *Transcript) Says(format string, args ...any) {
	fmt.Fprintf(&x.text, "  "+format+"\n", args...)
}

// Again says when something is looked at again; zero is not at all.
func Again(after time.Duration) string {
	if after == 0 {
		return "not again"
	}
	return "again in " + after.String()
}

// Failing ends a line with an error, if there is one.
func Failing(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// linesBefore is how many lines are shown before the one that differs.
const linesBefore = 6

// compare says where a text differs from the one in a file; empty if it does not.
func compare(file, got, want string) string {
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
