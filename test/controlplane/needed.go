// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// needsControlPlane reports whether the selected tests include external ones (package x_test), which alone may
// use the control plane. With -short those are skipped.
func needsControlPlane(folder string) (bool, error) {
	if flagValue("test.list") != "" {
		return false, nil
	}
	names, err := externalTests(folder)
	if err != nil {
		return true, err
	}
	if testing.Short() {
		return false, addSkipped(names)
	}
	for _, name := range names {
		if isSelected(name, flagValue("test.run"), flagValue("test.skip"), flagValue("test.bench")) {
			return true, nil
		}
	}
	return false, nil
}

func flagValue(name string) string { return flag.Lookup(name).Value.String() }

// addSkipped appends tests to the -skip flag.
func addSkipped(names []string) error {
	if len(names) == 0 {
		return nil
	}
	pattern := "^(" + strings.Join(names, "|") + ")$"
	if already := flagValue("test.skip"); already != "" {
		pattern = already + "|" + pattern
	}
	return flag.Set("test.skip", pattern)
}

// isSelected reports whether the flags select a test or benchmark, judged by the pattern before the
// first slash. In doubt it is selected.
func isSelected(name, run, skip, bench string) bool {
	if strings.HasPrefix(name, "Benchmark") {
		return bench != "" && matchesPattern(bench, name)
	}
	if skip != "" && !strings.Contains(skip, "/") && matchesPattern(skip, name) {
		return false
	}
	return matchesPattern(run, name)
}

func matchesPattern(pattern, name string) bool {
	for alternative := range strings.SplitSeq(pattern, "|") {
		if !strings.Contains(pattern, "/") {
			alternative = pattern
		}
		head, _, _ := strings.Cut(alternative, "/")
		re, err := regexp.Compile(head)
		if err != nil || re.MatchString(name) {
			return true
		}
	}
	return false
}

// externalTests returns the tests, benchmarks and fuzz targets in external test files.
func externalTests(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(f.Name.Name, "_test") {
			continue
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && isTest(fn.Name.Name) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names, nil
}

func isTest(name string) bool {
	for _, prefix := range []string{"Test", "Benchmark", "Fuzz"} {
		if strings.HasPrefix(name, prefix) && name != "TestMain" {
			return true
		}
	}
	return false
}
