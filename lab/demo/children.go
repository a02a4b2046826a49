// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stopGrace is how long a child may take to end when it is asked to.
const stopGrace = 5 * time.Second

// child is a process of ours. It is in a process group of its own, so that a
// Ctrl-C at the terminal reaches the parent alone and the parent decides the
// order. It does not outlive the parent, however that ends: its standard input
// closes, and on Linux the kernel kills it.
type child struct {
	name  string
	log   string // file with all that it prints
	cmd   *exec.Cmd
	grace time.Duration // how long it may take to end when asked

	stdin    io.Closer
	announce *firstLine
	expected atomic.Bool // its end is no surprise
	done     chan struct{}
	err      error // how it ended; set before done is closed
}

// unexpectedEnd is the error of a child that ended by itself.
type unexpectedEnd struct{ child *child }

func (e *unexpectedEnd) Error() string {
	how := "exit code 0"
	if e.child.err != nil {
		how = e.child.err.Error()
	}
	return fmt.Sprintf("%s ended by itself (%s); its output is in %s", e.child.name, how, e.child.log)
}

// spawn starts a program whose output goes to dir/name.log. fail is called if it
// ends before it is stopped. The calling goroutine has to be locked to its
// thread: the kernel kills the child when that thread ends.
func spawn(ctx context.Context, dir, name string, fail func(error), program string, args ...string) (*child, error) {
	c := &child{
		name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{}), grace: stopGrace,
		// Its end is ours to bring about, in order: not the context's.
		cmd: exec.CommandContext(context.WithoutCancel(ctx), program, args...), //nolint:gosec // a program of ours
	}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	c.announce = &firstLine{to: out, seen: make(chan string, 1)}
	c.cmd.Dir, c.cmd.Stdout, c.cmd.Stderr = dir, c.announce, out
	c.cmd.WaitDelay = time.Second
	ownGroup(c.cmd)
	if c.stdin, err = c.cmd.StdinPipe(); err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		_ = out.Close() // nothing was written
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		c.err = c.cmd.Wait()
		_ = out.Close() // a log cut short is all that could be lost
		close(c.done)
		if !c.expected.Load() {
			fail(&unexpectedEnd{c})
		}
	}()
	return c, nil
}

// firstLineOf waits for the first line that a child prints to standard output.
func firstLineOf(ctx context.Context, c *child) (string, error) {
	select {
	case line := <-c.announce.seen:
		return line, nil
	case <-c.done:
		return "", &unexpectedEnd{c}
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// kill ends the child as kill -9 does, and waits until it has.
func (c *child) kill() {
	c.expected.Store(true)
	killGroup(c.cmd)
	<-c.done
}

// stop asks the child to end, and kills it if it does not.
func (c *child) stop() {
	c.expected.Store(true)
	_ = c.stdin.Close() // it may have ended already
	terminateGroup(c.cmd)
	select {
	case <-c.done:
	case <-time.After(c.grace):
		c.kill()
	}
}

// stopAll stops children side by side; nil ones were never started.
func stopAll(children ...*child) {
	var all sync.WaitGroup
	for _, c := range children {
		if c != nil {
			all.Go(c.stop)
		}
	}
	all.Wait()
}

// tail returns the last lines that the child printed.
func (c *child) tail(lines int) []string {
	raw, err := os.ReadFile(c.log)
	if err != nil {
		return []string{err.Error()}
	}
	all := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	return all[max(0, len(all)-lines):]
}

// firstLine hands on what is written, and the first line of it on a channel.
type firstLine struct {
	to   io.Writer
	seen chan string
	line bytes.Buffer
	done bool
}

// Write is called by one goroutine, that of the child's output.
func (f *firstLine) Write(p []byte) (int, error) {
	if !f.done {
		line, _, ended := bytes.Cut(p, []byte("\n"))
		f.line.Write(line)
		if ended {
			f.done = true
			f.seen <- f.line.String()
		}
	}
	return f.to.Write(p)
}
