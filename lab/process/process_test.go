// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func startRole(t *testing.T, name string, fail func(error), args ...string) *Process {
	t.Helper()
	c, err := StartCommand(t.Context(), Command{Dir: t.TempDir(), Name: "it", OnExit: fail, Path: os.Args[0], Args: append([]string{name}, args...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

func mustNotFail(t *testing.T) func(error) {
	return func(err error) { t.Errorf("its end was a surprise: %v", err) }
}

func TestStopAsksFirst(t *testing.T) {
	c := startRole(t, roleObliging, mustNotFail(t))
	if line, err := c.FirstLine(t.Context()); err != nil || line != "obliging" {
		t.Fatal(line, err)
	}
	c.stopTimeout = time.Minute
	StopAll(c, nil)
	<-c.done
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	c := startRole(t, roleStubborn, mustNotFail(t))
	if _, err := c.FirstLine(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.stopTimeout = 50 * time.Millisecond
	c.Stop()
	if c.err == nil || !strings.Contains(c.err.Error(), "killed") {
		t.Error(c.err)
	}
}

func TestUnexpectedEndIsReported(t *testing.T) {
	failed := make(chan error, 1)
	c := startRole(t, roleFailing, func(err error) { failed <- err })
	if _, err := c.FirstLine(t.Context()); err == nil {
		t.Error("no first line was printed, and none is missed")
	}
	err := <-failed
	if end, ok := errors.AsType[*UnexpectedExit](err); !ok || end.Process != c {
		t.Fatal(err)
	}
	if got := err.Error(); !strings.Contains(got, "exit status 3") || !strings.Contains(got, filepath.Base(c.Log)) {
		t.Error(got)
	}
	if tail := c.TailLines(5); len(tail) != 1 || tail[0] != "no such thing" {
		t.Error(tail)
	}
}

func TestWaitingForAChildEndsWithTheContext(t *testing.T) {
	c := &Process{stdout: &firstLineWriter{lines: make(chan string)}, done: make(chan struct{})}
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(interrupted)
	if _, err := c.FirstLine(ctx); !errors.Is(err, interrupted) {
		t.Error(err)
	}
}

func TestTailIsTheEnd(t *testing.T) {
	c := &Process{Log: filepath.Join(t.TempDir(), "log")}
	if tail := c.TailLines(2); len(tail) != 1 || !strings.Contains(tail[0], "no such file") {
		t.Error(tail)
	}
	if err := os.WriteFile(c.Log, []byte("1\n2\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tail := c.TailLines(2); strings.Join(tail, "") != "23" {
		t.Error(tail)
	}
}

func TestFirstLineInPieces(t *testing.T) {
	var text strings.Builder
	f := &firstLineWriter{to: &text, lines: make(chan string, 1)}
	for _, piece := range []string{"rea", "dy\nmo", "re\nand more\n"} {
		if _, err := f.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if line := <-f.lines; line != "ready" || text.String() != "ready\nmore\nand more\n" {
		t.Errorf("%q %q", line, text.String())
	}
}
