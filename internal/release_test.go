// SPDX-License-Identifier: Apache-2.0

package internal_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type workflow struct {
	On          any // a string, list or map
	Permissions *map[string]string
	Env         map[string]string
	Jobs        map[string]workflowJob
}

type workflowJob struct {
	Needs       any
	Uses        string
	Env         map[string]string
	Permissions *map[string]string
	Steps       []struct {
		Name, Uses, Run string
		Env, With       map[string]any
	}
}

// privilegedTargets lists the targets allowed in jobs that can publish or sign.
var privilegedTargets = []string{"publish-tools", "release-digest", "registry-login", "publish", "sign"}

// untrustedCommand matches commands that run code of the repository or of its dependencies.
var untrustedCommand = regexp.MustCompile(`\bgo["']? +(test|generate|run|build|tool|vet)\b|\bko[- ]|ko-v|golangci|controller-gen|kubelab|\bnpm\b|\bpip3?\b|\bcurl\b|\bwget\b`)

// A job that can publish or sign runs no tests and no builds, because they would inherit its permissions.
// Other jobs are read-only and have no secrets.
func TestOnlyTheLastJobOfAReleaseMayPublish(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*")
	if err != nil || len(files) == 0 {
		t.Fatal("no workflow", err)
	}
	publishes := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		problems, privileged := findProblems(t, raw)
		for _, p := range problems {
			t.Errorf("%s: %s", file, p)
		}
		publishes += privileged
	}
	if publishes != 1 {
		t.Errorf("%d jobs may publish, want 1", publishes)
	}
	for _, target := range privilegedTargets {
		cmd := exec.CommandContext(t.Context(), "make", "-n", "-B", "IMAGE=registry/weir", "VERSION=v1", target)
		cmd.Dir = ".."
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("make -n %s: %v", target, err)
		}
		if found := untrustedCommand.FindString(string(out)); found != "" {
			t.Errorf("make %s runs %q:\n%s", target, found, out)
		}
	}
}

func TestFindProblems(t *testing.T) {
	const begin = "on: {push: {tags: [v1]}}\npermissions: {}\njobs:\n  j:\n    permissions: "
	for text, want := range map[string]string{
		begin + "{contents: read}\n    steps: [{run: make test}]":                                               "",
		begin + "{packages: write}\n    steps: [{run: make publish}]":                                           "",
		begin + "{packages: write}\n    steps: [{run: make test}]":                                              "make test",
		begin + "{id-token: write}\n    steps: [{run: go test ./...}]":                                          "go test",
		begin + "{id-token: write}\n    steps: [{run: make publish && make generate}]":                          "make generate",
		begin + "{contents: write}\n    steps: [{uses: other/action@11bd71901bbe5b1630ceea73d27597364c9af683}]": "other/action",
		begin + "{contents: read}\n    steps: [{run: make test, env: {T: '${{ secrets.GITHUB_TOKEN }}'}}]":      "secret",
		begin + "{contents: read}\n    uses: ./.github/workflows/x.yaml":                                        "another workflow",
		"on: {push: {}}\npermissions: {}\njobs: {j: {steps: [{run: make test}]}}":                               "permissions",
		"on: {push: {}}\njobs: {j: {permissions: {}, steps: [{run: make test}]}}":                               "permissions",
		"on: {pull_request_target: {}}\npermissions: {}\njobs: {}":                                              "pull_request_target",
	} {
		got, _ := findProblems(t, []byte(text))
		if want == "" && len(got) > 0 || want != "" && !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s:\n%q, want %q", text, got, want)
		}
	}
}

// findProblems returns the violations in a workflow, and how many of its jobs have write permissions.
func findProblems(t *testing.T, raw []byte) (problems []string, privileged int) {
	t.Helper()
	var w workflow
	if err := yaml.Unmarshal(raw, &w); err != nil {
		t.Fatalf("%v in\n%s", err, raw)
	}
	if strings.Contains(string(raw), "pull_request_target") || strings.Contains(string(raw), "workflow_run") {
		problems = append(problems, "pull_request_target and workflow_run run code of others with rights")
	}
	if w.Permissions == nil || len(*w.Permissions) > 0 {
		problems = append(problems, "want permissions: {} for all jobs, and each job's own")
	}
	for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
		job := w.Jobs[name]
		if job.Permissions == nil {
			problems = append(problems, name+": has no permissions of its own")
			continue
		}
		if job.Uses != "" {
			problems = append(problems, name+": is another workflow, which this test does not read")
		}
		writes := slices.ContainsFunc(slices.Collect(maps.Values(*job.Permissions)), func(right string) bool { return right != "read" && right != "none" })
		if writes {
			privileged++
		}
		for _, step := range job.Steps {
			switch {
			case !writes:
				for _, v := range step.Env {
					if s, ok := v.(string); ok && strings.Contains(s, "secrets.") {
						problems = append(problems, name+": "+step.Name+": has a secret, and runs code of others")
					}
				}
			case step.Uses != "":
				if !strings.HasPrefix(step.Uses, "actions/checkout@") && !strings.HasPrefix(step.Uses, "actions/download-artifact@") {
					problems = append(problems, name+": uses "+step.Uses)
				}
			default:
				if !isAllowedRun(step.Run) {
					problems = append(problems, name+": runs "+step.Run)
				}
			}
		}
	}
	return problems, privileged
}

// isAllowedRun reports whether a command is a make target from privilegedMake or the digest comparison.
func isAllowedRun(run string) bool {
	run = strings.TrimSpace(run)
	if target, ok := strings.CutPrefix(run, "make "); ok {
		return slices.Contains(privilegedTargets, target)
	}
	return run == `test -n "$DIGEST" && test "$(make --no-print-directory release-digest)" = "$DIGEST"`
}
