// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// maxFiles is the maximum number of files in a shipped package. Lines and methods are not limited:
// such limits led to splinter packages and to functions that should be methods.
const maxFiles = 30

const exceptionsFile = "testdata/exceptions.txt"

var lowerExceptions = flag.Bool("lower", false, "lower the numbers in testdata to what there is")

// TestHouseKeepsItsBudget fails when a package exceeds the budget, or its recorded exception.
// Exceptions may only shrink.
func TestHouseKeepsItsBudget(t *testing.T) {
	tree, err := parseTree(t.Context(), "../..", "./cmd/weir")
	if err != nil {
		t.Fatal(err)
	}
	over, allowed := overBudget(computeSizes(tree)), readNumbers(t, exceptionsFile)
	left := map[string]int{}
	for _, what := range slices.Sorted(maps.Keys(over)) {
		had, excepted := allowed[what]
		switch {
		case !excepted:
			t.Errorf("%s: %d is over the budget of %s; give what it does a room of its own", what, over[what], budget)
		case over[what] > had:
			t.Errorf("%s: %d, and it had %d when the budget was made: what is over the budget may only shrink", what, over[what], had)
		}
		if excepted {
			left[what] = min(had, over[what])
		}
	}
	if *lowerExceptions {
		writeNumbers(t, exceptionsFile, "# What is over the budget of "+budget+".", "Budget", left)
		return
	}
	for _, what := range slices.Sorted(maps.Keys(allowed)) {
		if slack := allowed[what] - left[what]; slack*10 > allowed[what] {
			t.Errorf("%s: %d is more than a tenth above what there is: run go test ./tools/house -run Budget -lower", what, allowed[what])
		}
	}
}

var budget = fmt.Sprintf("%d files a package", maxFiles)

func overBudget(all []packageSize) map[string]int {
	over := map[string]int{}
	for _, s := range all {
		if s.Files > maxFiles {
			over[s.Package+" files"] = s.Files
		}
	}
	return over
}

// readNumbers reads lines of "internal/x files 31"; "#" begins a comment.
func readNumbers(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		var name, unit string
		var n int
		if _, err := fmt.Sscan(line, &name, &unit, &n); err != nil {
			t.Fatalf("%s: %q: %v", file, line, err)
		}
		all[name+" "+unit] = n
	}
	return all
}

// writeNumbers writes numbers below a title and the command that lowers them.
func writeNumbers(t *testing.T, file, title, test string, numbers map[string]int) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n# The numbers may only shrink: go test ./tools/house -run %s -lower\n", title, test)
	for _, what := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintf(&text, "%s %d\n", what, numbers[what])
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
