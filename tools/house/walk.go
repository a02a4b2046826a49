// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

type walk struct {
	name     string
	segments []segment
}

// segment is a segment of a walk, without a queue in between.
type segment struct{ from, to []string }

// parseWalk parses "name=entry>end,entry>end"; "|" separates alternatives.
func parseWalk(s string) (walk, error) {
	name, rest, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return walk{}, fmt.Errorf("%q: want name=entry>end", s)
	}
	w := walk{name: name}
	for part := range strings.SplitSeq(rest, ",") {
		from, to, ok := strings.Cut(part, ">")
		if !ok || from == "" || to == "" {
			return walk{}, fmt.Errorf("%q in %q: want entry>end", part, s)
		}
		w.segments = append(w.segments, segment{strings.Split(from, "|"), strings.Split(to, "|")})
	}
	return w, nil
}

type walkResult struct {
	Name          string `json:"name"`
	FunctionCount int    `json:"stays"`
	Files         int    `json:"files"`
	Packages      int    `json:"packages"`
	ReturnCount   int    `json:"returns"`
	Shortest      int    `json:"shortest"`
	// Read counts the functions and everything they mention; ReadFiles counts the files of those.
	Read      int `json:"read"`
	ReadFiles int `json:"readFiles"`
	// Error is why the walk could not be measured.
	Error string `json:"error,omitempty"`
	// Functions are "file name", sorted.
	Functions []string `json:"functions"`
}

// references returns n and the functions it mentions, resolved through fields and interfaces.
func (n *node) references() map[*node]bool {
	nodes, seen := map[*node]bool{n: true}, map[*node]bool{n: true}
	for next := []*node{n}; len(next) > 0; {
		at := next[0]
		next = next[1:]
		for m := range at.refs {
			switch {
			case seen[m]:
			case m.file != "":
				nodes[m] = true
			default:
				next = append(next, m)
			}
			seen[m] = true
		}
	}
	return nodes
}

// measureWalk merges the segments of a walk. If one cannot be found, Error is set.
func (g *graph) measureWalk(w walk) walkResult {
	out := walkResult{Name: w.name}
	on := map[*node]bool{}
	for _, l := range w.segments {
		from, err := g.findNodes(l.from)
		if err != nil {
			return walkResult{Name: w.name, Error: err.Error()}
		}
		to, err := g.findNodes(l.to)
		if err != nil {
			return walkResult{Name: w.name, Error: err.Error()}
		}
		way, shortest := g.findPath(from, to, g.excludedNodes(from))
		if len(way) == 0 {
			return walkResult{Name: w.name, Error: fmt.Sprintf("%s does not reach %s", strings.Join(l.from, "|"), strings.Join(l.to, "|"))}
		}
		out.Shortest += shortest
		for _, n := range way {
			on[n] = true
		}
	}
	files, packages, read, readFiles := map[string]bool{}, map[string]bool{}, map[*node]bool{}, map[string]bool{}
	for n := range on {
		out.FunctionCount++
		out.ReturnCount += n.returnCount
		files[n.file], packages[path.Dir(n.file)] = true, true
		out.Functions = append(out.Functions, n.file+" "+n.name)
		for m := range n.references() {
			read[m], readFiles[m.file] = true, true
		}
	}
	out.Read, out.ReadFiles = len(read), len(readFiles)
	out.Files, out.Packages = len(files), len(packages)
	slices.Sort(out.Functions)
	return out
}

// findNodes returns the functions with these names; a leading part of the package path may be omitted.
func (g *graph) findNodes(names []string) ([]*node, error) {
	var nodes []*node
	for _, name := range names {
		var found []*node
		for _, n := range g.nodes {
			if n.name == name || strings.HasSuffix(n.name, "/"+name) {
				found = append(found, n)
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no function is called %q; name one as in kube.(*Cluster).Setup with -walk", name)
		}
		nodes = append(nodes, found...)
	}
	return nodes, nil
}

// excludedNodes returns the nodes that a walk must not enter, except those in but.
func (g *graph) excludedNodes(but []*node) map[*node]bool {
	items := map[*node]bool{}
	for _, name := range g.excluded {
		nodes, err := g.findNodes([]string{name})
		for _, n := range nodes {
			items[n] = err == nil && !slices.Contains(but, n)
		}
	}
	return items
}

// findPath returns the functions on any path from one of from to one of to, and the length of the shortest path.
func (g *graph) findPath(from, to []*node, without map[*node]bool) (on []*node, shortest int) {
	ahead := map[*node]int{}
	computeDepths(from, ahead, func(n *node) map[*node]bool {
		if without[n] {
			return nil
		}
		return n.refs
	})
	back := map[*node]map[*node]bool{}
	for n := range ahead {
		for m := range n.refs {
			if back[m] == nil {
				back[m] = map[*node]bool{}
			}
			back[m][n] = true
		}
	}
	behind := map[*node]int{}
	var ends []*node
	for _, n := range to {
		if steps, ok := ahead[n]; ok {
			ends = append(ends, n)
			if shortest == 0 || steps < shortest {
				shortest = steps
			}
		}
	}
	computeDepths(ends, behind, func(n *node) map[*node]bool { return back[n] })
	for n := range behind {
		if n.file != "" {
			on = append(on, n)
		}
	}
	return on, shortest
}

// computeDepths sets in seen, for each reachable node, the number of functions on the shortest path to it, inclusive.
func computeDepths(from []*node, seen map[*node]int, next func(*node) map[*node]bool) {
	weight := func(n *node) int {
		if n.file == "" {
			return 0
		}
		return 1
	}
	var queue []*node
	for _, n := range from {
		seen[n] = weight(n)
		queue = append(queue, n)
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for m := range next(n) {
			steps := seen[n] + weight(m)
			if old, ok := seen[m]; !ok || steps < old {
				seen[m] = steps
				queue = append(queue, m)
			}
		}
	}
}
