// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// page holds the results, between two markers.
const (
	page  = "docs/reference/simulator.md"
	begin = "<!-- made by make mutants: begin -->\n"
	end   = "<!-- made by make mutants: end -->\n"
)

type tally map[Fate]int

func (t tally) killed() int { return t[ByTests] + t[BySeeds] + t[ByTime] }
func (t tally) all() int    { return t.killed() + t[Survived] }

// report collects the results of a run. Results of other packages remain on the page.
type report struct {
	tree      string
	seed      uint64
	seeds     int
	simulated map[string]bool
	possible  map[string]int
	byPackage map[string]tally
	survivors map[string][]string
}

func newReport(tree string, o options, simulated map[string]bool, all []mutant) *report {
	r := &report{
		tree: tree, seed: o.seed, seeds: o.seeds, simulated: simulated,
		possible: map[string]int{}, byPackage: map[string]tally{}, survivors: map[string][]string{},
	}
	for _, m := range all {
		r.possible[path.Dir(m.File)]++
	}
	return r
}

func (r *report) add(m mutant, v verdict, text []byte) {
	p := path.Dir(m.File)
	if r.byPackage[p] == nil {
		r.byPackage[p] = tally{}
	}
	r.byPackage[p][v.Fate]++
	if v.Fate == Survived {
		r.survivors[p] = append(r.survivors[p], fmt.Sprintf("%s:%d %s\n%s", m.File, m.Line, m.Operator, m.diff(text)))
	}
}

func (r *report) killed() (n int) {
	for _, t := range r.byPackage {
		n += t.killed()
	}
	return n
}

// head is the header of the table, which has one row per package.
const head = "| package | changes | of | drawn with | by its tests | by seeds | out of time | survived | killed | measured at |\n|---|---|---|---|---|---|---|---|---|---|\n"

// block holds each package's table row and its section of survivors, if any.
type block map[string][2]string

func sectionOf(pkg string) string { return "\nSurvivors in `" + pkg + "`:\n\n```\n" }

func (r *report) block() block {
	b := block{}
	for p, t := range r.byPackage {
		seeds := "not in it"
		if r.simulated[p] {
			seeds = fmt.Sprintf("%d (of %d)", t[BySeeds], r.seeds)
		}
		row := fmt.Sprintf("| `%s` | %d | %d | seed %d | %d | %s | %d | %d | %d %% | %s |\n",
			p, t.all(), r.possible[p], r.seed, t[ByTests], seeds, t[ByTime], t[Survived], t.killed()*100/t.all(), r.tree)
		section := ""
		if some := r.survivors[p]; len(some) > 0 {
			section = sectionOf(p) + strings.Join(slices.Sorted(slices.Values(some)), "") + "```\n"
		}
		b[p] = [2]string{row, section}
	}
	return b
}

func (b block) text() string {
	var rows, sections strings.Builder
	for _, p := range slices.Sorted(maps.Keys(b)) {
		rows.WriteString(b[p][0])
		sections.WriteString(b[p][1])
	}
	return head + rows.String() + sections.String()
}

// parseBlock parses a block written by an earlier run.
func parseBlock(text string) (block, error) {
	rest, ok := strings.CutPrefix(text, head)
	if !ok {
		return nil, fmt.Errorf("it does not begin with the table's head %q", head)
	}
	b := block{}
	for strings.HasPrefix(rest, "| `") {
		var row string
		row, rest, _ = strings.Cut(rest, "\n")
		b[strings.Split(row, "`")[1]] = [2]string{row + "\n", ""}
	}
	for p := range b {
		if _, after, ok := strings.Cut(rest, sectionOf(p)); ok {
			diffs, _, _ := strings.Cut(after, "```\n")
			b[p] = [2]string{b[p][0], sectionOf(p) + diffs + "```\n"}
		}
	}
	if b.text() != text {
		return nil, fmt.Errorf("it is not as it was written: run make mutants, or take back what was edited")
	}
	return b, nil
}

func (r *report) text() string { return r.block().text() }

func cutPage(raw string) (before, inside, after string, err error) {
	before, rest, ok := strings.Cut(raw, begin)
	inside, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", "", fmt.Errorf("%s has no place for the score: it goes between %q and %q", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before, inside, after, nil
}

// write replaces the measured packages' results on the page.
func (r *report) write(root string) error {
	name := filepath.Join(root, page)
	raw, err := os.ReadFile(name) //nolint:gosec // the page of this tree
	if err != nil {
		return err
	}
	before, inside, after, err := cutPage(string(raw))
	if err != nil {
		return err
	}
	b := block{}
	if inside != "" {
		if b, err = parseBlock(inside); err != nil {
			return fmt.Errorf("the block of %s: %w", page, err)
		}
	}
	maps.Copy(b, r.block())
	return os.WriteFile(name, []byte(before+begin+b.text()+end+after), 0o600)
}

// tree names the measured commit, and whether Go files differ from it.
func tree(ctx context.Context, root string) string {
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // the arguments are below
		cmd.Dir = root
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	commit, err := git("rev-parse", "--short", "HEAD")
	if err != nil {
		return "a tree without a commit"
	}
	name := "commit " + commit
	if changed, err := git("status", "--porcelain", "--", "*.go", "go.mod"); err != nil || changed != "" {
		name += " with changes"
	}
	return name
}
