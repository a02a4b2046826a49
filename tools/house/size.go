// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// Types above either limit are listed.
const (
	maxMethods = 35
	maxFields  = 12
)

type packageSize struct {
	Package string `json:"package"`
	Lines   int    `json:"lines"`
	Files   int    `json:"files"`
	// Imports counts the imported packages of the module.
	Imports int        `json:"imports"`
	Types   []typeSize `json:"types"`
}

type typeSize struct {
	Name    string `json:"name"`
	Methods int    `json:"methods"`
	Fields  int    `json:"fields"`
	// Files counts the files that declare its methods.
	Files int `json:"files"`
}

func (t typeSize) isLarge() bool { return t.Methods > maxMethods || t.Fields > maxFields }

func computeSizes(t *tree) []packageSize {
	var sizes []packageSize
	for _, p := range t.packages {
		s := packageSize{Package: p.path, Files: len(p.files), Imports: countImports(p.files, t.module), Types: typesOf(p.files, t.fset)}
		for _, n := range p.lines {
			s.Lines += n
		}
		sizes = append(sizes, s)
	}
	slices.SortFunc(sizes, func(a, b packageSize) int { return cmp.Or(b.Lines-a.Lines, cmp.Compare(a.Package, b.Package)) })
	return sizes
}

// countImports counts the packages of the module that the files import.
func countImports(files []*ast.File, module string) int {
	imported := map[string]bool{}
	for _, f := range files {
		for _, i := range f.Imports {
			if path, err := strconv.Unquote(i.Path.Value); err == nil && strings.HasPrefix(path, module+"/") {
				imported[path] = true
			}
		}
	}
	return len(imported)
}

// typesOf counts methods and fields of the declared types, most methods first.
func typesOf(files []*ast.File, fset *token.FileSet) []typeSize {
	types, in := map[string]*typeSize{}, map[string]map[string]bool{}
	of := func(name string) *typeSize {
		if types[name] == nil {
			types[name], in[name] = &typeSize{Name: name}, map[string]bool{}
		}
		return types[name]
	}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						of(s.Name.Name).Fields = countFields(s.Type)
					}
				}
			case *ast.FuncDecl:
				if name := receiverName(d); name != "" {
					of(name).Methods++
					in[name][fset.Position(d.Pos()).Filename] = true
				}
			}
		}
	}
	var out []typeSize
	for name, t := range types {
		t.Files = len(in[name])
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b typeSize) int {
		return cmp.Or(b.Methods-a.Methods, b.Fields-a.Fields, cmp.Compare(a.Name, b.Name))
	})
	return out
}

func countFields(e ast.Expr) int {
	s, ok := e.(*ast.StructType)
	if !ok {
		return 0
	}
	n := 0
	for _, f := range s.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
