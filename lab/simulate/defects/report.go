// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// page is where the table is, between these lines.
const (
	page  = "docs/reference/simulator.md"
	begin = "<!-- made by make defects: begin -->\n"
	end   = "<!-- made by make defects: end -->\n"
)

// report is what one run has measured. Its rows and its figures are of one tree.
type report struct {
	tree       string
	rows       []string
	found, all int
}

// add takes what became of a defect, and returns its row.
func (r *report) add(d defect, v verdict) string {
	file := strings.TrimPrefix(d.file, "internal/")
	row := fmt.Sprintf("| %s | `%s` | not found | |", d.name, file)
	switch {
	case v.Check == "":
	case v.Seed == 0: // it crashed, and took the number with it
		row = fmt.Sprintf("| %s | `%s` | yes | %s |", d.name, file, v.Check)
	default:
		row = fmt.Sprintf("| %s | `%s` | %d | %s |", d.name, file, v.Seed, v.Check)
	}
	if v.Check != "" {
		r.found++
	}
	r.all++
	r.rows = append(r.rows, row)
	return row
}

func (r *report) sum() string {
	return fmt.Sprintf("%d of %d defects are found within %d seeds of %d steps (one run, on %s).", r.found, r.all, seeds, steps, r.tree)
}

// write puts figures and rows into the page.
func (r *report) write() error {
	raw, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table", page)
	}
	table := r.sum() + "\n\n| defect | planted in | found by seed | check |\n|---|---|---|---|\n" + strings.Join(r.rows, "\n") + "\n"
	return os.WriteFile(page, []byte(before+begin+table+end+after), 0o600)
}

// tree names what is measured: the commit, and whether Go files differ from it.
func tree(ctx context.Context) string {
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "a tree without a commit"
	}
	name := "commit " + strings.TrimSpace(string(commit))
	if changed, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", "*.go", "go.mod").Output(); err != nil || len(changed) > 0 {
		name += " with changes"
	}
	return name
}
