// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fate is the outcome of a mutant.
type Fate string

// Values of Fate.
const (
	ByTests  Fate = "killed by tests"
	BySeeds  Fate = "killed by seeds"
	ByTime   Fate = "ran out of time"
	Survived Fate = "survived"
)

// verdict is a fate and its cause.
type verdict struct {
	Fate Fate
	// By is the first test or seed that failed.
	By   string
	Took time.Duration
}

// A run times out after a multiple of the duration of the unchanged code, plus a constant.
const (
	patience = 3
	spare    = 10 * time.Second
)

type judge struct {
	root, dir string // source tree, build directory
	with      []string
	seeds     int
	built     map[string]*built
	// player is this program with the mutants compiled in.
	player string
	// play is the duration of the seeds without a mutant.
	play      time.Duration
	simulated map[string]bool // packages that the simulator links
}

// built is a test binary and its runs: all fast tests together, then each slow test.
type built struct {
	binary string
	turns  []turn
}

// turn is a batch of tests, and its duration without a mutant.
type turn struct {
	args []string
	took time.Duration
}

// long is the duration above which a test runs in its own batch.
const long = time.Second

// passed matches a passing test in go test -v output.
var passed = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((\d+\.\d+)s\)`)

// turnsOf derives the batches from go test -v output; took is the total duration.
func turnsOf(out []byte, took time.Duration) []turn {
	var slow []turn
	var skipped []string
	for _, m := range passed.FindAllSubmatch(out, -1) {
		seconds, _ := strconv.ParseFloat(string(m[2]), 64)
		if is := time.Duration(seconds * float64(time.Second)); is > long {
			slow = append(slow, turn{[]string{"-test.run=^" + string(m[1]) + "$"}, is})
			skipped = append(skipped, string(m[1]))
			took -= is
		}
	}
	if len(slow) == 0 {
		return []turn{{nil, took}}
	}
	slices.SortFunc(slow, func(a, b turn) int { return int(a.took - b.took) })
	return append([]turn{{[]string{"-test.skip=^(" + strings.Join(skipped, "|") + ")$"}, max(took, 0)}}, slow...)
}

// prepare builds everything with the mutants compiled in and runs it with none enabled. It fails if
// that run fails, because results would mean nothing.
func (j *judge) prepare(ctx context.Context, texts map[string][]byte, changes map[int]mutant) error {
	if err := j.findSimulated(ctx); err != nil {
		return err
	}
	list, err := writeOverlay(j.dir, j.root, texts, changes)
	if err != nil {
		return err
	}
	j.built = map[string]*built{}
	played := false
	for _, p := range packagesOf(slices.Collect(maps.Values(changes))) {
		b := &built{binary: filepath.Join(j.dir, strings.ReplaceAll(p, "/", "_")+".tests")}
		if err := j.build(ctx, "test", "-c", "-vet=off", "-overlay", list, "-o", b.binary, "./"+p); err != nil {
			return err
		}
		v, out, err := j.tests(ctx, p, b, 0, turn{[]string{"-test.v"}, 0}, 10*time.Minute)
		if _, err := sound(v, err); err != nil {
			return fmt.Errorf("%s without a change: %w", p, err)
		}
		b.turns = turnsOf(out, v.Took)
		j.built[p] = b
		played = played || j.simulated[p]
	}
	if j.seeds == 0 || !played {
		return nil
	}
	j.player = filepath.Join(j.dir, "seeds")
	if err := j.build(ctx, "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", list, "-o", j.player, "./tools/mutants"); err != nil {
		return err
	}
	v, _, err := j.simulate(ctx, 0, 10*time.Minute)
	if j.play, err = sound(v, err); err != nil {
		return fmt.Errorf("the simulator without a change: %w", err)
	}
	return nil
}

// findSimulated lists the packages that the simulator links.
func (j *judge) findSimulated(ctx context.Context) error {
	out, err := j.command(ctx, "go", "list", "-deps", "-f", "{{.ImportPath}}", "./lab/simulate").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	module, err := j.command(ctx, "go", "list", "-m").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	j.simulated = map[string]bool{}
	for line := range strings.Lines(string(out)) {
		j.simulated[strings.TrimPrefix(strings.TrimSpace(line), strings.TrimSpace(string(module))+"/")] = true
	}
	return nil
}

// sound returns the duration of a run without a mutant, or an error if the run failed.
func sound(v verdict, err error) (time.Duration, error) {
	if err == nil && v.Fate != Survived {
		err = fmt.Errorf("%s: %s", v.Fate, v.By)
	}
	return v.Took, err
}

// of evaluates mutant n: fast tests first, then slow tests, then seeds, until one of them fails.
func (j *judge) of(ctx context.Context, n int, m mutant) (v verdict, err error) {
	pkg := path.Dir(m.File)
	begun := time.Now()
	for _, t := range j.built[pkg].turns {
		if v, _, err = j.tests(ctx, pkg, j.built[pkg], n, t, patience*t.took+spare); err != nil || v.Fate != Survived {
			break
		}
	}
	if err == nil && v.Fate == Survived && j.seeds > 0 && j.simulated[pkg] {
		v, _, err = j.simulate(ctx, n, patience*j.play+spare)
	}
	v.Took = time.Since(begun)
	return v, err
}

// tests runs a batch of a package's tests with mutant n enabled; 0 enables none.
func (j *judge) tests(ctx context.Context, pkg string, b *built, n int, t turn, timeout time.Duration) (verdict, []byte, error) {
	args := append([]string{"-test.failfast", "-test.short", "-test.timeout=" + timeout.String()}, t.args...)
	return j.run(ctx, filepath.Join(j.root, pkg), n, timeout, ByTests, b.binary, args...)
}

// simulate runs the seeds with mutant n enabled.
func (j *judge) simulate(ctx context.Context, n int, timeout time.Duration) (verdict, []byte, error) {
	return j.run(ctx, j.root, n, timeout, BySeeds, j.player, "-seeds", strconv.Itoa(j.seeds), "-jobs", strconv.Itoa(runtime.GOMAXPROCS(0)), "play")
}

// build runs the go command.
func (j *judge) build(ctx context.Context, args ...string) error {
	if out, err := j.command(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, lastLine(out))
	}
	return nil
}

// run runs a binary with mutant n enabled; a failure kills the mutant, a timeout is ByTime.
func (j *judge) run(ctx context.Context, dir string, n int, timeout time.Duration, killed Fate, binary string, args ...string) (verdict, []byte, error) {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, timeout+5*time.Second)
	defer cancel()
	cmd := j.command(bounded, binary, args...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	cmd.Env = append(os.Environ(), chosenBy+"="+strconv.Itoa(n))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	v := verdict{Took: time.Since(begun)}
	_, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return v, nil, ctx.Err()
	case bounded.Err() != nil || failed && strings.Contains(out.String(), "panic: test timed out after"):
		v.Fate = ByTime
	case failed:
		v.Fate, v.By = killed, seenBy(out.Bytes())
	case err != nil:
		return v, nil, err
	default:
		v.Fate = Survived
	}
	return v, out.Bytes(), nil
}

func (j *judge) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	all := slices.Concat(j.with, []string{name}, args)
	cmd := exec.CommandContext(ctx, all[0], all[1:]...) //nolint:gosec // what the caller asks for
	cmd.Dir = j.root
	return cmd
}

// failed matches a failure in the output of go test or of the seeds.
var failed = regexp.MustCompile(`(?m)^\s*(?:--- FAIL: (\S+)|(seed \d+: .*)|(panic: .*)|(fatal error: .*))`)

// seenBy returns the innermost subtest of the first failure in the output, or the last line.
func seenBy(out []byte) string {
	by := ""
	for _, m := range failed.FindAllSubmatch(out, 20) {
		name := string(slices.Concat(m[1:]...))
		if by == "" || strings.HasPrefix(name, by+"/") {
			by = name
		}
	}
	if by == "" {
		return lastLine(out)
	}
	return by
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
