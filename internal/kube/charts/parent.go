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
	// within is how long a child may take, however little it computes.
	within = time.Minute
	// mostOfAnswer bounds what is read of a child: JSON makes at most six bytes of one.
	mostOfAnswer = 6*mostRendered + 1<<20
)

// Error is what is wrong with a chart or its values, and no other attempt mends.
type Error struct{ Text string }

// Error implements error.
func (e Error) Error() string { return e.Text }

// Render has a process of its own render a chart.
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
	child.Env = []string{"GOMAXPROCS=1"} // and nothing of Weir's
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
	case child.ProcessState.ExitCode() == 2: // that of a Go program that cannot go on
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

// makeRoom has this process collect its garbage sooner while a child runs, whose memory is of the same container: with
// GOMEMLIMIT alone both together were more than it has. One child runs at a time.
func makeRoom() (done func()) {
	before := debug.SetMemoryLimit(-1)
	if before == math.MaxInt64 { // nobody says what the container has
		return func() {}
	}
	debug.SetMemoryLimit(max(before-mostMemory, mostMemory))
	return func() { debug.SetMemoryLimit(before) }
}

// atMost is a buffer that refuses what is more.
type atMost struct {
	bytes.Buffer

	left int
}

// Write implements io.Writer.
func (b *atMost) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("the answer is too long")
	}
	return b.Buffer.Write(p)
}
