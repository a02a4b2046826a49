// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
)

// All mutants of a package are compiled into one build, so that compiling and linking happen once. A
// changed function starts with a switch over the mutant number; each case is the mutated body.

// Names of the variable that holds the enabled mutant's number, of the environment variable it is
// read from, and of the file that declares it.
const (
	selectorName = "wovenMutant"
	selectorEnv  = "WOVEN_MUTANT"
	selectorFile = "zz_woven_mutants.go"
)

// weaveFile returns the file's text with these mutants compiled in, keyed by number.
func weaveFile(name string, text []byte, changes map[int]mutant) ([]byte, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	done := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		from, to := fset.Position(fn.Body.Lbrace).Offset, fset.Position(fn.Body.Rbrace).Offset+1
		results, back := "", ""
		if r := fn.Type.Results; r != nil {
			results, back = string(text[fset.Position(r.Pos()).Offset:fset.Position(r.End()).Offset]), "return "
		}
		var cases bytes.Buffer
		for _, n := range slices.Sorted(maps.Keys(changes)) {
			m := changes[n]
			if m.From < from || m.To > to {
				continue
			}
			body := slices.Concat(text[from:m.From], []byte(m.New), text[m.To:to])
			fmt.Fprintf(&cases, "case %d:\n%sfunc() %s %s()\n", n, back, results, body)
			if back == "" {
				cases.WriteString("return\n")
			}
		}
		if cases.Len() == 0 {
			continue
		}
		out.Write(text[done : from+1])
		fmt.Fprintf(&out, "\nswitch %s {\n%s}\n", selectorName, cases.Bytes())
		done = from + 1
	}
	out.Write(text[done:])
	return out.Bytes(), nil
}

// selectorSource returns the content of the file that declares the variable.
func selectorSource(pkg string) []byte {
	return fmt.Appendf(nil, "package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar %s, _ = strconv.Atoi(os.Getenv(%q))\n", pkg, selectorName, selectorEnv)
}

// writeOverlay writes the woven files and the JSON list for go build -overlay, and returns the list's path.
func writeOverlay(dir, root string, texts map[string][]byte, changes map[int]mutant) (list string, err error) {
	byFile := map[string]map[int]mutant{}
	for n, m := range changes {
		if byFile[m.File] == nil {
			byFile[m.File] = map[int]mutant{}
		}
		byFile[m.File][n] = m
	}
	replace := map[string]string{}
	put := func(name string, text []byte) error {
		at := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		replace[filepath.Join(root, name)] = at
		return os.WriteFile(at, text, 0o600)
	}
	for _, name := range slices.Sorted(maps.Keys(byFile)) {
		text, err := weaveFile(name, texts[name], byFile[name])
		if err != nil {
			return "", err
		}
		if err := put(name, text); err != nil {
			return "", err
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, texts[name], parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		file := path.Join(path.Dir(name), selectorFile)
		if _, ok := replace[filepath.Join(root, file)]; ok {
			continue
		}
		if err := put(file, selectorSource(f.Name.Name)); err != nil {
			return "", err
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, raw, 0o600)
}
