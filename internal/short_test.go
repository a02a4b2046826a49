// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fullyTested lists packages whose tests make test always runs without -short.
var fullyTested = []string{"lab/demo", "test/controlplane"}

// TestShortTestsRunInFull checks that make test runs the packages with -short tests again,
// without -short and without the race detector.
func TestShortTestsRunInFull(t *testing.T) {
	played := makeList(t, "LONG")
	var want []string
	for dir := range goFiles(t, "..") {
		name := filepath.ToSlash(strings.TrimPrefix(dir, ".."+string(filepath.Separator)))
		if slices.Contains(fullyTested, name) || name == "internal" {
			continue
		}
		tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(tests, func(f string) bool { return usesShort(t, f) }) {
			want = append(want, "./"+name)
		}
	}
	slices.Sort(played)
	slices.Sort(want)
	if !slices.Equal(played, want) {
		t.Errorf("LONG of the Makefile is\n%v\nand -short leaves out tests in\n%v", played, want)
	}
}

// makeList returns the words of a variable of the Makefile.
func makeList(t *testing.T, name string) []string {
	t.Helper()
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^` + name + `\s*:=(.*)$`).FindSubmatch(makefile)
	if line == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return strings.Fields(string(line[1]))
}

// The Makefile selects the tests that call testing.Short by name; one that is called by a helper would not run in full.
func TestShortIsCalledByTests(t *testing.T) {
	for _, dir := range makeList(t, "LONG") {
		eachDecl(t, dir, func(path string, d ast.Decl) {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				return
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Short" && isIdent(s.X, "testing") {
					t.Errorf("%s calls testing.Short outside of a test", path)
				}
				return true
			})
		})
	}
}

// The race detector finds nothing in packages that run in one goroutine, tests included.
func TestPackagesWithoutTheRaceDetectorStartNoGoroutine(t *testing.T) {
	for _, dir := range makeList(t, "PURE") {
		eachDecl(t, dir, func(path string, d ast.Decl) {
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s starts a goroutine: take its package from PURE of the Makefile", path)
				case *ast.SelectorExpr:
					if n.Sel.Name == "Parallel" && isIdent(n.X, "t") {
						t.Errorf("%s has parallel tests: take its package from PURE of the Makefile", path)
					}
				}
				return true
			})
		})
	}
}

func isIdent(x ast.Expr, name string) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == name
}

// eachDecl passes the declarations of a folder's files, tests included.
func eachDecl(t *testing.T, dir string, visit func(path string, d ast.Decl)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no files: %v", dir, err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			visit(path, d)
		}
	}
}

func usesShort(t *testing.T, file string) bool {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(raw, []byte("testing.Short()"))
}
