// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the shipped code of a module, with type information.
type tree struct {
	fset     *token.FileSet
	module   string // module path
	packages []*pkg // in dependency order
}

type pkg struct {
	path  string // relative to the module
	files []*ast.File
	lines map[*ast.File]int
	info  *types.Info
	types *types.Package
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct {
		Path string
		Main bool
	}
}

// loadTree reads and type-checks the packages that a command links. Packages outside the module come from
// compiled export data, which go list builds if needed.
func loadTree(ctx context.Context, dir, root string) (*tree, error) {
	packages, err := listPackages(ctx, dir, []string{root}, "-export")
	if err != nil {
		return nil, err
	}
	t := &tree{fset: token.NewFileSet()}
	known := &packageImporter{modulePackages: map[string]*types.Package{}, exportFiles: map[string]string{}}
	known.fallback = importer.ForCompiler(t.fset, "gc", known.openExport)
	for _, l := range packages {
		if l.Module == nil || !l.Module.Main {
			known.exportFiles[l.ImportPath] = l.Export
			continue
		}
		p, err := t.parsePackage(l)
		if err == nil {
			p.types, err = (&types.Config{Importer: known}).Check(l.ImportPath, t.fset, p.files, p.info)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.ImportPath, err)
		}
		known.modulePackages[l.ImportPath] = p.types
	}
	if len(t.packages) == 0 {
		return nil, fmt.Errorf("%s in %s is built from no package of its module", root, dir)
	}
	return t, nil
}

// parseTree reads the packages that commands link, without type information.
func parseTree(ctx context.Context, dir string, roots ...string) (*tree, error) {
	packages, err := listPackages(ctx, dir, roots)
	if err != nil {
		return nil, err
	}
	t := &tree{fset: token.NewFileSet()}
	for _, l := range packages {
		if l.Module == nil || !l.Module.Main {
			continue
		}
		if _, err := t.parsePackage(l); err != nil {
			return nil, fmt.Errorf("%s: %w", l.ImportPath, err)
		}
	}
	return t, nil
}

func listPackages(ctx context.Context, dir string, roots []string, flags ...string) ([]listedPackage, error) {
	args := slices.Concat([]string{"list", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module"}, flags, roots)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // arguments come from the command line
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	raw, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w", dir, err)
	}
	var listed []listedPackage
	for d := json.NewDecoder(bytes.NewReader(raw)); ; {
		var l listedPackage
		err := d.Decode(&l)
		if errors.Is(err, io.EOF) {
			return listed, nil
		}
		if err != nil {
			return nil, fmt.Errorf("what go list says: %w", err)
		}
		listed = append(listed, l)
	}
}

// parsePackage reads the package's files and appends it to the tree.
func (t *tree) parsePackage(l listedPackage) (*pkg, error) {
	t.module = l.Module.Path
	p := &pkg{path: strings.TrimPrefix(l.ImportPath, t.module+"/"), lines: map[*ast.File]int{}, info: &types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}}
	for _, name := range l.GoFiles {
		raw, err := os.ReadFile(filepath.Join(l.Dir, name))
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(t.fset, filepath.Join(p.path, name), raw, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
		p.lines[f] = bytes.Count(raw, []byte("\n"))
	}
	t.packages = append(t.packages, p)
	return p, nil
}

// fileAt returns the path of a position's file, relative to the module root.
func (t *tree) fileAt(at token.Pos) string { return t.fset.Position(at).Filename }

// packageImporter imports packages of the module from source and others from export data.
type packageImporter struct {
	modulePackages map[string]*types.Package
	exportFiles    map[string]string
	fallback       types.Importer
}

// Import implements types.Importer.
func (i *packageImporter) Import(path string) (*types.Package, error) {
	if p := i.modulePackages[path]; p != nil {
		return p, nil
	}
	return i.fallback.Import(path)
}

func (i *packageImporter) openExport(path string) (io.ReadCloser, error) {
	name := i.exportFiles[path]
	if name == "" {
		return nil, fmt.Errorf("%s is not among what go list names", path)
	}
	return os.Open(name) //nolint:gosec // the compiler's own
}
