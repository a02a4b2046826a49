// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// role starts the test's own program in a role.
func role(t *testing.T, name string, fail func(error), args ...string) *child {
	t.Helper()
	c, err := spawn(t.Context(), t.TempDir(), "it", fail, os.Args[0], append([]string{name}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	return c
}

func mustNotFail(t *testing.T) func(error) {
	return func(err error) { t.Errorf("its end was a surprise: %v", err) }
}

func TestStopAsksFirst(t *testing.T) {
	c := role(t, roleObliging, mustNotFail(t))
	if line, err := firstLineOf(t.Context(), c); err != nil || line != "obliging" {
		t.Fatal(line, err)
	}
	c.grace = time.Minute
	stopAll(c, nil)
	<-c.done
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	c := role(t, roleStubborn, mustNotFail(t))
	if _, err := firstLineOf(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.grace = 50 * time.Millisecond
	c.stop()
	if c.err == nil || !strings.Contains(c.err.Error(), "killed") {
		t.Error(c.err)
	}
}

func TestAnEndThatNobodyAskedForIsReported(t *testing.T) {
	failed := make(chan error, 1)
	c := role(t, roleFailing, func(err error) { failed <- err })
	if _, err := firstLineOf(t.Context(), c); err == nil {
		t.Error("no first line was printed, and none is missed")
	}
	err := <-failed
	if end, ok := errors.AsType[*unexpectedEnd](err); !ok || end.child != c {
		t.Fatal(err)
	}
	if got := err.Error(); !strings.Contains(got, "exit status 3") || !strings.Contains(got, filepath.Base(c.log)) {
		t.Error(got)
	}
	if tail := c.tail(5); len(tail) != 1 || tail[0] != "no such thing" {
		t.Error(tail)
	}
}

func TestWaitingForAChildEndsWithTheContext(t *testing.T) {
	c := &child{announce: &firstLine{seen: make(chan string)}, done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(Interrupted{})
	if _, err := firstLineOf(ctx, c); !errors.Is(err, Interrupted{}) {
		t.Error(err)
	}
}

func TestTailIsTheEnd(t *testing.T) {
	c := &child{log: filepath.Join(t.TempDir(), "log")}
	if tail := c.tail(2); len(tail) != 1 || !strings.Contains(tail[0], "no such file") {
		t.Error(tail)
	}
	if err := os.WriteFile(c.log, []byte("1\n2\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tail := c.tail(2); strings.Join(tail, "") != "23" {
		t.Error(tail)
	}
}

func TestFirstLineInPieces(t *testing.T) {
	var all strings.Builder
	f := &firstLine{to: &all, seen: make(chan string, 1)}
	for _, piece := range []string{"rea", "dy\nmo", "re\nand more\n"} {
		if _, err := f.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if line := <-f.seen; line != "ready" || all.String() != "ready\nmore\nand more\n" {
		t.Errorf("%q %q", line, all.String())
	}
}
