// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"path/filepath"
	"slices"
)

// fileCycle is a package's largest set of files that all depend on each other, directly or transitively.
type fileCycle struct {
	Package string   `json:"package"`
	Files   []string `json:"files"`
}

func findCycles(t *tree) []fileCycle {
	var cycles []fileCycle
	for _, p := range t.packages {
		refers := map[string]map[string]bool{}
		for _, f := range p.files {
			refers[t.fileAt(f.Pos())] = map[string]bool{}
		}
		for id, o := range p.info.Uses {
			if o.Pkg() == p.types && (o.Parent() == p.types.Scope() || o.Parent() == nil) {
				from, to := t.fileAt(id.Pos()), t.fileAt(o.Pos())
				if from != to && refers[to] != nil {
					refers[from][to] = true
				}
			}
		}
		if files := largestComponent(refers); len(files) > 1 {
			cycles = append(cycles, fileCycle{p.path, files})
		}
	}
	slices.SortFunc(cycles, func(a, b fileCycle) int {
		return cmp.Or(len(b.Files)-len(a.Files), cmp.Compare(a.Package, b.Package))
	})
	return cycles
}

// largestComponent returns the base names of the largest strongly connected set; refers maps a file to the files it uses.
func largestComponent(refers map[string]map[string]bool) []string {
	reaches := map[string]map[string]bool{}
	for from := range refers {
		reaches[from] = map[string]bool{}
		for next := []string{from}; len(next) > 0; {
			at := next[0]
			next = next[1:]
			for to := range refers[at] {
				if !reaches[from][to] {
					reaches[from][to] = true
					next = append(next, to)
				}
			}
		}
	}
	var best []string
	for from := range refers {
		var set []string
		for to := range reaches[from] {
			if reaches[to][from] {
				set = append(set, filepath.Base(to))
			}
		}
		slices.Sort(set)
		if len(set) > len(best) || len(set) == len(best) && slices.Compare(set, best) < 0 {
			best = set
		}
	}
	return best
}
