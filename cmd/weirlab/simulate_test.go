// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// play runs the command and returns what it prints, where nobody looks at a terminal.
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

// Virtual time works in the command as it does in a test, and package testing says
// nothing to people.
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
}

// A scenario that fails says which check, and ends with 1; one that holds ends with 0.
func TestSimulateReplays(t *testing.T) {
	const world = "# Too early.\ncluster\nnodes 2\nlb a\npool a/p\nservice s pools=(p) nodes=(n1)\n----\n\nclock %\n----\n\nexpect level\n----\n"
	file := filepath.Join(t.TempDir(), "early.scenario")
	for wait, want := range map[string]int{"100ms": 1, "10s": 0} {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(world, "%", wait)), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := play(t, "--replay", file, "--verbose")
		if code != want || strings.Contains(out, `check "expect" does not hold`) != (want == 1) || !strings.Contains(errs, "expect level") {
			t.Errorf("after %s: code %d, %q, %q", wait, code, out, errs)
		}
	}
}

// A step that cannot be made is named; a file of another system's line ends is read.
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
	}
}

func TestSimulateRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--seeds", "-1"}, {"--steps", "0"}, {"--jobs", "0"}, {"--for", "-1s"}, {"--for", "1m", "--seeds", "5"},
		{"-o", "yaml"}, {"--replay", "/does/not/exist"}, {"seed"}, {"--nobody"},
	} {
		if out, _, code := play(t, args...); code != 2 || out != "" {
			t.Errorf("%v: code %d, %q", args, code, out)
		}
	}
}
