// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"time"
)

const (
	within = time.Minute
	// JSON escapes a byte as at most six.
	mostOfAnswer = 6*mostRendered + 1<<20
)

// Error is a permanent error in a chart or its values.
type Error struct{ Text string }

// Error implements error.
func (e Error) Error() string { return e.Text }

// Render renders a chart in a child process. Callers run one at a time.
func Render(ctx context.Context, r Request) ([]Document, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	defer makeRoom()()
	out := &atMost{left: mostOfAnswer}
	child := exec.CommandContext(ctx, program, Command)
	child.Env = []string{"GOMAXPROCS=1"} // nothing from Weir's environment
	child.Dir = "/"
	child.Stdin, child.Stdout = bytes.NewReader(request), out
	child.WaitDelay = time.Second
	err = child.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("rendering: %w", ctx.Err())
	case child.ProcessState == nil:
		return nil, fmt.Errorf("rendering: %w", err)
	case child.ProcessState.UserTime()+child.ProcessState.SystemTime() >= (mostSeconds-1)*time.Second:
		return nil, Error{fmt.Sprintf("rendering takes more than %d s of a processor", mostSeconds)}
	case child.ProcessState.ExitCode() == 2: // a fatal Go runtime error
		return nil, Error{fmt.Sprintf("rendering takes more than %d MiB of memory, or templates that include each other without end", mostMemory>>20)}
	case err != nil:
		return nil, fmt.Errorf("rendering: %w", err)
	}
	var a Answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	if a.Error != "" {
		return nil, Error{a.Error}
	}
	return a.Documents, nil
}

// makeRoom lowers this process's memory limit while a child runs, because both share a container.
// Only one child may run.
func makeRoom() (done func()) {
	before := debug.SetMemoryLimit(-1)
	if before == math.MaxInt64 { // no limit set
		return func() {}
	}
	debug.SetMemoryLimit(max(before-mostMemory, mostMemory))
	return func() { debug.SetMemoryLimit(before) }
}

type atMost struct {
	bytes.Buffer

	left int
}

func (b *atMost) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("the answer is too long")
	}
	return b.Buffer.Write(p)
}
