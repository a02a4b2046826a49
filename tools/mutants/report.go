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

// page is where score and survivors are, between these lines.
const (
	page  = "docs/reference/simulator.md"
	begin = "<!-- made by make mutants: begin -->\n"
	end   = "<!-- made by make mutants: end -->\n"
)

// tally counts fates.
type tally map[Fate]int

func (t tally) killed() int { return t[ByTests] + t[BySeeds] + t[ByTime] }
func (t tally) all() int    { return t.killed() + t[Survived] }
func (t tally) score() string {
	if t.all() == 0 {
		return ""
	}
	return fmt.Sprintf("%d %%", t.killed()*100/t.all())
}

// report is what one run has measured.
type report struct {
	tree      string
	drawn     string // which changes these are
	seeds     int
	simulated map[string]bool
	byPackage map[string]tally
	survivors []string
}

func (r *report) add(m mutant, v verdict, text []byte) {
	p := path.Dir(m.File)
	if r.byPackage[p] == nil {
		r.byPackage[p] = tally{}
	}
	r.byPackage[p][v.Fate]++
	if v.Fate == Survived {
		r.survivors = append(r.survivors, fmt.Sprintf("%s:%d %s\n%s", m.File, m.Line, m.Operator, m.diff(text)))
	}
}

func (r *report) total() tally {
	sum := tally{}
	for _, t := range r.byPackage {
		for f, n := range t {
			sum[f] += n
		}
	}
	return sum
}

func (r *report) text() string {
	var b strings.Builder
	sum := r.total()
	fmt.Fprintf(&b, "%d of %d changes are killed (%s; %s): %d by the tests of their package, %d more by %d seeds of\n%d steps, %d ran out of time. %d more did not build.\n\n",
		sum.killed(), sum.all(), r.drawn, r.tree, sum[ByTests], sum[BySeeds], r.seeds, steps, sum[ByTime], sum[Unbuildable])
	b.WriteString("| package | changes | by its tests | by seeds | out of time | survived | killed |\n|---|---|---|---|---|---|---|\n")
	for _, p := range slices.Sorted(maps.Keys(r.byPackage)) {
		t := r.byPackage[p]
		seeds := fmt.Sprint(t[BySeeds])
		if !r.simulated[p] {
			seeds = "not in it"
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %s | %d | %d | %s |\n", p, t.all(), t[ByTests], seeds, t[ByTime], t[Survived], t.score())
	}
	if len(r.survivors) > 0 {
		slices.Sort(r.survivors)
		fmt.Fprintf(&b, "\nThose that survived:\n\n```\n%s```\n", strings.Join(r.survivors, ""))
	}
	return b.String()
}

// write puts the figures into the page.
func (r *report) write(root string) error {
	name := filepath.Join(root, page)
	raw, err := os.ReadFile(name) //nolint:gosec // the page of this tree
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the score: it goes between %q and %q", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(name, []byte(before+begin+r.text()+end+after), 0o600)
}

// tree names what is measured: the commit, and whether Go files differ from it.
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
