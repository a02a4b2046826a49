// SPDX-License-Identifier: Apache-2.0

// Command defects asks how good the simulator is: it builds it with one planted defect
// after the other (go build -overlay; no file of the tree changes), and has each play
// seeds until one fails.
//
//	go run ./internal/simulate/defects            all defects
//	go run ./internal/simulate/defects -only X    those with X in their names
//	go run ./internal/simulate/defects -write     and the table of docs/reference/simulator.md
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"weir.dev/weir/internal/simulate"
)

const (
	seeds = 2000 // that a defect is looked for in
	steps = 40   // of each
	page  = "docs/reference/simulator.md"
)

func main() {
	from := flag.Int("from", 0, "plant those from this one of the table on")
	only := flag.String("only", "", "plant only the defects whose names contain this")
	write := flag.Bool("write", false, "write the table of "+page)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if flag.Arg(0) == "play" {
		err = play(ctx)
	} else {
		err = run(ctx, *only, *from, *write)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "defects:", err)
		os.Exit(1)
	}
}

// verdict is what became of a defect.
type verdict struct {
	Seed  uint64 // the first that failed; 0 if none did
	Check string
	How   string
}

// play is what a build with a defect does. The lowest seed that failed counts, so that
// the number of processors changes nothing.
func play(ctx context.Context) error {
	tally := simulate.Search{First: 1, Seeds: seeds, Steps: steps, Jobs: runtime.NumCPU(), Most: 1}.Run(ctx)
	var v verdict
	for _, f := range tally.Found {
		if v.Seed == 0 || f.Seed < v.Seed {
			v = verdict{f.Seed, f.Outcome.Check, f.Outcome.How}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

func run(ctx context.Context, only string, from int, write bool) error {
	dir, err := os.MkdirTemp("", "weir-defects")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rows []string
	var broken []error
	found, all := 0, 0
	for i, d := range defects() {
		if !strings.Contains(d.name, only) || i < from {
			continue
		}
		start := time.Now()
		v, err := plant(ctx, filepath.Join(dir, fmt.Sprint(i)), d)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", d.name, err))
			continue
		}
		all++
		row := fmt.Sprintf("| %s | `%s` | not found | |", d.name, strings.TrimPrefix(d.file, "internal/"))
		if v.Check != "" {
			found++
			row = fmt.Sprintf("| %s | `%s` | %d | %s |", d.name, strings.TrimPrefix(d.file, "internal/"), v.Seed, v.Check)
		}
		rows = append(rows, row)
		fmt.Printf("%s %.0fs\n", row, time.Since(start).Seconds())
	}
	sum := fmt.Sprintf("%d of %d defects are found within %d seeds of %d steps.", found, all, seeds, steps)
	fmt.Println(sum)
	if write {
		if err := writeTable(sum, rows); err != nil {
			return err
		}
	}
	if found*10 < all*9 {
		broken = append(broken, errors.New("fewer than nine of ten"))
	}
	return errors.Join(broken...)
}

// plant builds the simulator with a defect, and lets it play. A build that crashes has
// found its defect, too.
func plant(ctx context.Context, dir string, d defect) (verdict, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return verdict{}, err
	}
	raw, err := os.ReadFile(d.file)
	if err != nil {
		return verdict{}, err
	}
	if n := strings.Count(string(raw), d.old); n != 1 {
		return verdict{}, fmt.Errorf("%s holds the old text %d times: %q", d.file, n, d.old)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return verdict{}, err
	}
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "simulator")
	if err := os.WriteFile(changed, []byte(strings.Replace(string(raw), d.old, d.new, 1)), 0o600); err != nil {
		return verdict{}, err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, d.file): changed}})
	if err != nil {
		return verdict{}, err
	}
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return verdict{}, err
	}
	defer os.Remove(binary)
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", binary, "./internal/simulate/defects") //nolint:gosec // our own paths
	if out, err := build.CombinedOutput(); err != nil {
		return verdict{}, fmt.Errorf("it does not build: %s", out)
	}
	var v verdict
	player := exec.CommandContext(ctx, binary, "play") //nolint:gosec // built above
	out, err := player.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		first, _, _ := strings.Cut(string(exit.Stderr), "\n")
		return verdict{Check: "lock-up", How: first}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	return v, json.Unmarshal(out, &v)
}

// The table stands between these lines of the page.
const (
	begin = "<!-- made by make defects: begin -->\n"
	end   = "<!-- made by make defects: end -->\n"
)

func writeTable(sum string, rows []string) error {
	raw, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table", page)
	}
	table := sum + "\n\n| defect | planted in | found by seed | check |\n|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n"
	return os.WriteFile(page, []byte(before+begin+table+end+after), 0o600)
}
