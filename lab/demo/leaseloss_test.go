// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir.dev/weir/lab/process"
)

// script is a controller that counts its starts: the first runs lose their Lease, the next one fails, or runs until it is
// stopped.
func script(t *testing.T, losses, last string) (launch func(func(error)) (*process.Process, error), starts func() int) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "fake")
	text := "#!/bin/sh\necho start >>starts\nif [ $(wc -l <starts) -le " + losses + " ]; then echo 'level=ERROR msg=\"the lead is lost: leader election lost\"' >&2; exit 1; fi\n" + last + "\n"
	if err := os.WriteFile(program, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	launch = func(onExit func(error)) (*process.Process, error) {
		return process.StartCommand(t.Context(), process.Command{Dir: dir, Name: "weir", Path: program, OnExit: onExit})
	}
	return launch, func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "starts"))
		return bytes.Count(text, []byte("start"))
	}
}

// A controller that loses its Lease is started again, and the run continues; any other end fails it, and so does one that loses
// it again and again.
func TestAControllerThatLosesItsLease(t *testing.T) {
	for name, tt := range map[string]struct {
		losses, last string
		starts, lost int
	}{
		"twice, then it fails": {"2", "echo 'level=ERROR msg=broken' >&2; sleep 0; rm weir.log; exit 3", 3, 2},
		"again and again":      {"1000", "", maxLeaseLosses + 1, maxLeaseLosses},
	} {
		launch, starts := script(t, tt.losses, tt.last)
		var runs controllerRuns
		lost, failed := make(chan struct{}, 100), make(chan error, 1)
		if err := runs.start(launch, func() { lost <- struct{}{} }, func(err error) { failed <- err }); err != nil {
			t.Fatal(err)
		}
		err := <-failed
		if end, ok := errors.AsType[*process.UnexpectedExit](err); !ok || end.Process != runs.latest() {
			t.Errorf("%s: %v", name, err)
		}
		if starts() != tt.starts || len(lost) != tt.lost {
			t.Errorf("%s: %d starts, %d losses reported", name, starts(), len(lost))
		}
		runs.stop()
	}
}

// After a stop it is not started again.
func TestAStoppedControllerStaysStopped(t *testing.T) {
	launch, starts := script(t, "0", "sleep 60")
	var runs controllerRuns
	if err := runs.start(launch, func() { t.Error("a loss") }, func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	runs.stop()
	if err := runs.restart(launch, nil); err != nil || starts() > 1 {
		t.Errorf("%v, %d starts", err, starts())
	}
}

// The first line of a failure is the last one of the process that ended, not only its exit code.
func TestTheCauseOfAFailureIsFirst(t *testing.T) {
	launch, _ := script(t, "0", "echo 'cannot read azure.json' >&2; exit 3")
	ended := make(chan error, 1)
	if _, err := launch(func(err error) { ended <- err }); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := &run{print: newPrinter(&out)}
	r.printFailure(<-ended)
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); !strings.Contains(lines[0], "FAILED  cannot read azure.json") || !strings.Contains(out.String(), "weir ended by itself (exit status 3)") {
		t.Error(out.String())
	}
}
