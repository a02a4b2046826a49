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

// Lines, files and methods are not limited: such limits led to splinter packages and to functions that should be methods.
const (
	maxImports = 12 // packages of this module that a shipped package imports, unless it connects them
	maxFolders = 22 // directly below internal
)

const exceptionsFile = "testdata/exceptions.txt"

var lowerExceptions = flag.Bool("lower", false, "lower the numbers in testdata to what there is")

// TestHouseKeepsItsBudget fails when a package exceeds the budget, or its recorded exception.
// Exceptions may only shrink.
func TestHouseKeepsItsBudget(t *testing.T) {
	tree, err := parseTree(t.Context(), "../..", "./cmd/weir", "./cmd/weir-provisioner")
	if err != nil {
		t.Fatal(err)
	}
	folders, err := countFolders("../../internal")
	if err != nil {
		t.Fatal(err)
	}
	over, allowed := overBudget(computeSizes(tree), folders), readNumbers(t, exceptionsFile)
	remaining := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(over)) {
		before, excepted := allowed[name]
		switch {
		case !excepted:
			t.Errorf("%s: %d is over the budget of %s", name, over[name], budget)
		case over[name] > before:
			t.Errorf("%s: %d, and %s allows %d: exceptions may only shrink", name, over[name], exceptionsFile, before)
		}
		if excepted {
			remaining[name] = min(before, over[name])
		}
	}
	if *lowerExceptions {
		writeNumbers(t, exceptionsFile, "# What is over the budget of "+budget+".", "Budget", remaining)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		if slack := allowed[name] - remaining[name]; slack*10 > allowed[name] {
			t.Errorf("%s: %d is more than a tenth above what there is: run go test ./tools/house -run Budget -lower", name, allowed[name])
		}
	}
}

var budget = fmt.Sprintf("%d imports of a package, and %d folders below internal", maxImports, maxFolders)

func overBudget(sizes []packageSize, folders int) map[string]int {
	over := map[string]int{}
	for _, s := range sizes {
		if s.Imports > maxImports && !connectsPackages(s.Package) {
			over[s.Package+" imports"] = s.Imports
		}
	}
	if folders > maxFolders {
		over["internal folders"] = folders
	}
	return over
}

// connectsPackages reports whether it is the purpose of a package to import many others.
func connectsPackages(path string) bool {
	return path == "internal/app" || strings.HasPrefix(path, "cmd/")
}

func countFolders(dir string) (n int, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			n++
		}
	}
	return n, err
}

func TestOverBudget(t *testing.T) {
	sizes := []packageSize{
		{Package: "internal/a", Imports: 12}, {Package: "internal/b", Imports: 13},
		{Package: "internal/app", Imports: 50}, {Package: "cmd/weir", Imports: 13}, {Package: "internal/app/x", Imports: 14},
	}
	want := map[string]int{"internal/b imports": 13, "internal/app/x imports": 14}
	if got := overBudget(sizes, 22); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want["internal folders"] = 23
	if got := overBudget(sizes, 23); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	dir := t.TempDir()
	for _, name := range []string{"a/b", "c"} {
		if err := os.MkdirAll(dir+"/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := countFolders(dir); n != 2 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

// readNumbers reads lines of "internal/x imports 13"; "#" begins a comment.
func readNumbers(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	numbers := map[string]int{}
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
		numbers[name+" "+unit] = n
	}
	return numbers
}

// writeNumbers writes numbers below a title and the command that lowers them.
func writeNumbers(t *testing.T, file, title, test string, numbers map[string]int) {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n# The numbers may only shrink: go test ./tools/house -run %s -lower\n", title, test)
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintf(&text, "%s %d\n", name, numbers[name])
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
