// SPDX-License-Identifier: Apache-2.0

// Command defects asks how good the simulator is: it builds it with one planted defect
// after the other (go build -overlay; no file of the tree changes), and has each play
// seeds until one fails.
//
//	go run ./lab/simulate/defects            all defects
//	go run ./lab/simulate/defects -only X    those whose names match X, a regular expression
//	go run ./lab/simulate/defects -write     all, and the table of docs/reference/simulator.md
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
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/lab/simulate"
)

const (
	seeds = 2000 // that a defect is looked for in
	steps = 40   // of each
)

func main() {
	only := flag.String("only", "", "plant only the defects whose names match this regular expression")
	jobs := flag.Int("jobs", 2, "how many seeds are played at once")
	write := flag.Bool("write", false, "write the table of "+page)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	switch {
	case flag.Arg(0) == "play":
		err = play(ctx, *jobs)
	case *write && *only != "":
		err = errors.New("the table is written of all defects: leave out -only")
	default:
		err = run(ctx, *only, *jobs, *write)
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
// the number of jobs changes nothing. Nothing is made shorter: that would cost more than
// the search.
func play(ctx context.Context, jobs int) error {
	debug.SetGCPercent(400) // a schedule is short-lived, and there is room
	tally := simulate.Search{First: 1, Seeds: seeds, Steps: steps, Jobs: jobs, Most: 1}.Run(ctx)
	var v verdict
	for _, f := range tally.Found {
		if v.Seed == 0 || f.Seed < v.Seed {
			v = verdict{f.Seed, f.Outcome.Check, f.Outcome.How}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

func run(ctx context.Context, only string, jobs int, write bool) error {
	planted, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir, err := os.MkdirTemp("", "weir-defects")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	begun := time.Now()
	r := report{tree: tree(ctx)}
	if err := sound(ctx, filepath.Join(dir, "as-it-is"), jobs); err != nil {
		return err
	}
	var broken []error
	for i, d := range defects() {
		if !planted.MatchString(d.name) {
			continue
		}
		start := time.Now()
		v, err := plant(ctx, filepath.Join(dir, strconv.Itoa(i)), d, jobs)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			broken = append(broken, fmt.Errorf("%s: %w", d.name, err))
			continue
		}
		row := r.add(d, v)
		fmt.Printf("%2d of %d %4.0fs %s\n", i+1, len(defects()), time.Since(start).Seconds(), row)
	}
	fmt.Printf("%s It took %s.\n", r.sum(), time.Since(begun).Round(time.Second))
	if len(broken) == 0 && r.found*10 < r.all*9 {
		broken = append(broken, errors.New("fewer than nine of ten"))
	}
	if write && len(broken) == 0 {
		return r.write()
	}
	return errors.Join(broken...)
}

// sound plays all seeds without a defect: a row means nothing if one fails anyway.
func sound(ctx context.Context, dir string, jobs int) error {
	v, err := plant(ctx, dir, defect{}, jobs)
	if err == nil && v.Check != "" {
		err = fmt.Errorf("without a defect seed %d fails: %s: %s", v.Seed, v.Check, v.How)
	}
	return err
}

// plant builds the simulator with a defect, and lets it play. A build that crashes has
// found its defect, too.
func plant(ctx context.Context, dir string, d defect, jobs int) (verdict, error) {
	binary, err := build(ctx, dir, d)
	if err != nil {
		return verdict{}, err
	}
	defer os.Remove(binary)
	player := exec.CommandContext(ctx, binary, "-jobs", strconv.Itoa(jobs), "play") //nolint:gosec // built above
	out, err := player.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		first, _, _ := strings.Cut(string(exit.Stderr), "\n")
		return verdict{Check: "lock-up", How: first}, nil
	}
	if err != nil {
		return verdict{}, err
	}
	var v verdict
	return v, json.Unmarshal(out, &v)
}

// build returns a binary of this command that holds the defect, if it is one.
func build(ctx context.Context, dir string, d defect) (binary string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "simulator")
	if err := d.writeOverlay(dir, overlay); err != nil {
		return "", err
	}
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, "./lab/simulate/defects") //nolint:gosec // our own paths
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not build: %s", out)
	}
	return binary, nil
}

// writeOverlay writes the changed file, and the list that puts it into the place of the
// one in the tree.
func (d defect) writeOverlay(dir, overlay string) error {
	replace := map[string]string{}
	if d.file != "" {
		raw, err := os.ReadFile(d.file)
		if err != nil {
			return err
		}
		if n := strings.Count(string(raw), d.old); n != 1 {
			return fmt.Errorf("%s holds the old text %d times: %q", d.file, n, d.old)
		}
		whole, err := filepath.Abs(d.file)
		if err != nil {
			return err
		}
		replace[whole] = filepath.Join(dir, "changed.go")
		if err := os.WriteFile(replace[whole], []byte(strings.Replace(string(raw), d.old, d.new, 1)), 0o600); err != nil {
			return err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(overlay, list, 0o600)
}
