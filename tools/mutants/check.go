// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
)

// checker type-checks mutants before the build, because one that does not compile would break the
// build of all others.
type checker struct {
	fset    *token.FileSet
	imports types.Importer
	sources map[string][]byte
	files   map[string]map[string]*ast.File // by package and name, unchanged
}

func newChecker(ctx context.Context, root string, packages []string, texts map[string][]byte) (*checker, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}", "os", "strconv"}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // packages of the tree
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -export: %w", err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			exports[name] = file
		}
	}
	c := &checker{fset: token.NewFileSet(), sources: texts, files: map[string]map[string]*ast.File{}}
	c.imports = importer.ForCompiler(c.fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(exports[name])
	})
	for name, text := range texts {
		f, err := parser.ParseFile(c.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.addFile(name, f)
	}
	for _, p := range packages {
		for _, f := range c.files[p] {
			f, err := parser.ParseFile(c.fset, path.Join(p, selectorFile), selectorSource(f.Name.Name), parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			c.addFile(path.Join(p, selectorFile), f)
			break
		}
	}
	return c, nil
}

func (c *checker) addFile(name string, f *ast.File) {
	if c.files[path.Dir(name)] == nil {
		c.files[path.Dir(name)] = map[string]*ast.File{}
	}
	c.files[path.Dir(name)][name] = f
}

// canCompile reports whether the mutant type-checks and changes the file.
func (c *checker) canCompile(m mutant) bool {
	text, err := weaveFile(m.File, c.sources[m.File], map[int]mutant{1: m})
	if err != nil || bytes.Equal(text, c.sources[m.File]) {
		return false
	}
	changed, err := parser.ParseFile(c.fset, m.File, text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	var files []*ast.File
	for name, f := range c.files[path.Dir(m.File)] {
		if name == m.File {
			f = changed
		}
		files = append(files, f)
	}
	conf := types.Config{Importer: c.imports, Error: func(error) {}}
	_, err = conf.Check(path.Dir(m.File), c.fset, files, nil)
	return err == nil
}
