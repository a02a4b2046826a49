// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

// Fate is what became of a change.
type Fate string

// The fates.
const (
	Unbuildable Fate = "does not build"
	ByTests     Fate = "killed by tests"
	BySeeds     Fate = "killed by seeds"
	ByTime      Fate = "ran out of time"
	Survived    Fate = "survived"
)

// verdict is a fate, and how it came about.
type verdict struct {
	Fate Fate
	// By is the test or the seed that saw the change first.
	By   string
	Took time.Duration
}

// patience is how often a run may take as long as without a change, and spare what it may take
// besides: the machine does other things, too.
const (
	patience = 3
	spare    = 20 * time.Second
)

// judge runs tests and seeds.
type judge struct {
	root, dir string // the tree, and where to build
	with      []string
	seeds     int
	// baseline is how long the tests of a package take without a change, and play the seeds.
	baseline  map[string]time.Duration
	play      time.Duration
	simulated map[string]bool // packages that the simulator is built from
}

// sound runs all without a change: a verdict means nothing if something fails anyway.
func (j *judge) sound(ctx context.Context, packages []string) error {
	out, err := j.command(ctx, "go", "list", "-deps", "-f", "{{.ImportPath}}", "./lab/simulate").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	module, err := j.command(ctx, "go", "list", "-m").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	j.simulated, j.baseline = map[string]bool{}, map[string]time.Duration{}
	for line := range strings.Lines(string(out)) {
		j.simulated[strings.TrimPrefix(strings.TrimSpace(line), strings.TrimSpace(string(module))+"/")] = true
	}
	for _, p := range packages {
		v, err := j.tests(ctx, p, nil, 10*time.Minute)
		if err == nil && v.Fate != Survived {
			err = fmt.Errorf("%s without a change: %s: %s", p, v.Fate, v.By)
		}
		if err != nil {
			return err
		}
		j.baseline[p] = v.Took
	}
	if j.seeds == 0 || !slices.ContainsFunc(packages, func(p string) bool { return j.simulated[p] }) {
		return nil
	}
	v, err := j.simulate(ctx, nil, 10*time.Minute)
	if err == nil && v.Fate != Survived {
		err = fmt.Errorf("the simulator without a change: %s: %s", v.Fate, v.By)
	}
	j.play = v.Took
	return err
}

// of says what becomes of a change.
func (j *judge) of(ctx context.Context, m mutant) (verdict, error) {
	pkg := path.Dir(m.File)
	begun := time.Now()
	v, err := j.tests(ctx, pkg, &m, patience*j.baseline[pkg]+spare)
	if err == nil && v.Fate == Survived && j.seeds > 0 && j.simulated[pkg] {
		v, err = j.simulate(ctx, &m, patience*j.play+spare)
	}
	v.Took = time.Since(begun)
	return v, err
}

// tests builds and runs the tests of a package.
func (j *judge) tests(ctx context.Context, pkg string, m *mutant, most time.Duration) (verdict, error) {
	binary := filepath.Join(j.dir, "tests")
	if v, err := j.build(ctx, m, "test", "-c", "-vet=off", "-o", binary, "./"+pkg); err != nil || v.Fate != "" {
		return v, err
	}
	defer os.Remove(binary)
	return j.run(ctx, filepath.Join(j.root, pkg), most, ByTests, binary, "-test.failfast", "-test.timeout="+most.String())
}

// simulate builds this program with the change, and has it play.
func (j *judge) simulate(ctx context.Context, m *mutant, most time.Duration) (verdict, error) {
	binary := filepath.Join(j.dir, "seeds")
	if v, err := j.build(ctx, m, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "./tools/mutants"); err != nil || v.Fate != "" {
		return v, err
	}
	defer os.Remove(binary)
	return j.run(ctx, j.root, most, BySeeds, binary, "-seeds", strconv.Itoa(j.seeds), "-jobs", strconv.Itoa(runtime.GOMAXPROCS(0)), "play")
}

// build runs the go command with the change in the place of its file; the verdict is empty if
// that went well.
func (j *judge) build(ctx context.Context, m *mutant, verb string, args ...string) (verdict, error) {
	list, err := writeOverlay(j.dir, j.root, m)
	if err != nil {
		return verdict{}, err
	}
	cmd := j.command(ctx, "go", slices.Concat([]string{verb, "-overlay", list}, args)...)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
		return verdict{Fate: Unbuildable, By: lastLine(out)}, nil
	}
	return verdict{}, err
}

// run runs a binary; one that fails has killed the change.
func (j *judge) run(ctx context.Context, dir string, most time.Duration, killed Fate, binary string, args ...string) (verdict, error) {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, most+5*time.Second)
	defer cancel()
	cmd := j.command(bounded, binary, args...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	v := verdict{Took: time.Since(begun)}
	_, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return v, ctx.Err()
	case bounded.Err() != nil || failed && strings.Contains(out.String(), "panic: test timed out after"):
		v.Fate = ByTime
	case failed:
		v.Fate, v.By = killed, seenBy(out.Bytes())
	case err != nil:
		return v, err
	default:
		v.Fate = Survived
	}
	return v, nil
}

func (j *judge) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	all := slices.Concat(j.with, []string{name}, args)
	cmd := exec.CommandContext(ctx, all[0], all[1:]...) //nolint:gosec // what the caller asks for
	cmd.Dir = j.root
	return cmd
}

// failed is how go test names what failed, and play.
var failed = regexp.MustCompile(`(?m)^\s*(?:--- FAIL: (\S+)|(seed \d+: .*)|(panic: .*)|(fatal error: .*))`)

// seenBy finds the test or seed in what a run printed: the innermost one of those that failed
// first.
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
