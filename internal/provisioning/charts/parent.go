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
	// renderTimeout is for a child that gets little CPU: it must exceed maxSeconds of CPU by far, so that these end the child.
	renderTimeout = 5 * time.Minute
	// JSON escapes a byte as at most six.
	maxOutput = 6*maxOutputBytes + 1<<20
)

// Error is a permanent error in a chart or its values.
type Error struct{ Text string }

// Error implements error.
func (e Error) Error() string { return e.Text }

// RenderChart renders a chart in a child process. Callers run one at a time.
func RenderChart(ctx context.Context, r Request) ([]Document, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	request, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	defer reserveMemory()()
	out := &limitedBuffer{remaining: maxOutput}
	child := exec.CommandContext(ctx, program, Command)
	child.Env = []string{"GOMAXPROCS=1"} // nothing from Weir's environment
	child.Dir = "/"
	child.Stdin, child.Stdout = bytes.NewReader(request), out
	err = child.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("rendering: %w", ctx.Err())
	case child.ProcessState == nil:
		return nil, fmt.Errorf("rendering: %w", err)
	case child.ProcessState.UserTime()+child.ProcessState.SystemTime() >= (maxSeconds-1)*time.Second:
		return nil, Error{fmt.Sprintf("rendering needs more than %d s of CPU", maxSeconds)}
	case child.ProcessState.ExitCode() == 2: // a fatal Go runtime error
		return nil, Error{fmt.Sprintf("rendering needs more than %d MiB of memory, or templates include each other without end", maxMemory>>20)}
	case err != nil:
		return nil, fmt.Errorf("rendering: %w", err)
	}
	var a Response
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return nil, fmt.Errorf("rendering: %w", err)
	}
	if a.Error != "" {
		return nil, Error{a.Error}
	}
	return a.Documents, nil
}

// reserveMemory lowers this process's memory limit while a child runs, because both share a container.
// Only one child may run.
func reserveMemory() (done func()) {
	before := debug.SetMemoryLimit(-1)
	if before == math.MaxInt64 { // no limit set
		return func() {}
	}
	debug.SetMemoryLimit(max(before-maxMemory, maxMemory))
	return func() { debug.SetMemoryLimit(before) }
}

type limitedBuffer struct {
	bytes.Buffer

	remaining int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.remaining -= len(p); b.remaining < 0 {
		return 0, errors.New("the answer is too long")
	}
	return b.Buffer.Write(p)
}
