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
	pagePath    = "docs/reference/simulator.md"
	beginMarker = "<!-- made by make mutants: begin -->\n"
	endMarker   = "<!-- made by make mutants: end -->\n"
)

type outcomeCounts map[Outcome]int

func (o outcomeCounts) killedCount() int {
	return o[KilledByTests] + o[KilledBySimulator] + o[TimedOut]
}
func (o outcomeCounts) totalCount() int { return o.killedCount() + o[Survived] }

// report collects the results of a run. Results of other packages remain on the page.
type report struct {
	treeName        string
	seed            uint64
	seeds           int
	simulatorDeps   map[string]bool
	possibleCounts  map[string]int
	countsByPackage map[string]outcomeCounts
	survivors       map[string][]string
}

func newReport(tree string, o options, simulated map[string]bool, mutants []mutant) *report {
	r := &report{
		treeName: tree, seed: o.seed, seeds: o.seeds, simulatorDeps: simulated,
		possibleCounts: map[string]int{}, countsByPackage: map[string]outcomeCounts{}, survivors: map[string][]string{},
	}
	for _, m := range mutants {
		r.possibleCounts[path.Dir(m.File)]++
	}
	return r
}

func (r *report) addResult(m mutant, v result, text []byte) {
	p := path.Dir(m.File)
	if r.countsByPackage[p] == nil {
		r.countsByPackage[p] = outcomeCounts{}
	}
	r.countsByPackage[p][v.Fate]++
	if v.Fate == Survived {
		r.survivors[p] = append(r.survivors[p], fmt.Sprintf("%s:%d %s\n%s", m.File, m.Line, m.Operator, m.formatDiff(text)))
	}
}

func (r *report) killedCount() (n int) {
	for _, t := range r.countsByPackage {
		n += t.killedCount()
	}
	return n
}

// tableHeader is the header of the table, which has one row per package.
const tableHeader = "| package | changes | of | drawn with | by its tests | by seeds | out of time | survived | killed | measured at |\n|---|---|---|---|---|---|---|---|---|---|\n"

// block holds each package's table row and its section of survivors, if any.
type block map[string][2]string

func sectionHeading(pkg string) string { return "\nSurvivors in `" + pkg + "`:\n\n```\n" }

func (r *report) renderBlock() block {
	b := block{}
	for p, t := range r.countsByPackage {
		seeds := "not in it"
		if r.simulatorDeps[p] {
			seeds = fmt.Sprintf("%d (of %d)", t[KilledBySimulator], r.seeds)
		}
		row := fmt.Sprintf("| `%s` | %d | %d | seed %d | %d | %s | %d | %d | %d %% | %s |\n",
			p, t.totalCount(), r.possibleCounts[p], r.seed, t[KilledByTests], seeds, t[TimedOut], t[Survived], t.killedCount()*100/t.totalCount(), r.treeName)
		section := ""
		if some := r.survivors[p]; len(some) > 0 {
			section = sectionHeading(p) + strings.Join(slices.Sorted(slices.Values(some)), "") + "```\n"
		}
		b[p] = [2]string{row, section}
	}
	return b
}

func (b block) renderText() string {
	var rows, sections strings.Builder
	for _, p := range slices.Sorted(maps.Keys(b)) {
		rows.WriteString(b[p][0])
		sections.WriteString(b[p][1])
	}
	return tableHeader + rows.String() + sections.String()
}

// parseBlock parses a block written by an earlier run.
func parseBlock(text string) (block, error) {
	rest, ok := strings.CutPrefix(text, tableHeader)
	if !ok {
		return nil, fmt.Errorf("it does not begin with the table's head %q", tableHeader)
	}
	b := block{}
	for strings.HasPrefix(rest, "| `") {
		var row string
		row, rest, _ = strings.Cut(rest, "\n")
		b[strings.Split(row, "`")[1]] = [2]string{row + "\n", ""}
	}
	for p := range b {
		if _, after, ok := strings.Cut(rest, sectionHeading(p)); ok {
			diffs, _, _ := strings.Cut(after, "```\n")
			b[p] = [2]string{b[p][0], sectionHeading(p) + diffs + "```\n"}
		}
	}
	if b.renderText() != text {
		return nil, fmt.Errorf("it is not as it was written: run make mutants, or take back what was edited")
	}
	return b, nil
}

func (r *report) renderText() string { return r.renderBlock().renderText() }

func splitPage(raw string) (before, inside, after string, err error) {
	before, rest, ok := strings.Cut(raw, beginMarker)
	inside, after, closed := strings.Cut(rest, endMarker)
	if !ok || !closed {
		return "", "", "", fmt.Errorf("%s has no place for the score: it goes between %q and %q", pagePath, strings.TrimSpace(beginMarker), strings.TrimSpace(endMarker))
	}
	return before, inside, after, nil
}

// writePage replaces the measured packages' results on the page.
func (r *report) writePage(root string) error {
	name := filepath.Join(root, pagePath)
	raw, err := os.ReadFile(name) //nolint:gosec // the page of this tree
	if err != nil {
		return err
	}
	before, inside, after, err := splitPage(string(raw))
	if err != nil {
		return err
	}
	b := block{}
	if inside != "" {
		if b, err = parseBlock(inside); err != nil {
			return fmt.Errorf("the block of %s: %w", pagePath, err)
		}
	}
	maps.Copy(b, r.renderBlock())
	return os.WriteFile(name, []byte(before+beginMarker+b.renderText()+endMarker+after), 0o600)
}

// describeTree names the measured commit, and whether Go files differ from it.
func describeTree(ctx context.Context, root string) string {
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
