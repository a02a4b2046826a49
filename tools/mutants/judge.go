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

// Outcome is the outcome of a mutant.
type Outcome string

// Values of Fate.
const (
	KilledByTests     Outcome = "killed by tests"
	KilledBySimulator Outcome = "killed by seeds"
	TimedOut          Outcome = "ran out of time"
	Survived          Outcome = "survived"
)

// result is a fate and its cause.
type result struct {
	Fate Outcome
	// By is the first test or seed that failed.
	By   string
	Took time.Duration
}

// A run times out after a multiple of the duration of the unchanged code, plus a constant.
const (
	timeoutFactor = 3
	timeoutGrace  = 10 * time.Second
)

type runner struct {
	root, buildDir string // source tree, build directory
	commandPrefix  []string
	seeds          int
	testBinaries   map[string]*testBinary
	// simulatorBinary is this program with the mutants compiled in.
	simulatorBinary string
	// simulatorDuration is the duration of the seeds without a mutant.
	simulatorDuration time.Duration
	simulatorDeps     map[string]bool // packages that the simulator links
}

// testBinary is a test binary and its runs: all fast tests together, then each slow test.
type testBinary struct {
	path    string
	batches []testBatch
}

// testBatch is a batch of tests, and its duration without a mutant.
type testBatch struct {
	args     []string
	duration time.Duration
}

// slowTestDuration is the duration above which a test runs in its own batch.
const slowTestDuration = time.Second

// passPattern matches a passing test in go test -v output.
var passPattern = regexp.MustCompile(`(?m)^--- PASS: (\w+) \((\d+\.\d+)s\)`)

// batchesOf derives the batches from go test -v output; took is the total duration.
func batchesOf(out []byte, elapsed time.Duration) []testBatch {
	var slow []testBatch
	var skipped []string
	for _, m := range passPattern.FindAllSubmatch(out, -1) {
		seconds, _ := strconv.ParseFloat(string(m[2]), 64)
		if got := time.Duration(seconds * float64(time.Second)); got > slowTestDuration {
			slow = append(slow, testBatch{[]string{"-test.run=^" + string(m[1]) + "$"}, got})
			skipped = append(skipped, string(m[1]))
			elapsed -= got
		}
	}
	if len(slow) == 0 {
		return []testBatch{{nil, elapsed}}
	}
	slices.SortFunc(slow, func(a, b testBatch) int { return int(a.duration - b.duration) })
	return append([]testBatch{{[]string{"-test.skip=^(" + strings.Join(skipped, "|") + ")$"}, max(elapsed, 0)}}, slow...)
}

// prepareBuild builds everything with the mutants compiled in and runs it with none enabled. It fails if
// that run fails, because results would mean nothing.
func (r *runner) prepareBuild(ctx context.Context, texts map[string][]byte, changes map[int]mutant) error {
	if err := r.listSimulatorDeps(ctx); err != nil {
		return err
	}
	list, err := writeOverlay(r.buildDir, r.root, texts, changes)
	if err != nil {
		return err
	}
	r.testBinaries = map[string]*testBinary{}
	played := false
	for _, p := range packagesOf(slices.Collect(maps.Values(changes))) {
		b := &testBinary{path: filepath.Join(r.buildDir, strings.ReplaceAll(p, "/", "_")+".tests")}
		if err := r.runGo(ctx, "test", "-c", "-vet=off", "-overlay", list, "-o", b.path, "./"+p); err != nil {
			return err
		}
		v, out, err := r.runTests(ctx, p, b, 0, testBatch{[]string{"-test.v"}, 0}, 10*time.Minute)
		if _, err := baselineDuration(v, err); err != nil {
			return fmt.Errorf("%s without a change: %w", p, err)
		}
		b.batches = batchesOf(out, v.Took)
		r.testBinaries[p] = b
		played = played || r.simulatorDeps[p]
	}
	if r.seeds == 0 || !played {
		return nil
	}
	r.simulatorBinary = filepath.Join(r.buildDir, "seeds")
	if err := r.runGo(ctx, "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", list, "-o", r.simulatorBinary, "./tools/mutants"); err != nil {
		return err
	}
	v, _, err := r.runSimulator(ctx, 0, 10*time.Minute)
	if r.simulatorDuration, err = baselineDuration(v, err); err != nil {
		return fmt.Errorf("the simulator without a change: %w", err)
	}
	return nil
}

// listSimulatorDeps lists the packages that the simulator links.
func (r *runner) listSimulatorDeps(ctx context.Context) error {
	out, err := r.newCommand(ctx, "go", "list", "-deps", "-f", "{{.ImportPath}}", "./lab/simulate").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	module, err := r.newCommand(ctx, "go", "list", "-m").Output()
	if err != nil {
		return fmt.Errorf("go list -m: %w", err)
	}
	r.simulatorDeps = map[string]bool{}
	for line := range strings.Lines(string(out)) {
		r.simulatorDeps[strings.TrimPrefix(strings.TrimSpace(line), strings.TrimSpace(string(module))+"/")] = true
	}
	return nil
}

// baselineDuration returns the duration of a run without a mutant, or an error if the run failed.
func baselineDuration(v result, err error) (time.Duration, error) {
	if err == nil && v.Fate != Survived {
		err = fmt.Errorf("%s: %s", v.Fate, v.By)
	}
	return v.Took, err
}

// evaluate evaluates mutant n: fast tests first, then slow tests, then seeds, until one of them fails.
func (r *runner) evaluate(ctx context.Context, n int, m mutant) (v result, err error) {
	pkg := path.Dir(m.File)
	begun := time.Now()
	for _, t := range r.testBinaries[pkg].batches {
		if v, _, err = r.runTests(ctx, pkg, r.testBinaries[pkg], n, t, timeoutFactor*t.duration+timeoutGrace); err != nil || v.Fate != Survived {
			break
		}
	}
	if err == nil && v.Fate == Survived && r.seeds > 0 && r.simulatorDeps[pkg] {
		v, _, err = r.runSimulator(ctx, n, timeoutFactor*r.simulatorDuration+timeoutGrace)
	}
	v.Took = time.Since(begun)
	return v, err
}

// runTests runs a batch of a package's tests with mutant n enabled; 0 enables none.
func (r *runner) runTests(ctx context.Context, pkg string, b *testBinary, n int, t testBatch, timeout time.Duration) (result, []byte, error) {
	args := append([]string{"-test.failfast", "-test.short", "-test.timeout=" + timeout.String()}, t.args...)
	return r.runBinary(ctx, filepath.Join(r.root, pkg), n, timeout, KilledByTests, b.path, args...)
}

// runSimulator runs the seeds with mutant n enabled.
func (r *runner) runSimulator(ctx context.Context, n int, timeout time.Duration) (result, []byte, error) {
	return r.runBinary(ctx, r.root, n, timeout, KilledBySimulator, r.simulatorBinary, "-seeds", strconv.Itoa(r.seeds), "-jobs", strconv.Itoa(runtime.GOMAXPROCS(0)), "play")
}

// runGo runs the go command.
func (r *runner) runGo(ctx context.Context, args ...string) error {
	if out, err := r.newCommand(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, lastLine(out))
	}
	return nil
}

// runBinary runs a binary with mutant n enabled; a failure kills the mutant, a timeout is TimedOut.
func (r *runner) runBinary(ctx context.Context, dir string, n int, timeout time.Duration, killed Outcome, binary string, args ...string) (result, []byte, error) {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, timeout+5*time.Second)
	defer cancel()
	cmd := r.newCommand(bounded, binary, args...)
	cmd.Dir, cmd.WaitDelay = dir, 5*time.Second
	cmd.Env = append(os.Environ(), selectorEnv+"="+strconv.Itoa(n))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	v := result{Took: time.Since(begun)}
	_, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return v, nil, ctx.Err()
	case bounded.Err() != nil || failed && strings.Contains(out.String(), "panic: test timed out after"):
		v.Fate = TimedOut
	case failed:
		v.Fate, v.By = killed, failedTest(out.Bytes())
	case err != nil:
		return v, nil, err
	default:
		v.Fate = Survived
	}
	return v, out.Bytes(), nil
}

func (r *runner) newCommand(ctx context.Context, name string, args ...string) *exec.Cmd {
	argv := slices.Concat(r.commandPrefix, []string{name}, args)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // what the caller asks for
	cmd.Dir = r.root
	return cmd
}

// failPattern matches a failure in the output of go test or of the seeds.
var failPattern = regexp.MustCompile(`(?m)^\s*(?:--- FAIL: (\S+)|(seed \d+: .*)|(panic: .*)|(fatal error: .*))`)

// failedTest returns the innermost subtest of the first failure in the output, or the last line.
func failedTest(out []byte) string {
	by := ""
	for _, m := range failPattern.FindAllSubmatch(out, 20) {
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
