// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/lab/simulate"
)

// play runs the command without a terminal and returns its output.
func play(t *testing.T, args ...string) (out, errs string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRootCommand()
	root.SetArgs(append([]string{"simulate"}, args...))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	code = exitCode(root.ExecuteContext(t.Context()))
	return stdout.String(), stderr.String(), code
}

// Virtual time works outside of tests, and package testing prints nothing.
func TestSimulatePlaysSeeds(t *testing.T) {
	out, errs, code := play(t, "--seed", "3", "--seeds", "4", "--steps", "10", "--jobs", "2")
	if code != 0 || errs != "" || !strings.HasPrefix(out, "seeds 3 to 6: 4 played, ") || !strings.HasSuffix(out, ": all checks hold\n") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	out, errs, code = play(t, "--seeds", "2", "--steps", "10", "-o", "json")
	var result simulateResult
	if err := json.Unmarshal([]byte(out), &result); err != nil || code != 0 || errs != "" || result.Seeds != 2 || result.Steps < 10 || result.Found == nil {
		t.Errorf("code %d, %q, %q: %v", code, out, errs, err)
	}
	_, errs, _ = play(t, "--seed", "5", "--seeds", "1", "--verbose")
	if !strings.HasPrefix(errs, "# Seed 5 of 40 steps.\ncluster ") || !strings.Contains(errs, "\nexpect calm\n----\n") {
		t.Errorf("verbose: %q", errs)
	}
	_, errs, _ = play(t, "--seed", "5", "--seeds", "1", "--verbose", "--pipelined")
	if !strings.Contains(errs, "pipelined") && !strings.Contains(errs, "finds-out") {
		t.Errorf("verbose, of writes that overlap: %q", errs)
	}
}

// A failing scenario prints the check and exits with 1; a passing one exits with 0.
func TestSimulateReplays(t *testing.T) {
	const world = "# Too early.\ncluster\nnodes 2\nlb a\npool a/p\nservice s pools=(p) nodes=(n1)\n----\n\nclock %\n----\n\nexpect in-sync\n----\n"
	file := filepath.Join(t.TempDir(), "early.scenario")
	for wait, want := range map[string]int{"100ms": 1, "10s": 0} {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(world, "%", wait)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := play(t, "--replay", file, "--verbose")
		failed := strings.Contains(out, `check "expect" does not hold`) && strings.HasSuffix(out, "\nafter "+file+":12, step 3: expect in-sync\n")
		if code != want || failed != (want == 1) || !strings.Contains(errs, "expect in-sync") {
			t.Errorf("after %s: code %d, %q, %q", wait, code, out, errs)
		}
		var result simulateResult
		out, errs, code = play(t, "--replay", file, "-o", "json")
		if err := json.Unmarshal([]byte(out), &result); err != nil || code != want || errs != "" || result.File != file || result.Steps != 3 || len(result.Found) != want {
			t.Errorf("after %s: code %d, %q, %q: %v", wait, code, out, errs, err)
		}
		if want == 1 && (result.Found[0].Line != 12 || result.Found[0].Step != "expect in-sync") {
			t.Errorf("found %+v", result.Found[0])
		}
	}
}

// An impossible step is an error; CRLF line ends are accepted.
func TestAReplayLeavesNothingOut(t *testing.T) {
	const world = "cluster\nnodes 2\nlb a\npool a/p\nservice s pools=(p) nodes=(n1)\n----\n\n%\n----\n\nclock 10s\n----\n"
	file := filepath.Join(t.TempDir(), "some.scenario")
	for step, want := range map[string]int{
		"laese take for=50s": 2, "lease take fro=50s": 2, "scale nobody nodes=(n1)": 2, "scale s nodes=(n2)": 0,
	} {
		text := strings.ReplaceAll(strings.ReplaceAll(world, "%", step), "\n", "\r\n")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := play(t, "--replay", file)
		if code != want {
			t.Errorf("%s: code %d, %q, %q", step, code, out, errs)
		}
		if err := (&simulateFlags{replay: file, out: io.Discard, err: io.Discard}).runReplay(); want == 2 && !strings.Contains(err.Error(), "line 8: ") {
			t.Errorf("%s: %v", step, err)
		}
	}
}

// After a deadlock no line is reported.
func TestALockUpHasNoLine(t *testing.T) {
	steps, lines, err := simulate.ParseScript("# One.\ncluster\n----\n")
	if err != nil {
		t.Fatal(err)
	}
	for check, want := range map[string]int{simulate.LockUp: 0, "expect": 2} {
		if line, step := failedStep(simulate.Result{Check: check, Steps: steps}, lines); line != want || (step == "") != (want == 0) {
			t.Errorf("%s: line %d, %q", check, line, step)
		}
	}
}

// Flags that have no effect with --replay are errors.
func TestAReplayTakesNoSeeds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "some.scenario")
	if err := os.WriteFile(file, []byte("cluster\nnodes 2\n----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--seed", "1"}, {"--seeds", "1"}, {"--for", "1s"}, {"--steps", "3"}, {"--jobs", "1"}} {
		if out, _, code := play(t, append(args, "--replay", file)...); code != 2 || out != "" {
			t.Errorf("%v: code %d, %q", args, code, out)
		}
	}
	if out, _, code := play(t, "--replay", file); code != 0 {
		t.Errorf("code %d, %q", code, out)
	}
}

func TestSimulateRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--seeds", "-1"}, {"--steps", "0"}, {"--jobs", "0"}, {"--for", "-1s"}, {"--for", "1m", "--seeds", "5"},
		{"-o", "yaml"}, {"--replay", "/does/not/exist"}, {"--verbose"}, {"--verbose", "--seed", "3"}, {"--verbose", "--for", "1s"}, {"seed"}, {"--nobody"},
	} {
		if out, _, code := play(t, args...); code != 2 || out != "" {
			t.Errorf("%v: code %d, %q", args, code, out)
		}
	}
}
