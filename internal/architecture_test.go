// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecturePage = "../docs/architecture.md"

var (
	folderRow    = regexp.MustCompile("(?m)^\\| `internal/([^`/]+)` \\|")
	sequenceStep = regexp.MustCompile(`(?m)^[0-9]+\. `)
	stepFunction = regexp.MustCompile("^[0-9]+\\. `([^`]+\\.go)` `([^`]+)`: ")
)

// TestArchitectureFolders compares the table of folders with layers.
func TestArchitectureFolders(t *testing.T) {
	page := readProse(t, architecturePage)
	var described, want []string
	for _, row := range folderRow.FindAllStringSubmatch(page, -1) {
		described = append(described, row[1])
	}
	for _, l := range layers {
		want = append(want, l.folder)
	}
	if !slices.Equal(described, want) {
		t.Errorf("%s describes internal/ as\n%q, layers are\n%q", architecturePage, described, want)
	}
}

// TestArchitectureSequences finds the function of each step in its file.
func TestArchitectureSequences(t *testing.T) {
	sequences := 0
	for _, section := range strings.Split(readProse(t, architecturePage), "\n## ")[1:] {
		title, steps, _ := strings.Cut(section, "\n")
		if !sequenceStep.MatchString(steps) {
			continue
		}
		sequences++
		count, wrong := checkSequence("..", steps)
		if count < 5 || count > 10 {
			t.Errorf("%s: %s has %d steps, want 5 to 10", architecturePage, title, count)
		}
		for _, w := range wrong {
			t.Errorf("%s: %s: %s", architecturePage, title, w)
		}
	}
	if sequences != 5 {
		t.Errorf("%s has %d sequences, want 5", architecturePage, sequences)
	}
}

func TestWrongSequence(t *testing.T) {
	root := t.TempDir()
	source := "package x\n\ntype A[T any] struct{}\n\nfunc (a *A[T]) Run() {}\n\nfunc (B) Stop() {}\n\nfunc start() {}\n"
	if err := os.WriteFile(filepath.Join(root, "x.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	count, wrong := checkSequence(root, "1. `x.go` `A.Run`: a\n2. `x.go` `B.Stop`: b\n3. `x.go` `start`: c\n"+
		"4. `x.go` `Run`: d\n5. `y.go` `start`: e\n6. starts\n")
	want := "1: x.go has no function Run; 2: cannot read y.go; 3: want `file.go` `Function`: text, is 6. starts"
	for i := range wrong {
		wrong[i] = fmt.Sprintf("%d: %s", i+1, wrong[i])
	}
	if got := strings.Join(wrong, "; "); count != 6 || got != want {
		t.Errorf("got %d steps, %q, want %q", count, got, want)
	}
}

// checkSequence returns the number of steps of a section, and what is wrong with them.
func checkSequence(root, section string) (steps int, wrong []string) {
	for line := range strings.Lines(section) {
		if !sequenceStep.MatchString(line) {
			continue
		}
		steps++
		step := stepFunction.FindStringSubmatch(line)
		if step == nil {
			wrong = append(wrong, "want `file.go` `Function`: text, is "+strings.TrimSpace(line))
			continue
		}
		declared, err := functionsIn(filepath.Join(root, filepath.FromSlash(step[1])))
		if err != nil {
			wrong = append(wrong, "cannot read "+step[1])
		} else if !slices.Contains(declared, step[2]) {
			wrong = append(wrong, step[1]+" has no function "+step[2])
		}
	}
	return steps, wrong
}

var codeReference = regexp.MustCompile("`((?:[\\w-]+/)+[\\w-]+\\.go)`((?: `[\\w.]+`)*)")

// TestCodeReferences finds each file that the documentation names with its folder, and the names after it.
func TestCodeReferences(t *testing.T) {
	files, references := repositoryFiles(t), 0
	err := filepath.WalkDir("../docs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page := readProse(t, path)
		references += len(codeReference.FindAllString(page, -1))
		for _, w := range wrongReferences(files, page) {
			t.Errorf("%s: %s", path, w)
		}
		return nil
	})
	if err != nil || references < 40 {
		t.Errorf("%d references: are they still found? %v", references, err)
	}
}

func TestWrongReferences(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	if err := os.WriteFile(file, []byte("package x\n\nvar a, b = 1, 2\n\ntype T struct{}\n\nfunc (*T) Run() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"internal/a/x.go": file, "lab/b/y.go": file, "lab/c/b/y.go": file}
	got := wrongReferences(files, "`a/x.go` `b` `T` `Run` `T.Run` `c`, `internal/a/x.go` `U`, `b/y.go`, `a/y.go`, `x.go`")
	want := []string{"a/x.go does not declare c", "internal/a/x.go does not declare U", "2 files end in b/y.go", "0 files end in a/y.go"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// wrongReferences returns what is wrong with a page's references; files has where each file of the repository is.
func wrongReferences(files map[string]string, page string) (wrong []string) {
	for _, m := range codeReference.FindAllStringSubmatch(page, -1) {
		var found []string
		for name := range files {
			if name == m[1] || strings.HasSuffix(name, "/"+m[1]) {
				found = append(found, name)
			}
		}
		if len(found) != 1 {
			wrong = append(wrong, fmt.Sprintf("%d files end in %s", len(found), m[1]))
			continue
		}
		declared, err := declaredIn(files[found[0]])
		if err != nil {
			wrong = append(wrong, err.Error())
			continue
		}
		for _, name := range strings.Fields(strings.ReplaceAll(m[2], "`", "")) {
			if !slices.Contains(declared, name) {
				wrong = append(wrong, m[1]+" does not declare "+name)
			}
		}
	}
	return wrong
}

// repositoryFiles returns the path of each Go file by its path in the repository.
func repositoryFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || name == "bin" || strings.HasPrefix(name, ".") && name != ".."):
			return filepath.SkipDir
		case filepath.Ext(name) == ".go":
			files[strings.TrimPrefix(filepath.ToSlash(path), "../")] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// declaredIn returns the names that a file declares; a method is listed with and without its type.
func declaredIn(file string) (names []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name, receiverPrefix(d)+d.Name.Name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names, nil
}

// functionsIn returns the names of a file's functions; a method has the name of its type in front.
func functionsIn(file string) (names []string, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			names = append(names, receiverPrefix(fn)+fn.Name.Name)
		}
	}
	return names, nil
}

// receiverPrefix returns the type of a method and a dot, or nothing for a function.
func receiverPrefix(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	name, _, _ := strings.Cut(types.ExprString(fn.Recv.List[0].Type), "[")
	return strings.TrimPrefix(name, "*") + "."
}
